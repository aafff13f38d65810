// `longshore logs`: prints the logs of the steps of a run.

import { Command } from "commander";
import type { LogChunk, Page } from "./api.ts";
import { type Client, connect } from "./client.ts";
import { CommandFailure, warn } from "./failure.ts";
import { resumed } from "./follow.ts";
import { continuationNote, untilInterrupted } from "./interruption.ts";
import { LinePrinter } from "./line-printer.ts";
import { type ConnectionOptions, withConnection, withExamples, withJson } from "./options.ts";
import { printJson } from "./print-json.ts";
import { runIdOf } from "./run-id.ts";
import { painter } from "./terminal.ts";

interface LogsFlags extends ConnectionOptions {
  step?: string;
  follow?: boolean;
  json?: boolean;
}

const pageMax = 1_000;

export function logsCommand(): Command {
  const command = new Command("logs").description("print the logs of a run").argument("<run>", "its id, or the beginning of it");
  withJson(withConnection(command))
    .option("--step <id>", "only this step")
    .option("--follow", "continue until the run has ended")
    .action(logs);
  return withExamples(
    command,
    [
      ["longshore logs 01KA3F7Q --follow", "from the beginning, then live"],
      ["longshore logs 01KA3F7Q --step build --json", "one JSON object a chunk"],
    ],
    "In a terminal each line begins with its step; with --step, and with --json, nothing is added.",
  );
}

async function logs(runId: string, flags: LogsFlags): Promise<void> {
  const client = connect(flags);
  const id = await runIdOf(client, runId);
  const path = `/runs/${encodeURIComponent(id)}/logs`;
  if (!flags.follow) return print(stored(client, path, flags.step), flags);
  await untilInterrupted((signal) => print(follow(client, path, flags, signal), flags), continuationNote(id));
}

async function print(chunks: AsyncGenerator<LogChunk>, { json, step }: LogsFlags): Promise<void> {
  if (json) {
    for await (const chunk of chunks) printJson(chunk);
    return;
  }
  const printer = new LinePrinter(process.stdout, painter(process.stdout), step === undefined);
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

async function* follow(client: Client, path: string, { step, json = false }: LogsFlags, signal: AbortSignal): AsyncGenerator<LogChunk> {
  for await (const { event, data } of resumed(client, `${path}/stream`, { step }, signal)) {
    if (event === "log") yield JSON.parse(data) as LogChunk;
    if (event === "lagged") warn("printing is slower than the workers write; nothing is lost.", json);
    if (event === "end") return;
  }
  throw new CommandFailure("the server ended the log before the run was over. Try again.");
}
