// `longshore cancel`.

import { Command } from "commander";
import type { Run } from "./api.ts";
import { connect } from "./client.ts";
import { warn } from "./failure.ts";
import { type RecordOptions, withExamples, withJson, withRecord } from "./options.ts";
import { printJson } from "./print-json.ts";
import { recordRun } from "./record.ts";
import { runIdOf } from "./run-id.ts";
import { oneLine, printable } from "./terminal.ts";

interface CancelFlags extends RecordOptions {
  json?: boolean;
  reason?: string;
}

export function cancelCommand(): Command {
  const command = new Command("cancel")
    .description("cancel a run; a run that has ended does not change")
    .argument("<run>", "its id, or the beginning of it");
  withJson(withRecord(command)).option("--reason <text>", "the reason; stored and shown with the run").action(cancel);
  return withExamples(command, [
    ["longshore cancel 01KA3F7Q", "its workers are notified with their next heartbeat"],
    ['longshore cancel 01KA3F7Q --reason "wrong input"', "the run shows this reason"],
  ]);
}

async function cancel(runId: string, { reason, json = false, ...flags }: CancelFlags): Promise<void> {
  const client = connect(flags);
  const id = await runIdOf(client, runId);
  const run = await client.post<Run>(`/runs/${encodeURIComponent(id)}/cancel`, reason === undefined ? undefined : { reason });
  recordRun(flags.record, "run-ordered", run);
  const why = reason === undefined || run.error === null ? "" : `: ${oneLine(run.error)}`;
  if (json) printJson(run);
  else process.stdout.write(`${printable(`${run.id} ${run.state}${why}`)}\n`);
  if (reason !== undefined && run.error !== reason) warn("the run had ended before, so the reason was not kept.", json);
}
