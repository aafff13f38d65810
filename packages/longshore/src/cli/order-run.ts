// Shared by `longshore retry` and `longshore rerun`: sends the request for a run, then shows the run once or follows it to its end.

import type { Command } from "commander";
import type { Run } from "./api.ts";
import { connect } from "./client.ts";
import { type RecordOptions, withJson, withRecord } from "./options.ts";
import { printJson } from "./print-json.ts";
import { recordRun } from "./record.ts";
import { finish } from "./run.ts";
import { runIdOf } from "./run-id.ts";
import { printable } from "./terminal.ts";

interface OrderFlags extends RecordOptions {
  follow?: boolean;
  json?: boolean;
}

export interface RunOrder {
  /** The last segment of the request's path. */
  readonly verb: "retry" | "rerun";
  readonly recorded: Parameters<typeof recordRun>[1];
  /** The line that is printed about the run. */
  readonly line: (run: Run) => string;
}

export function withOrder(command: Command, { verb, recorded, line }: RunOrder): void {
  withJson(withRecord(command))
    .option("--follow", "show the run until it has ended")
    .action(async (runId: string, flags: OrderFlags) => {
      const client = connect(flags);
      const id = await runIdOf(client, runId);
      const run = await client.post<Run>(`/runs/${encodeURIComponent(id)}/${verb}`);
      recordRun(flags.record, recorded, run);
      if (flags.follow) return finish(client, run.id, flags);
      if (flags.json) printJson(run);
      else process.stdout.write(`${printable(line(run))}\n`);
    });
}
