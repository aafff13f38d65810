// Events that start workflows.

import { z } from "zod";
import { eventNameMax } from "../../../core/event-trigger.ts";
import { writeExact } from "../../../core/json/json-exact.ts";
import { checkEvent, eventKeyMax } from "../../../engine/event/store.ts";
import type { ProtocolEngine } from "../../server-half.ts";
import { emittedShape } from "../wire/signal-shapes.ts";
import { json, type Operation, operation } from "./operation.ts";

/** Control characters in a name would break logs and terminals, and SQLite may cut a text at NUL. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is refused.
const plain = /^[^\u0000-\u001f\u007f]*$/;

/** As long as ids of other orchestrators: their runs are not known here, and count for nothing. */
const runIdMax = 256;

const emitBody = z.strictObject({
  name: z.string().min(1).max(eventNameMax).regex(plain).describe(`the name of the event: a text of 1 to ${eventNameMax} characters`),
  payload: z.unknown().optional().describe("any JSON value; null when absent. It is the input of the runs"),
  key: z
    .string()
    .min(1)
    .max(eventKeyMax)
    .regex(plain)
    .optional()
    .describe(`a text of 1 to ${eventKeyMax} characters; a second event with the same name, key and payload starts nothing`),
  run: z
    .string()
    .min(1)
    .max(runIdMax)
    .regex(plain)
    .optional()
    .describe("the id of the run whose step sends the event: the runs that it starts count for the same quota of open runs"),
});

export function emitOperations({ events, makeId, clock }: Pick<ProtocolEngine, "events" | "makeId" | "clock">): Operation[] {
  return [
    operation({
      ...{ id: "emitEvent", tag: "runs", method: "POST", path: "/events", action: "run.start" },
      summary: "Send an event: it starts a run of each workflow that listens for its name.",
      body: emitBody,
      answers: {
        202: { description: "The runs, which are stored; none when no workflow listens.", schema: emittedShape },
        409: { description: "The key has been used for an event with another payload." },
      },
      async handle({ body: { name, payload, key, run: runId } }) {
        checkEvent(name, key);
        const newId = () => makeId(clock.now());
        const started = await events.emit({ name, payload: writeExact(payload ?? null), key: key ?? newId(), runId }, newId);
        const runs = started.map(({ run, created }) => ({ workflow: run.workflow, id: run.id, created }));
        return json(202, { event: name, runs });
      },
    }),
  ];
}
