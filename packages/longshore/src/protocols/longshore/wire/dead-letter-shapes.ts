// The shapes of dead letters over all runs.

import { z } from "zod";

const letterShape = z.object({
  runId: z.string(),
  workflow: z.string(),
  runState: z.string(),
  step: z.string(),
  taskId: z.string(),
  uid: z.string().describe("The name of the part of the input that was put aside."),
  reason: z.string().describe("A code for programs."),
  error: z.string().nullable(),
  tries: z.number().int(),
});

export const deadLettersShape = z
  .object({
    items: z.array(letterShape),
    groups: z
      .array(
        z.object({
          reason: z.string(),
          error: z.string().describe("Without numbers, ids and quoted texts, so that similar errors are one group."),
          count: z.number().int(),
          steps: z.array(z.object({ run: z.string(), step: z.string() })).describe("The steps that have these letters, each once."),
        }),
      )
      .describe("Of the letters of this page; a client adds up the pages."),
    next: z.string().nullable(),
    looked: z.number().int().describe("Runs that this page has visited."),
    of: z.number().int().nullable().describe("Stored runs."),
  })
  .meta({ id: "DeadLetters" });
