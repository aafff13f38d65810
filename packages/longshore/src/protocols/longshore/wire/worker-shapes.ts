// The shapes of workers, of queues, and of the limits under which workers hold tasks.

import { z } from "zod";
import { time, waitingShape } from "./shapes.ts";

export const haltShape = z
  .object({
    reason: z.string().nullable(),
    by: z.string().nullable().describe("The name of the token that ordered it."),
    at: time,
  })
  .meta({ id: "Halt" });

export const workerShape = z
  .object({
    id: z.string(),
    protocol: z.string(),
    status: z
      .enum(["idle", "busy", "unheard", "offline"])
      .describe("`unheard`: the server knew it before its last start, and it has been silent since."),
    labels: z.array(z.string()),
    lanes: z.array(z.string()).describe("The names of its recent claims; empty when it has not claimed since the server started."),
    does: z
      .array(z.string())
      .describe(
        "Its abilities, in the terms of its protocol: handlers, types of tasks, components or roles. `workflow NAME`: it has the code of this durable function.",
      ),
    registeredAt: time,
    seenAt: time,
    cordoned: haltShape.nullable().describe("Since when it gets no more tasks, and why; null for most."),
    slots: z.number().int().nullable().describe("How many tasks it can hold at the same time; null when it has not said so."),
    host: z.string().nullable().describe("Of its process, as far as it says so; the same for `pid`, `language` and `version`."),
    pid: z.number().int().nullable(),
    language: z.string().nullable(),
    version: z.string().nullable().describe("Of its client."),
    perMinute: z.number().int().describe("Attempts that it ended in the last minute."),
    failed: z.number().int().describe("Its attempts of the last 15 minutes that failed."),
    p95: z.number().nullable().describe("Of 100 attempts, 95 took at most this many milliseconds; null before the first."),
    tasks: z.array(z.object({ taskId: z.string(), runId: z.string().nullable(), step: z.string(), claimedAt: time })),
  })
  .meta({ id: "Worker" });

const rateShape = z.object({ count: z.number().int(), windowMs: z.number().int() });

export const limitShape = z
  .object({
    key: z.string(),
    held: z.number().int().describe("Tasks that are held under this key."),
    max: z.number().int().nullable().describe("How many may be held at the same time; null for any number."),
    rate: rateShape.extend({ used: z.number().int() }).nullable().describe("How many may be handed out in any window, and how many were."),
    waiting: z.number().int().describe("Tasks that wait for room under this key."),
    lanes: z.array(z.string()).describe("The lanes of these tasks."),
    freeAt: time.nullable().describe("When the window has room again; null when it has, or when a held task must end first."),
    change: z
      .object({
        held: z.number().int().nullable().optional(),
        rate: rateShape.nullable().optional(),
        reason: z.string().nullable(),
        by: z.string().nullable(),
        at: time,
      })
      .nullable()
      .describe("What an operator has changed; null while the limits are those of the tasks."),
  })
  .meta({ id: "Limit" });

export const queueShape = z
  .object({
    lane: z.string(),
    labels: z.array(z.string()),
    ready: z.number().int().describe("Tasks that could be taken now."),
    sent: z.number().int().describe("Tasks that the server sends to workers that do not poll, and that no worker has started yet."),
    oldestAt: time.nullable().describe("Since when the oldest ready or sent task has been waiting."),
    held: z.number().int().describe("Tasks that workers hold."),
    delayed: z.number().int().describe("Tasks whose delay has not ended, among the newest 1,000 queued tasks of all lanes."),
    limited: z.number().int().describe("Tasks that wait for room under a limit."),
    limits: z.array(z.string()).describe("The keys of these limits."),
    claimedPerMinute: z.number().int().describe("Hand-outs of the last minute, of all lanes with this name."),
    workP95: z.number().nullable().describe("Of 100 attempts of the last 15 minutes, 95 took at most this many milliseconds."),
    pollers: z.number().int().describe("Claims that wait for this lane."),
    workers: z.number().int().describe("Live workers that could take from this lane."),
    polledAt: time.nullable().describe("When a worker last claimed from this lane."),
    paused: haltShape.nullable().describe("Since when nothing is handed out, and why; null for most."),
    waiting: waitingShape.nullable().describe("Why no worker has taken the oldest task; null when there is none."),
  })
  .meta({ id: "Queue" });
