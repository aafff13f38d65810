// `longshore signal`: sends a value to a run.

import { Command } from "commander";
import type { SentSignal } from "./api.ts";
import { connect } from "./client.ts";
import { jsonOf } from "./json-argument.ts";
import { type ConnectionOptions, withConnection, withExamples, withJson } from "./options.ts";
import { printJson } from "./print-json.ts";
import { runIdOf } from "./run-id.ts";
import { didYouMean } from "./suggestion.ts";
import { printable } from "./terminal.ts";

interface SignalFlags extends ConnectionOptions {
  key?: string;
  json?: boolean;
}

export function signalCommand(): Command {
  const command = new Command("signal")
    .description("send a signal to a run; it is kept until a step waits for it")
    .argument("<run>", "its id, or the beginning of it")
    .argument("<name>", "the name that a step waits for")
    .argument("[value]", "its value: JSON, @FILE for a file, - for standard input. Default: null");
  withJson(withConnection(command))
    .option("--key <key>", "idempotency key: a second signal with the same key changes nothing")
    .action(signal);
  return withExamples(command, [
    ["longshore signal 01KA3F7Q approve '{\"ok\":true}'", "the step that waits for approve ends with this output"],
    ["longshore signal 01KA3F7Q approve @decision.json --key mail-17", "safe to repeat"],
    ["longshore runs 01KA3F7Q", "the signals that no step has taken, and what its steps wait for"],
  ]);
}

async function signal(given: string, name: string, value: string | undefined, { key, json, ...flags }: SignalFlags): Promise<void> {
  const client = connect(flags);
  const body = { name, value: value === undefined ? null : jsonOf(value, "the value"), key };
  const runId = await runIdOf(client, given);
  const sent = await client.post<SentSignal>(`/runs/${encodeURIComponent(runId)}/signals`, body);
  if (json) return printJson(sent);
  const what = sent.state === "taken" ? "taken by a step that waited for it" : keptText(sent);
  process.stdout.write(`${printable(`${sent.name} ${what}`)}\n`);
}

/** A wrong name is the usual reason why a signal is kept. */
function keptText({ name, awaited = [] }: SentSignal): string {
  const others = awaited.length === 0 ? "" : `; the run waits for ${awaited.join(", ")}`;
  const question = didYouMean(name, awaited);
  return `kept: no step waits for it yet${others}${question === undefined ? "" : `. ${question}`}`;
}
