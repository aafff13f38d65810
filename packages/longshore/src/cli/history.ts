// `longshore history`: prints or saves the journal of a run of a durable function, for `longshore replay` where no server is.

import { writeFileSync } from "node:fs";
import { Command } from "commander";
import { toError } from "../core/errors.ts";
import { counted } from "../core/text.ts";
import { connect } from "./client.ts";
import { CommandFailure } from "./failure.ts";
import { type ConnectionOptions, withConnection, withExamples } from "./options.ts";
import { runIdOf } from "./run-id.ts";
import { recordedHistory } from "./run-journal.ts";
import { printable } from "./terminal.ts";

export function historyCommand(): Command {
  const command = new Command("history")
    .description("print or save the journal of a run of a durable function, to check code against it later")
    .argument("<run>", "its id, or the beginning of it");
  withConnection(command)
    .option("--out <file>", "write to this file instead of standard output")
    .action(async (given: string, { out, ...flags }: ConnectionOptions & { out?: string }) => {
      const client = connect(flags);
      const history = await recordedHistory(client, await runIdOf(client, given));
      const text = `${JSON.stringify(history, null, 1)}\n`;
      if (out === undefined) return void process.stdout.write(text);
      try {
        writeFileSync(out, text);
      } catch (error) {
        throw new CommandFailure(`cannot write ${out}: ${toError(error).message}`, undefined, { cause: error });
      }
      const saved = `${history.workflow} ${history.runId}: ${counted(history.entries.length, "command")} saved in ${out}`;
      process.stdout.write(`${printable(saved)}\n`);
    });
  return withExamples(command, [
    ["longshore history 01KA3F7Q --out order.history.json", "keep it beside the tests"],
    ["longshore replay order.history.json order.ts", "in CI, without a server"],
  ]);
}
