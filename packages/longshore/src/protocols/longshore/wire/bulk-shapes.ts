// The shapes of orders to many runs.

import { z } from "zod";

export const bulkActions = ["cancel", "pause", "resume", "retry", "rerun", "remove"] as const;

export const bulkShape = z
  .object({
    id: z.string(),
    action: z.enum([...bulkActions, "rerun-from"]),
    dry: z.boolean().describe("True: it only counts what it would do."),
    state: z.enum(["running", "done", "stopped"]),
    done: z.number().int().describe("Runs that got the order; of a dry job, those that would get it."),
    skipped: z.record(z.string(), z.number().int()).describe("Runs to which the order does not apply, by the reason, such as `has ended`."),
    refused: z.number().int().describe("Runs whose order failed; the others got it all the same."),
    errors: z.array(z.object({ run: z.string(), error: z.string() })).describe("The first of those that were refused."),
    looked: z.number().int().nullable().describe("Stored runs that were visited; null for a list of ids."),
    of: z.number().int().nullable().describe("How many there are: stored runs, or ids."),
    limit: z.number().int(),
    perSecond: z.number().nullable(),
    reason: z.string().nullable(),
    caller: z.string().nullable().describe("The name of the token that ordered it; null without one."),
    createdAt: z.number().int(),
    endedAt: z.number().int().nullable(),
  })
  .meta({ id: "Bulk" });
