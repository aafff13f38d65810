// Workers and queues: who could take what, and why anything waits.

import { z } from "zod";
import { Crews } from "../../../engine/board/crews.ts";
import { laneKey } from "../../../engine/board/lanes.ts";
import { lanesAfter, type QueueState, type SentTasks, sentTasks, stateOf } from "../../../engine/board/queue-state.ts";
import type { TaskRowHead } from "../../../engine/board/task.ts";
import { type Arrival, type WorkerView, workerStatuses } from "../../../engine/board/workers.ts";
import type { Engine } from "../../../server/engine.ts";
import { json, jsonText, type Operation, operation } from "./operation.ts";
import { limit, position } from "./query.ts";
import { pageOf, waitingShape } from "./shapes.ts";

const tag = "workers";
const time = z.number().int();

export const workerShape = z
  .object({
    id: z.string(),
    protocol: z.string(),
    status: z.enum(workerStatuses).describe("`unheard`: known from before the server started, and silent since."),
    labels: z.array(z.string()),
    lanes: z.array(z.string()).describe("The names it has claimed lately; empty when it has not claimed since the server started."),
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
    sent: z.number().int().describe("Tasks that the server sends to workers that do not poll, and that no worker has started yet."),
    oldestAt: time.nullable().describe("Since when the oldest ready or sent task has been waiting."),
    pollers: z.number().int().describe("Claims that wait for this lane."),
    workers: z.number().int().describe("Live workers that could take from this lane."),
    polledAt: time.nullable().describe("When a worker last claimed from this lane."),
    waiting: waitingShape.nullable().describe("Why the oldest has not been taken; null when there is none."),
  })
  .meta({ id: "Queue" });

/** Where a page of workers ends: when the last of them came, and its id. */
const arrival = z
  .string()
  .max(600)
  .regex(/^\d{1,15}:./s)
  .transform((text): Arrival => {
    const colon = text.indexOf(":");
    return { registeredAt: Number(text.slice(0, colon)), id: text.slice(colon + 1) };
  })
  .optional()
  .describe("the `next` of the page before");

export function workerOperations(engine: Engine): Operation[] {
  return [
    operation({
      ...{ id: "listWorkers", tag, method: "GET", path: "/workers", action: "worker.read" },
      summary: "List workers, in the order in which they came.",
      query: z.strictObject({ limit, after: arrival }),
      answers: { 200: { description: "A page of the workers that are remembered.", schema: pageOf(workerShape) } },
      handle: async ({ query }) => jsonText(200, await workerPage(engine, query)),
    }),
    operation({
      ...{ id: "listQueues", tag, method: "GET", path: "/queues", action: "queue.read" },
      summary: "List lanes with their tasks.",
      query: z.strictObject({ limit, after: position }),
      answers: { 200: { description: "A page of the lanes that have been used since the server started.", schema: pageOf(queueShape) } },
      handle: async ({ query }) => json(200, await queuePage(engine, query)),
    }),
  ];
}

function workerBody({ id, protocol, status, labels, reach, does, registeredAt, seenAt, tasks }: WorkerView) {
  return { id, protocol, status, labels, lanes: reach?.names ?? [], does, registeredAt, seenAt, tasks };
}

/** As JSON text: a worker may have a thousand labels. */
async function workerPage({ workers, reader }: Engine, { limit: most, after }: { limit: number; after?: Arrival }): Promise<string> {
  let next: string | null = null;
  async function* items(): AsyncGenerator<string, void, void> {
    let last: WorkerView | undefined;
    let count = 0;
    for await (const worker of workers.inOrder(after)) {
      if (count === most && last !== undefined) {
        next = `${last.registeredAt}:${last.id}`;
        return;
      }
      yield JSON.stringify(workerBody(worker));
      last = worker;
      count++;
    }
  }
  const list = await reader.listText(items);
  return `{"items":${list},"next":${JSON.stringify(next)}}`;
}

async function queuePage(engine: Engine, { limit: most, after }: { limit: number; after?: number }) {
  const sent = await sentTasks(engine);
  const body = bodyMaker(engine, sent);
  const items: Awaited<ReturnType<typeof body>>[] = [];
  let position = 0;
  for await (const queue of lanesAfter(engine, after)) {
    if (items.length === most) return { items, next: String(position) };
    position = queue.position;
    items.push(await body(await stateOf(engine, queue)));
  }
  // After a restart no worker has used the lane of what was sent before it.
  const { lanes } = engine;
  for (const { lane } of sent.values())
    if (!lanes.knows(lane)) items.push(await body({ lane, ready: 0, oldest: null, pollers: 0, polledAt: 0 }));
  return { items, next: null };
}

function bodyMaker(engine: Engine, sent: ReadonlyMap<string, SentTasks>) {
  const why = engine.waiting();
  const crews = new Crews(engine.workers, engine.slices);
  return async (state: QueueState) => {
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
      workers: (await crews.of(lane)).able,
      polledAt: polledAt === 0 ? null : polledAt,
      waiting: oldest === null ? null : await why(oldest),
    };
  };
}

function oldestOf({ oldest }: QueueState, sent: SentTasks | undefined): TaskRowHead | null {
  if (sent === undefined) return oldest;
  return oldest === null || sent.oldest.queuedAt <= oldest.queuedAt ? sent.oldest : oldest;
}
