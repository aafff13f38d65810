// The shapes of the audit, of tokens and of the sizes of the data.

import { z } from "zod";

export const auditKinds = ["run", "task", "queue", "worker", "limit", "schedule", "definition", "document", "bulk", "dead-letter"] as const;

const values = z
  .record(z.string(), z.union([z.string(), z.number(), z.boolean(), z.null()]))
  .nullable()
  .describe("Only what the order changed; null where there was nothing, or is nothing any more.");

export const auditEntryShape = z
  .object({
    number: z.number().int().describe("Counts the entries."),
    at: z.number().int(),
    caller: z.string().nullable().describe("The name of the token; null without one."),
    via: z
      .string()
      .describe(
        "How the order arrived: a route or method, `program` for the program of the server, or `bulk` with the id of the job and its step, if it has one.",
      ),
    verb: z.string().describe("What was done, such as `cancel`, `pause`, `define`."),
    kind: z.enum(auditKinds).describe("What the order was given to."),
    target: z.string().describe("The id of the run or task, or the name of the queue, worker, schedule, workflow."),
    was: values,
    became: values,
    reason: z.string().nullable(),
  })
  .meta({ id: "AuditEntry" });

export const tokensShape = z
  .object({
    items: z.array(
      z.object({
        name: z.string(),
        scopes: z.array(z.enum(["read", "worker", "operator"])),
        usedAt: z.number().int().nullable().describe("The last use since the server has started; null without one."),
      }),
    ),
  })
  .meta({ id: "Tokens" });

export const storageShape = z
  .object({
    measuredAt: z.number().int().nullable().describe("Null for data in memory. Measured at most once a minute."),
    tables: z.array(z.object({ name: z.string(), bytes: z.number() })).describe("Each with its indexes, the largest first."),
  })
  .meta({ id: "Storage" });

export const pruningShape = z
  .object({
    runs: z.number().int().describe("How many ended runs would be removed."),
    of: z.number().int().describe("How many ended runs there are."),
  })
  .meta({ id: "Pruning" });
