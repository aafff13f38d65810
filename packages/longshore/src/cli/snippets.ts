// `longshore snippets`: prints programs of workers for each protocol, ready to be copied.

import { Command } from "commander";
import type { ProtocolHints } from "../protocols/hints.ts";
import { CommandFailure } from "./failure.ts";
import { type ConnectionOptions, withConnection, withExamples, withJson } from "./options.ts";
import { printJson } from "./print-json.ts";
import { protocolHints } from "./protocols.ts";
import { type Paint, painter } from "./terminal.ts";

export function snippetsCommand(): Command {
  const command = new Command("snippets")
    .description("print workers to copy, for each protocol and language")
    .argument("[protocol]", "only those of this protocol");
  withJson(withConnection(command)).action(snippets);
  return withExamples(
    command,
    [
      ["longshore snippets", "all of them, for the server at port 4500 of this machine"],
      ["longshore snippets --on http://10.0.0.5:4500", "for another server"],
    ],
    "With a token, the programs read it from LONGSHORE_TOKEN. The token itself is not printed.",
  );
}

async function snippets(protocol: string | undefined, { on, token, json }: ConnectionOptions & { json?: boolean }): Promise<void> {
  const all = await protocolHints({ url: on.replace(/\/$/, ""), asksToken: token !== undefined, flags: {} });
  const chosen = all.filter((each) => protocol === undefined || each.protocol === protocol);
  if (chosen.length === 0) {
    const known = all.map((each) => each.protocol).join(", ");
    throw new CommandFailure(`there are no programs for the protocol ${protocol}, expected one of ${known}.`);
  }
  if (json) printJson(chosen.flatMap(({ protocol: name, snippets: list }) => list.map((each) => ({ protocol: name, ...each }))));
  else process.stdout.write(`${chosen.flatMap((each) => textOf(each, painter(process.stdout))).join("\n")}\n`);
}

/** Nothing is indented: a pasted heredoc would not find its end. */
function textOf({ protocol, snippets: list }: ProtocolHints, paint: Paint): string[] {
  return list.flatMap(({ language, how, code, tryIt }) => [
    paint("bold", `A ${protocol} worker in ${language}`) + paint("dim", `: ${how}`),
    "",
    code,
    "",
    paint("dim", "Something for it to do, in another terminal:"),
    "",
    tryIt,
    "",
  ]);
}
