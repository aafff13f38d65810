// `longshore replay`: checks the code of a durable function against the journal of a run.

import { Command } from "commander";
import { type Client, connect } from "./client.ts";
import { CommandFailure } from "./failure.ts";
import { type ConnectionOptions, withConnection, withExamples, withJson } from "./options.ts";
import { printJson } from "./print-json.ts";
import { runIdOf } from "./run-id.ts";
import { type RecordedHistory, recordedHistory, savedHistory } from "./run-journal.ts";
import { printable } from "./terminal.ts";

export function replayCommand(): Command {
  const command = new Command("replay")
    .description("check the code of a durable function against the journal of a run; nothing is started")
    .argument("<run>", "its id, or the beginning of it; or a file of `longshore history`")
    .argument("<file>", "the module that exports the function");
  withJson(withConnection(command)).action(async (given: string, file: string, flags: ConnectionOptions & { json?: boolean }) => {
    const history = savedHistory(given) ?? (await fromServer(connect(flags), given));
    const { runId: id, workflow } = history;
    const { functionsIn, loadModules } = await import("./load-tasks.ts");
    const found = functionsIn(await loadModules([file])).find(({ name }) => name === workflow);
    if (found === undefined) throw new CommandFailure(`${file} exports no durable function called ${workflow}, which run ${id} is of.`);
    const { replay } = await import("../runner/function/check.ts");
    const result = await replay(history, found);
    if (flags.json) printJson({ run: id, workflow, ...result });
    else process.stdout.write(`${printable(`${workflow} matches run ${id}: ${result.commands} commands, then ${result.state}`)}\n`);
  });
  return withExamples(command, [
    ["longshore replay 01KA3F7Q order.ts", "fails when the code of order.ts does not match that run"],
    ["longshore replay order.history.json order.ts", "the same with a saved history, without a server"],
  ]);
}

async function fromServer(client: Client, given: string): Promise<RecordedHistory> {
  return recordedHistory(client, await runIdOf(client, given));
}
