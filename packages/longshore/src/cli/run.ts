// `longshore run`: starts a run, and with --follow waits until it has ended or is blocked.

import { Command } from "commander";
import type { Run } from "./api.ts";
import { type Client, connect, Refusal } from "./client.ts";
import { CommandFailure, exitFailed } from "./failure.ts";
import { continuationNote, untilInterrupted } from "./interruption.ts";
import { jsonOf } from "./json-argument.ts";
import { parseDuration, parseInteger, type RecordOptions, withExamples, withJson, withRecord } from "./options.ts";
import { printJson } from "./print-json.ts";
import { recordRun } from "./record.ts";
import { printable } from "./terminal.ts";

interface RunFlags extends RecordOptions {
  input?: string;
  key?: string;
  delay?: number;
  priority?: number;
  follow?: boolean;
  json?: boolean;
}

export function runCommand(): Command {
  const command = new Command("run").description("start a run of a workflow").argument("<name>", "the workflow");
  withJson(withRecord(command))
    .option("--input <json>", "its input: JSON, @FILE for a file, - for standard input")
    .option("--key <key>", "idempotency key: starts with the same key and input start one run")
    .option("--delay <duration>", 'start later: "30s", "5m", "2h"', parseDuration)
    .option("--priority <number>", "added to the priority of its steps; steps with smaller numbers are taken first", parseInteger)
    .option("--follow", "show the run until it has ended; exit code 1 when it did not succeed")
    .action(run);
  return withExamples(command, [
    ['longshore run greeting --input \'{"name":"Ada"}\'', "prints the run's id"],
    ["longshore run ci --follow", "shows its steps until the end"],
    ["longshore run import --input @order.json --key order-17", "safe to repeat"],
    ["longshore run report --delay 8h --priority 10", "begins in eight hours, after more urgent work"],
  ]);
}

async function run(name: string, flags: RunFlags): Promise<void> {
  const client = connect(flags);
  const { key, delay: delayMs, priority } = flags;
  const input = flags.input === undefined ? undefined : jsonOf(flags.input, "--input");
  const body = { workflow: name, input, key, delayMs, priority };
  const started = await client.post<Run>("/runs", body).catch((error: unknown) => withSuggestion(client, name, error));
  recordRun(flags.record, "run-started", started);
  if (!flags.follow) {
    if (flags.json) printJson(started);
    else process.stdout.write(`${printable(started.id)}\n`);
    return;
  }
  await finish(client, started.id, flags);
}

/** Throws the error again. For an unknown workflow, adds the names that the person may have meant. */
async function withSuggestion(client: Client, name: string, error: unknown): Promise<never> {
  if (!(error instanceof Refusal) || error.status !== 404) throw error;
  const { suggestionFor } = await import("./workflow-names.ts");
  throw new CommandFailure(`there is no workflow ${JSON.stringify(name)}. ${await suggestionFor(client, name)}`, error.exitCode, {
    cause: error,
    code: error.code,
  });
}

/** Follows a run to its end, or until it is blocked, and sets the exit code by its result. */
export async function finish(
  client: Client,
  runId: string,
  { json = false, record }: { readonly json?: boolean; readonly record?: string },
): Promise<void> {
  const { watchRun } = await import("./watch-run.ts");
  const { showRun } = await import("./live-run.ts");
  const { run: last } = await untilInterrupted(
    (signal) => (json ? watchRun(client, runId, () => {}, signal) : showRun(client, runId, process.stdout, signal)),
    continuationNote(runId),
  );
  if (last.state !== "blocked") recordRun(record, "run-ended", last);
  if (json) printJson(last);
  else if (last.output !== null) printJson(last.output, 2);
  if (last.state === "succeeded") return;
  const why = last.error === null ? "" : `: ${last.error.replace(/\.$/, "")}`;
  throw new CommandFailure(`run ${last.id} ${last.state}${why}. ${adviceFor(last)}`, exitFailed);
}

function adviceFor({ id, state }: Run): string {
  return state === "blocked"
    ? `Change the code, check it with \`longshore replay ${id} FILE\`, then continue with \`longshore retry ${id}\`.`
    : `Look with \`longshore logs ${id}\`, try again with \`longshore retry ${id}\`.`;
}
