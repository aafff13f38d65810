// Lists of runs without their data, as pages show them in tables.

import { z } from "zod";
import { maybeTime, runShape, runStates, runWaitingShape, time } from "./shapes.ts";

export const runSummaryShape = z
  .object({
    id: z.string(),
    workflow: z.string(),
    definitionId: z.string(),
    version: z.number().int().nullable().describe("The version of the definition; null when it was removed."),
    dialect: z.string().nullable().describe("The language of the definition; null when it was removed."),
    state: z.enum(runStates),
    createdAt: time,
    startAt: maybeTime.describe("When a run that was started with a delay begins; null once it has begun."),
    endedAt: maybeTime,
    durationMs: z.number().int().nullable().describe("From the creation to the end; null while it is open."),
    steps: z.number().int().describe("The number of started steps; a step that was started twice counts twice."),
    left: z.number().int().describe("Steps that have not settled."),
    failed: z.number().int().describe("Steps that failed."),
    retries: z.number().int().describe("How often it was tried again after its end."),
    priority: z.number().int(),
    alias: z.string().nullable(),
    parentTaskId: z.string().nullable().describe("The step of another run that waits for this one."),
    parentAttempt: z.number().int().describe("The attempt of this step, from 1."),
    firstError: z.string().nullable().describe("The first 200 characters of its error."),
    waiting: runWaitingShape.optional(),
  })
  .meta({ id: "RunSummary" });

export const runListShape = z
  .object({
    items: z.array(runSummaryShape),
    next: z.string().nullable(),
    looked: z.number().int().describe("How many runs this page has visited. The sum over all pages shows how far a search has come."),
    of: z.number().int().nullable().describe("How many runs are stored; null from a server that does not own the data."),
  })
  .meta({ id: "RunList" });

export type RunSummaryBody = z.output<typeof runSummaryShape>;
export type RunListBody = z.output<typeof runListShape>;

/** The two responses of one route: runs with their data, or without. */
export const anyRunListShape = z.union([runListShape, z.object({ items: z.array(runShape), next: z.string().nullable() })]);
