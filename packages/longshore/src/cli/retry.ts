// `longshore retry`: the same run again, from where it failed.

import { Command } from "commander";
import type { Run } from "./api.ts";
import { connect } from "./client.ts";
import { type RecordOptions, withExamples, withJson, withRecord } from "./options.ts";
import { printJson } from "./print-json.ts";
import { recordRun } from "./record.ts";
import { finish } from "./run.ts";

interface RetryFlags extends RecordOptions {
  follow?: boolean;
  json?: boolean;
}

export function retryCommand(): Command {
  const command = new Command("retry").description("try again what did not succeed in a run, keeping what did").argument("<run>", "its id");
  withJson(withRecord(command)).option("--follow", "show it until it has ended").action(retry);
  return withExamples(command, [
    ["longshore retry 0198c0de --follow", "goes on after the steps that succeeded"],
    ["longshore rerun 0198c0de", "would begin from the start, as a new run"],
  ]);
}

async function retry(runId: string, flags: RetryFlags): Promise<void> {
  const client = connect(flags);
  const run = await client.post<Run>(`/runs/${encodeURIComponent(runId)}/retry`);
  recordRun(flags.record, "run-ordered", run);
  if (flags.follow) return finish(client, run.id, flags);
  if (flags.json) printJson(run);
  else process.stdout.write(`${run.id} ${run.state}\n`);
}
