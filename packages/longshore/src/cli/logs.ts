// `longshore logs`: prints the logs of the steps of a run.

import { Command } from "commander";
import type { LogChunk, Page } from "./api.ts";
import { type Client, connect } from "./client.ts";
import { CommandFailure } from "./failure.ts";
import { resumed } from "./follow.ts";
import { LinePrinter } from "./line-printer.ts";
import { type ConnectionOptions, withConnection, withExamples, withJson } from "./options.ts";
import { printJson } from "./print-json.ts";
import { painter } from "./terminal.ts";

interface LogsFlags extends ConnectionOptions {
  step?: string;
  follow?: boolean;
  json?: boolean;
}

const pageMax = 1_000;

export function logsCommand(): Command {
  const command = new Command("logs").description("print the logs of a run").argument("<run>", "its id");
  withJson(withConnection(command))
    .option("--step <id>", "only this step")
    .option("--follow", "continue until the run has ended")
    .action(logs);
  return withExamples(
    command,
    [
      ["longshore logs 0198c0de --follow", "from the beginning, then live"],
      ["longshore logs 0198c0de --step build --json", "one JSON object a chunk"],
    ],
    "In a terminal each line begins with its step; with --step, and with --json, nothing is added.",
  );
}

async function logs(runId: string, flags: LogsFlags): Promise<void> {
  const client = connect(flags);
  const path = `/runs/${encodeURIComponent(runId)}/logs`;
  const chunks = flags.follow ? follow(client, path, flags.step) : stored(client, path, flags.step);
  if (flags.json) {
    for await (const chunk of chunks) printJson(chunk);
    return;
  }
  const printer = new LinePrinter(process.stdout, painter(process.stdout), flags.step === undefined);
  for await (const chunk of chunks) printer.add(chunk);
  printer.end();
}

async function* stored(client: Client, path: string, step: string | undefined): AsyncGenerator<LogChunk> {
  let after: string | undefined;
  do {
    const page: Page<LogChunk> = await client.get(path, { step, after, limit: pageMax });
    yield* page.items;
    after = page.next ?? undefined;
  } while (after !== undefined);
}

async function* follow(client: Client, path: string, step: string | undefined): AsyncGenerator<LogChunk> {
  for await (const { event, data } of resumed(client, `${path}/stream`, { step })) {
    if (event === "log") yield JSON.parse(data) as LogChunk;
    if (event === "lagged") process.stderr.write("longshore: printing is slower than the workers write; nothing is lost.\n");
    if (event === "end") return;
  }
  throw new CommandFailure("the server ended the log before the run was over. Try again.");
}
