// Signals to runs: sending and listing.

import { z } from "zod";
import { idOfUuid } from "../../../core/ids.ts";
import { writeExact } from "../../../core/json/json-exact.ts";
import { signalKeyMax, signalNameMax } from "../../../engine/signal/signal.ts";
import type { ProtocolEngine } from "../../server-half.ts";
import { pageOf } from "../wire/shapes.ts";
import { sentSignalShape, signalShape } from "../wire/signal-shapes.ts";
import { signalBody } from "./bodies.ts";
import { jsonPage } from "./json-page.ts";
import { json, type Operation, operation } from "./operation.ts";
import { limit, position } from "./query.ts";
import { knownRun, runNotFound } from "./runs.ts";

const tag = "signals";
const states = ["kept", "taken"] as const;

const sendBody = z.strictObject({
  name: z.string().min(1).max(signalNameMax).describe(`what a step waits for: a text of 1 to ${signalNameMax} characters`),
  value: z.unknown().optional().describe("any JSON value; null when absent. It becomes the output of the step"),
  key: z
    .string()
    .min(1)
    .max(signalKeyMax)
    .optional()
    .describe(`a text of 1 to ${signalKeyMax} characters; a second signal to the run with the same key changes nothing`),
});

const listQuery = z.strictObject({
  state: z
    .enum(states)
    .optional()
    .describe(`one of ${states.join(", ")}; all when absent`),
  limit,
  after: position,
});

export function signalOperations({ signals, reader }: Pick<ProtocolEngine, "signals" | "reader">): Operation[] {
  const idOf = (given = "") => idOfUuid(given) ?? given;
  return [
    operation({
      ...{ id: "sendSignal", tag, method: "POST", path: "/runs/:id/signals", action: "run.signal" },
      summary: "Send a signal to a run. It is kept until a step of the run waits for its name.",
      body: sendBody,
      answers: {
        202: {
          description: "The signal as it is now: kept, or taken by a step. With a known key, the earlier signal with this key.",
          schema: sentSignalShape,
        },
        409: { description: "The run has ended." },
        ...runNotFound,
      },
      async handle({ params, body: { name, value, key } }) {
        const sent = await signals.send(idOf(params.id), { name, value: writeExact(value ?? null), key });
        const body = signalBody(sent);
        return json(202, body.state === "taken" ? body : { ...body, awaited: await signals.awaited(sent.runId) });
      },
    }),
    operation({
      ...{ id: "listSignals", tag, method: "GET", path: "/runs/:id/signals", action: "run.read", stored: true },
      summary: "List the signals of a run, oldest first.",
      query: listQuery,
      answers: { 200: { description: "A page; it may be short and still have a next.", schema: pageOf(signalShape) }, ...runNotFound },
      async handle({ params, query }) {
        const { id } = await knownRun((run) => reader.runHead(run), params.id);
        const { items, next } = await signals.list(id, query);
        return jsonPage(reader, { items, next: next === null ? null : String(next) }, signalBody);
      },
    }),
  ];
}
