// Checks a workflow written in code, as it arrives over HTTP: the JSON that `graph()` makes.

import { z } from "zod";
import { eventNameMax, matchFieldsMax, matchValuesMax, triggersMax } from "../../../core/event-trigger.ts";
import { isObject } from "../../../core/json/json.ts";
import { limitOverlaps, limitPathMax, limitRunsMax } from "../../../core/start-limit.ts";
import {
  heldMax,
  labelCharsMax,
  labelsMax,
  limitKeyCharsMax,
  limitsMax,
  priorityMax,
  retriesMax,
  waitMsMax,
} from "../../../core/step-bounds.ts";
import { nodesMax } from "../../../engine/run/plan.ts";

const name = z
  .string()
  .regex(/^[\w./:@-]{1,200}$/)
  .describe("1 to 200 letters, digits and . _ - / : @");
/** The same names as `task()` accepts. A step with another name would wait forever. */
export const taskName = z
  .string()
  .regex(/^[\w./:-]{1,200}$/)
  .describe("1 to 200 letters, digits and . _ - / :");
const stepId = z.string().min(1).max(256).describe("1 to 256 characters");
export const milliseconds = z.number().int().min(1).max(waitMsMax).describe(`milliseconds, 1 to ${waitMsMax}`);
export const count = z.number().int().min(0).max(retriesMax).describe(`a whole number, at most ${retriesMax}`);
const share = z.number().min(0).max(1).optional().describe("a share from 0 to 1");
export const delay = z.number().int().min(0).max(waitMsMax).describe(`milliseconds, at most ${waitMsMax}`);

const value = z
  .unknown()
  .refine((given) => referencesAreWhole(given), 'a reference is {"$ref":{"step":"...","path":[...]}}')
  .describe("any JSON value, in which references are replaced by results");

/** A value that may also refer to the item of a map. */
const itemValue = z
  .unknown()
  .refine((given) => referencesAreWhole(given, true), 'a reference is {"$ref":{"item":"value","path":[...]}}, or to a step')
  .describe("any JSON value, in which references are replaced by the item and by results");

export const backoff = z.discriminatedUnion("kind", [
  z.strictObject({ kind: z.literal("fixed"), delayMs: delay, jitter: share }),
  z.strictObject({ kind: z.literal("linear"), delayMs: delay, maxMs: delay.optional(), jitter: share }),
  z.strictObject({ kind: z.literal("fibonacci"), delayMs: delay, maxMs: delay.optional(), jitter: share }),
  z.strictObject({
    kind: z.literal("exponential"),
    delayMs: delay,
    maxMs: delay.optional(),
    factor: z.number().min(1).max(100).optional(),
    jitter: share,
  }),
]);

export const priority = z
  .number()
  .int()
  .min(-priorityMax)
  .max(priorityMax)
  .describe(`a whole number from -${priorityMax} to ${priorityMax}; smaller numbers are taken first`);
export const labels = z.array(z.string().min(1).max(labelCharsMax)).max(labelsMax).describe(`at most ${labelsMax} texts`);

const limit = z.strictObject({
  key: z.string().min(1).max(limitKeyCharsMax),
  held: z.number().int().min(1).max(heldMax).optional(),
  rate: z.strictObject({ count: z.number().int().min(1).max(heldMax), windowMs: milliseconds }).optional(),
});

/** The kinds of steps. */
const kinds = ["task", "workflow", "sleep", "signal", "map"] as const;

const map = z.strictObject({
  task: taskName,
  each: itemValue.optional(),
  concurrency: z.number().int().min(1).max(heldMax).optional(),
});

const inputSchema = z.record(z.string(), z.unknown()).describe("the JSON Schema of the input: a start with another input is refused");

const step = z
  .strictObject({
    id: stepId,
    task: taskName.optional(),
    workflow: name.optional(),
    sleep: z.union([z.strictObject({ for: value }), z.strictObject({ until: value })]).optional(),
    signal: value.optional(),
    signalSchema: inputSchema.describe("the JSON Schema of the value of the signal").optional(),
    map: map.optional(),
    input: value,
    after: z.array(stepId).max(nodesMax).optional(),
    startWhen: z.literal("first-part").optional(),
    when: value.optional(),
    always: z.boolean().optional(),
    retry: z.strictObject({ failures: count, lost: count.optional(), backoff: backoff.optional() }).optional(),
    timeoutMs: milliseconds.optional(),
    totalMs: milliseconds.optional(),
    claimMs: milliseconds.optional(),
    priority: priority.optional(),
    labels: labels.optional(),
    limits: z.array(limit).max(limitsMax).optional(),
  })
  .refine((given) => kinds.filter((kind) => given[kind] !== undefined).length === 1, `a step has one of ${kinds.join(", ")}`)
  .refine((given) => given.signalSchema === undefined || given.signal !== undefined, "signalSchema is for a step that waits for a signal");

const plainValue = z.union([z.string(), z.number(), z.boolean(), z.null()]);
const trigger = z.strictObject({
  event: z.string().min(1).max(eventNameMax).describe(`1 to ${eventNameMax} characters`),
  match: z
    .record(z.string().max(200), z.union([plainValue, z.array(plainValue).max(matchValuesMax)]))
    .refine((given) => Object.keys(given).length <= matchFieldsMax, `at most ${matchFieldsMax} fields`)
    .optional(),
});
const events = z
  .array(trigger)
  .max(triggersMax)
  .describe(`the events that start a run, at most ${triggersMax}; their payload is its input`);

const startLimit = z
  .strictObject({
    runs: z.number().int().min(1).max(limitRunsMax).optional().describe(`1 to ${limitRunsMax}; 1 when absent`),
    key: z.string().min(1).max(limitPathMax).optional().describe("the field of the input that runs are counted by, such as customer.id"),
    overlap: z.enum(limitOverlaps).optional().describe("what happens to a start when the limit is reached; `queue` when absent"),
  })
  .describe("how many runs may be open at once");

const debounce = z
  .strictObject({
    key: z.string().min(1).max(limitPathMax).optional().describe("the field of the input by which starts belong together"),
    periodMs: milliseconds,
    atMostMs: milliseconds.optional(),
  })
  .refine(({ periodMs, atMostMs = periodMs }) => atMostMs >= periodMs, "atMostMs must not be below periodMs")
  .describe("how starts that come close together become one run");

export const codeSource = z
  .strictObject({
    name,
    steps: z.array(step).max(nodesMax).describe(`at most ${nodesMax} steps`),
    output: value,
    timeoutMs: milliseconds.optional(),
    inputSchema: inputSchema.optional(),
    events: events.optional(),
    limit: startLimit.optional(),
    debounce: debounce.optional(),
  })
  .refine((given) => new Set(given.steps.map(({ id }) => id)).size === given.steps.length, "each step needs an id of its own")
  .meta({ id: "WorkflowSource" });

/** A durable function: its code is in the workers. */
export const functionSource = z
  .strictObject({
    name: z
      .string()
      .regex(/^[\w./:-]{1,150}$/)
      .describe("1 to 150 letters, digits and . _ - / :"),
    function: z.literal(true),
    timeoutMs: milliseconds.optional(),
    inputSchema: inputSchema.optional(),
    events: events.optional(),
    limit: startLimit.optional(),
    debounce: debounce.optional(),
  })
  .meta({ id: "FunctionSource" });

/** The checked source, without fields that zod may have added. */
export function sourceText(source: z.output<typeof codeSource> | z.output<typeof functionSource>): string {
  return JSON.stringify(source);
}

function referencesAreWhole(given: unknown, hasItem = false): boolean {
  if (Array.isArray(given)) return given.every((inner) => referencesAreWhole(inner, hasItem));
  if (!isObject(given)) return true;
  const keys = Object.keys(given);
  if (keys.length === 1 && keys[0] === "$ref") return isReference(given.$ref, hasItem);
  const fields = keys.length === 1 && keys[0] === "$value" ? given.$value : given;
  return isObject(fields) && Object.values(fields).every((inner) => referencesAreWhole(inner, hasItem));
}

function isReference(given: unknown, hasItem: boolean): boolean {
  if (!isObject(given) || Object.keys(given).some((key) => !["step", "path", "item"].includes(key))) return false;
  const { step: from, item, path } = given;
  if (from !== undefined && typeof from !== "string") return false;
  if (item !== undefined && (!hasItem || from !== undefined || (item !== "value" && item !== "index"))) return false;
  return Array.isArray(path) && path.every((inner) => typeof inner === "string" || (Number.isInteger(inner) && inner >= 0));
}
