// The shapes of signals to runs, and of events that start runs.

import { z } from "zod";
import { maybeTime, time, value } from "./shapes.ts";

export const signalShape = z
  .object({
    runId: z.string(),
    number: z.number().int().describe("Place among the signals of its run, from 1."),
    name: z.string(),
    key: z.string().nullable().describe("A second signal with the same key changes nothing."),
    state: z
      .enum(["kept", "taken"])
      .describe("`kept`: no step has taken it yet. `taken`: a step has it, or has dropped it because it did not fit its schema."),
    value: value.describe("Null for a signal that was taken: the output of the step is its value."),
    sentAt: time,
    takenAt: maybeTime,
    taskId: z.string().nullable().describe("The step that has taken it; null for a signal that was dropped."),
    attempt: z.number().int().nullable().describe("The attempt of this step, from 1."),
  })
  .meta({ id: "Signal" });

/** What an event has started. */
export const emittedShape = z
  .object({
    event: z.string(),
    runs: z.array(
      z.object({
        workflow: z.string(),
        id: z.string(),
        created: z.boolean().describe("False when an earlier event with the same key has started it."),
      }),
    ),
  })
  .meta({ id: "EmittedEvent" });

export const sentSignalShape = signalShape
  .extend({
    awaited: z.array(z.string()).optional().describe("Of a signal that is kept: the names of the signals that steps of the run wait for."),
  })
  .meta({ id: "SentSignal" });
