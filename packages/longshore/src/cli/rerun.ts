// `longshore rerun`: a new run with the input of an old one.

import { Command } from "commander";
import type { Run } from "./api.ts";
import { connect } from "./client.ts";
import { type RecordOptions, withExamples, withJson, withRecord } from "./options.ts";
import { printJson } from "./print-json.ts";
import { recordRun } from "./record.ts";
import { finish } from "./run.ts";
import { printable } from "./terminal.ts";

interface RerunFlags extends RecordOptions {
  follow?: boolean;
  json?: boolean;
}

export function rerunCommand(): Command {
  const command = new Command("rerun")
    .description("start a new run of the same version with the same input")
    .argument("<run>", "the id of the old run");
  withJson(withRecord(command)).option("--follow", "show the run until it has ended").action(rerun);
  return withExamples(command, [["longshore rerun 0198c0de", "prints the new run's id"]]);
}

async function rerun(runId: string, flags: RerunFlags): Promise<void> {
  const client = connect(flags);
  const run = await client.post<Run>(`/runs/${encodeURIComponent(runId)}/rerun`);
  recordRun(flags.record, "run-started", run);
  if (flags.follow) return finish(client, run.id, flags);
  if (flags.json) printJson(run);
  else process.stdout.write(`${printable(run.id)}\n`);
}
