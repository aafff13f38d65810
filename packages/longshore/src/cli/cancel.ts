// `longshore cancel`.

import { Command } from "commander";
import type { Run } from "./api.ts";
import { connect } from "./client.ts";
import { type ConnectionOptions, withConnection, withExamples, withJson } from "./options.ts";

export function cancelCommand(): Command {
  const command = new Command("cancel").description("cancel a run; one that has ended stays as it is").argument("<run>", "its id");
  withJson(withConnection(command)).action(cancel);
  return withExamples(command, [["longshore cancel 0198c0de", "workers hear of it with their next sign of life"]]);
}

async function cancel(runId: string, flags: ConnectionOptions & { json?: boolean }): Promise<void> {
  const run = await connect(flags).post<Run>(`/runs/${encodeURIComponent(runId)}/cancel`);
  process.stdout.write(flags.json ? `${JSON.stringify(run)}\n` : `${run.id} ${run.state}\n`);
}
