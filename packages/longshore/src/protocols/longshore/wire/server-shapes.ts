// The shapes of what a server reports about itself and about the caller.

import { z } from "zod";
import { time } from "./shapes.ts";

const scope = z.enum(["read", "worker", "operator"]);

export const whoamiShape = z
  .object({
    name: z.string().nullable().describe("The name of the token; null without one."),
    tokensRequired: z.boolean().describe("False for a server without tokens: every caller may do everything."),
    scopes: z.array(scope),
    actions: z
      .record(
        z.string(),
        z.object({
          may: z.boolean(),
          needs: z.enum(["anyone", "read", "worker", "operator"]).describe("The scope that allows it; `operator` allows everything."),
          what: z.string().describe("A text for people that completes `may`."),
        }),
      )
      .describe("Every action of the server, by its name."),
  })
  .meta({ id: "Whoami" });

const keepShape = z.object({
  ageMs: z.number().nullable().describe("How long after the end or the last use; null without a limit."),
  count: z.number().nullable().describe("How many at most; null without a limit."),
});

export const infoShape = z
  .object({
    version: z.string(),
    node: z.string().describe("The version of Node."),
    host: z.string(),
    pid: z.number().int(),
    startedAt: z.number().int(),
    now: z.number().int().describe("The clock of the server."),
    store: z.object({
      name: z.string(),
      writable: z.boolean(),
      problem: z.string().nullable().describe("Why it cannot be written."),
      parts: z.array(z.object({ part: z.string(), bytes: z.number() })),
    }),
    stored: z
      .array(z.object({ kind: z.string(), bytes: z.number(), max: z.number(), refused: z.number() }))
      .describe("Bytes by kind, with the quota of each kind."),
    kept: z
      .object({ runs: keepShape, tasks: keepShape, logs: keepShape, blobs: keepShape, audit: keepShape })
      .describe("How long ended runs and tasks, and other data, are kept."),
    counts: z.object({ openRuns: z.number().int(), endedRuns: z.number().int(), endedTasks: z.number().int() }),
  })
  .meta({ id: "Info" });

export const hintsShape = z
  .object({
    items: z.array(
      z.object({
        protocol: z.string(),
        language: z.string(),
        how: z.string().describe("What to do with the program: the file to save it as, or where to paste it."),
        code: z.string(),
        tryIt: z.string().describe("A job for the worker, and the commands that run it."),
      }),
    ),
    asksToken: z.boolean().describe("Whether the server requires a token; the programs then read it from LONGSHORE_TOKEN."),
  })
  .meta({ id: "Hints" });

export const nodeShape = z
  .object({
    id: z.string(),
    url: z.string().nullable().describe("Where the other servers reach it; null for a server without a port."),
    version: z.string(),
    state: z.enum(["owner", "member"]).describe("The owner performs the requests of all of them."),
    startedAt: time,
    seenAt: time.describe("When it last renewed its row in the database."),
    epoch: z
      .number()
      .int()
      .nullable()
      .describe("Counts the owners of the data. Null for a member, and for a server that does not share its data."),
    leaseMs: z.number().int().nullable().describe("How long the owner's lease lasts without a renewal."),
  })
  .meta({ id: "Node" });
