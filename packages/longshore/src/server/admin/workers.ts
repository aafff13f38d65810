// Workers and queues: who could take what, and why anything waits.

import { z } from "zod";
import { eligible, laneKey } from "../../board/lanes.ts";
import type { Lane, Task } from "../../board/task.ts";
import { type WorkerView, workerStatuses } from "../../board/workers.ts";
import type { Engine } from "../engine.ts";
import { type QueueState, queueStates, type SentTasks, sentTasks } from "../queues.ts";
import { json, type Operation, operation } from "./operation.ts";
import { pageOf, waitingShape } from "./shapes.ts";

const tag = "workers";
const time = z.number().int();

export const workerShape = z
  .object({
    id: z.string(),
    protocol: z.string(),
    status: z.enum(workerStatuses).describe("`unheard`: known from before the server started, and not heard of since."),
    labels: z.array(z.string()),
    lanes: z.array(z.string()).describe("What it has asked for lately; empty when it has not asked since the server started."),
    does: z.array(z.string()).describe("What it does, in the words of its protocol: handlers, types of tasks, components or roles."),
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
    sent: z
      .number()
      .int()
      .describe("Tasks that were sent to workers that do not come for them, or are about to be, and that none has taken up."),
    oldestAt: time.nullable().describe("Since when the oldest of both has been waiting."),
    pollers: z.number().int().describe("Claims that stand in line for this lane."),
    workers: z.number().int().describe("Live workers that could take from this lane."),
    polledAt: time.nullable().describe("When somebody last asked for its tasks."),
    waiting: waitingShape.nullable().describe("Why the oldest has not been taken; null when there is none."),
  })
  .meta({ id: "Queue" });

export function workerOperations(engine: Engine): Operation[] {
  return [
    operation({
      ...{ id: "listWorkers", tag, method: "GET", path: "/workers", action: "worker.read" },
      summary: "List workers, in the order in which they came.",
      answers: { 200: { description: "Every worker that is remembered.", schema: pageOf(workerShape) } },
      handle: () => json(200, { items: engine.workers.list().map(workerBody), next: null }),
    }),
    operation({
      ...{ id: "listQueues", tag, method: "GET", path: "/queues", action: "queue.read" },
      summary: "List lanes with what stands in them.",
      answers: { 200: { description: "Every lane that has been used since the server started.", schema: pageOf(queueShape) } },
      handle: async () => json(200, { items: await queueBodies(engine), next: null }),
    }),
  ];
}

function workerBody({ id, protocol, status, labels, reach, does, registeredAt, seenAt, tasks }: WorkerView) {
  return { id, protocol, status, labels, lanes: reach?.names ?? [], does, registeredAt, seenAt, tasks };
}

async function queueBodies(engine: Engine) {
  const sent = await sentTasks(engine);
  const why = engine.waiting();
  const live = engine.workers.list().filter((worker) => worker.status !== "offline");
  const states = queueStates(engine);
  const known = new Set(states.map(({ lane }) => laneKey(lane)));
  // After a restart nobody has used the lane of what was sent before it.
  for (const [key, { lane }] of sent) if (!known.has(key)) states.push({ lane, ready: 0, oldest: null, pollers: 0, polledAt: 0 });
  return states.map((state) => {
    const { lane, ready, pollers, polledAt } = state;
    const onTheirWay = sent.get(laneKey(lane));
    const oldest = oldestOf(state, onTheirWay);
    return {
      lane: lane.name,
      labels: lane.labels,
      ready,
      sent: onTheirWay?.count ?? 0,
      oldestAt: oldest?.queuedAt ?? null,
      pollers,
      workers: live.filter((worker) => reaches(worker, lane)).length,
      polledAt: polledAt === 0 ? null : polledAt,
      waiting: oldest === null ? null : why(oldest),
    };
  });
}

function oldestOf({ oldest }: QueueState, sent: SentTasks | undefined): Task | null {
  if (sent === undefined) return oldest;
  return oldest === null || sent.oldest.queuedAt <= oldest.queuedAt ? sent.oldest : oldest;
}

function reaches(worker: WorkerView, lane: Lane): boolean {
  return eligible(lane, worker.reach ?? { names: [lane.name], labels: worker.labels });
}
