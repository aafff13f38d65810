// Workers and queues: who could take what, and why anything waits.

import { z } from "zod";
import { eligible } from "../../board/lanes.ts";
import type { Lane } from "../../board/task.ts";
import type { WorkerView } from "../../board/workers.ts";
import type { Engine } from "../engine.ts";
import { queueStates } from "../queues.ts";
import { json, type Operation, operation } from "./operation.ts";
import { pageOf, waitingShape } from "./shapes.ts";

const tag = "workers";
const time = z.number().int();

export const workerShape = z
  .object({
    id: z.string(),
    protocol: z.string(),
    status: z.enum(["idle", "busy", "offline"]),
    labels: z.array(z.string()),
    lanes: z.array(z.string()).describe("What it last asked for; empty when it has not asked since the server started."),
    registeredAt: time,
    seenAt: time,
    tasks: z.array(z.object({ taskId: z.string(), runId: z.string().nullable(), step: z.string(), claimedAt: time })),
  })
  .meta({ id: "Worker" });

export const queueShape = z
  .object({
    lane: z.string(),
    labels: z.array(z.string()),
    ready: z.number().int().describe("Tasks that could be taken now."),
    oldestAt: time.nullable().describe("Since when the oldest of them has been waiting."),
    pollers: z.number().int().describe("Claims that stand in line for this lane."),
    workers: z.number().int().describe("Live workers that could take from this lane."),
    polledAt: time.nullable().describe("When somebody last asked for its tasks."),
    waiting: waitingShape.nullable().describe("Why the oldest has not been taken; null when there is none."),
  })
  .meta({ id: "Queue" });

export function workerOperations(engine: Engine): Operation[] {
  return [
    operation({
      ...{ id: "listWorkers", tag, method: "GET", path: "/workers", scope: "read" },
      summary: "List workers, in the order in which they came.",
      answers: { 200: { description: "Every worker that is remembered.", schema: pageOf(workerShape) } },
      handle: () => json(200, { items: engine.workers.list().map(workerBody), next: null }),
    }),
    operation({
      ...{ id: "listQueues", tag, method: "GET", path: "/queues", scope: "read" },
      summary: "List lanes with what stands in them.",
      answers: { 200: { description: "Every lane that has been used since the server started.", schema: pageOf(queueShape) } },
      handle: () => json(200, { items: queueBodies(engine), next: null }),
    }),
  ];
}

function workerBody({ id, protocol, status, labels, reach, registeredAt, seenAt, tasks }: WorkerView) {
  return { id, protocol, status, labels, lanes: reach?.names ?? [], registeredAt, seenAt, tasks };
}

function queueBodies(engine: Engine) {
  const why = engine.waiting();
  const live = engine.workers.list().filter((worker) => worker.status !== "offline");
  return queueStates(engine).map(({ lane, ready, oldest, pollers, polledAt }) => ({
    lane: lane.name,
    labels: lane.labels,
    ready,
    oldestAt: oldest?.queuedAt ?? null,
    pollers,
    workers: live.filter((worker) => reaches(worker, lane)).length,
    polledAt: polledAt === 0 ? null : polledAt,
    waiting: oldest === null ? null : why(oldest),
  }));
}

function reaches(worker: WorkerView, lane: Lane): boolean {
  return eligible(lane, worker.reach ?? { names: [lane.name], labels: worker.labels });
}
