// `longshore retry`: the same run again, from where it failed.

import { Command } from "commander";
import type { Run } from "./api.ts";
import { connect } from "./client.ts";
import { type RecordOptions, withExamples, withJson, withRecord } from "./options.ts";
import { printJson } from "./print-json.ts";
import { recordRun } from "./record.ts";
import { finish } from "./run.ts";
import { printable } from "./terminal.ts";

interface RetryFlags extends RecordOptions {
  follow?: boolean;
  json?: boolean;
}

export function retryCommand(): Command {
  const command = new Command("retry")
    .description("repeat the failed steps of a run; steps that succeeded keep their results")
    .argument("<run>", "its id");
  withJson(withRecord(command)).option("--follow", "show the run until it has ended").action(retry);
  return withExamples(command, [
    ["longshore retry 0198c0de --follow", "continues after the steps that succeeded"],
    ["longshore rerun 0198c0de", "starts a new run from the beginning"],
  ]);
}

async function retry(runId: string, flags: RetryFlags): Promise<void> {
  const client = connect(flags);
  const run = await client.post<Run>(`/runs/${encodeURIComponent(runId)}/retry`);
  recordRun(flags.record, "run-ordered", run);
  if (flags.follow) return finish(client, run.id, flags);
  if (flags.json) printJson(run);
  else process.stdout.write(`${printable(`${run.id} ${run.state}`)}\n`);
}
