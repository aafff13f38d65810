// `longshore emit`: sends an event, which starts the workflows that listen for it.

import { Command } from "commander";
import type { EmittedEvent } from "../client/client.ts";
import { connect } from "./client.ts";
import { jsonOf } from "./json-argument.ts";
import { type ConnectionOptions, withConnection, withExamples, withJson } from "./options.ts";
import { printJson } from "./print-json.ts";
import { printable } from "./terminal.ts";

interface EmitFlags extends ConnectionOptions {
  key?: string;
  json?: boolean;
}

export function emitCommand(): Command {
  const command = new Command("emit")
    .description("send an event: it starts a run of each workflow that listens for it")
    .argument("<event>", "its name")
    .argument("[payload]", "the input of the runs: JSON, @FILE for a file, - for standard input. Default: null");
  withJson(withConnection(command)).option("--key <key>", "idempotency key: a second event with the same key starts nothing").action(emit);
  return withExamples(command, [
    ["longshore emit order.created '{\"id\":7}' --key order-7", "safe to repeat"],
    ["longshore emit order.created @order.json", "the payload is in a file"],
  ]);
}

async function emit(name: string, payload: string | undefined, { key, json, ...flags }: EmitFlags): Promise<void> {
  const body = { name, payload: payload === undefined ? null : jsonOf(payload, "the payload"), key };
  const emitted = await connect(flags).post<EmittedEvent>("/events", body);
  if (json) return printJson(emitted);
  const lines = emitted.runs.map(({ workflow, id, created }) => `${workflow} ${id} ${created ? "started" : "was started before"}`);
  const text =
    lines.length === 0 ? [`No workflow listens for ${name}, or its match does not fit the payload: nothing was started.`] : lines;
  process.stdout.write(`${text.map(printable).join("\n")}\n`);
}
