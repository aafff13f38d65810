// `longshore replay`: checks the code of a durable function against the journal of a run.

import { Command } from "commander";
import type { JournalPage } from "../core/turn.ts";
import type { Run } from "./api.ts";
import { type Client, connect } from "./client.ts";
import { CommandFailure } from "./failure.ts";
import { type ConnectionOptions, withConnection, withExamples, withJson } from "./options.ts";
import { printJson } from "./print-json.ts";
import { runIdOf } from "./run-id.ts";
import { printable } from "./terminal.ts";

export function replayCommand(): Command {
  const command = new Command("replay")
    .description("check the code of a durable function against the journal of a run; nothing is started")
    .argument("<run>", "its id, or the beginning of it")
    .argument("<file>", "the module that exports the function");
  withJson(withConnection(command)).action(async (runId: string, file: string, flags: ConnectionOptions & { json?: boolean }) => {
    const client = connect(flags);
    const id = await runIdOf(client, runId);
    const run = await client.get<Run>(`/runs/${encodeURIComponent(id)}`);
    const { functionsIn, loadModules } = await import("./load-tasks.ts");
    const found = functionsIn(await loadModules([file])).find(({ name }) => name === run.workflow);
    if (found === undefined) throw new CommandFailure(`${file} exports no durable function called ${run.workflow}, which run ${id} is of.`);
    const { replay } = await import("../runner/function/check.ts");
    const result = await replay(await journalOf(client, id), found);
    if (flags.json) printJson({ run: id, workflow: run.workflow, ...result });
    else process.stdout.write(`${printable(`${run.workflow} matches run ${id}: ${result.commands} commands, then ${result.state}`)}\n`);
  });
  return withExamples(command, [["longshore replay 01KA3F7Q order.ts", "fails when the code of order.ts does not match that run"]]);
}

async function journalOf(client: Client, runId: string): Promise<JournalPage & { runId: string }> {
  const first = await client.get<JournalPage>(`/runs/${encodeURIComponent(runId)}/journal`);
  const entries = [...first.entries];
  for (let { next } = first; next !== undefined; ) {
    const page: JournalPage = await client.get(`/runs/${encodeURIComponent(runId)}/journal`, { after: next });
    entries.push(...page.entries);
    next = page.next;
  }
  return { ...first, entries, runId };
}
