// Workers and queues: which workers could take which tasks, and why tasks wait.

import { z } from "zod";
import type { LongBytes } from "../../../core/long-bytes.ts";
import { functionOfLane } from "../../../core/turn.ts";
import { readAgent } from "../../../core/worker-agent.ts";
import { Crews } from "../../../engine/board/crews.ts";
import type { Halt } from "../../../engine/board/halts.ts";
import { laneKey } from "../../../engine/board/lanes.ts";
import type { LimitView } from "../../../engine/board/limit-changes.ts";
import { delayedTasks, lanesAfter, type QueueState, type SentTasks, sentTasks, stateOf } from "../../../engine/board/queue-state.ts";
import type { TaskRowHead } from "../../../engine/board/task.ts";
import type { Arrival, WorkerView } from "../../../engine/board/worker-view.ts";
import type { WorkerFigures } from "../../../engine/stats/statistics.ts";
import type { ProtocolEngine } from "../../server-half.ts";
import { pageOf } from "../wire/shapes.ts";
import { queueShape, workerShape } from "../wire/worker-shapes.ts";
import { json, jsonText, type Operation, operation } from "./operation.ts";
import { limit, position } from "./query.ts";

const tag = "workers";

/** The end of a page of workers: the arrival time and id of the last one. */
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

type WorkerDeps = Pick<
  ProtocolEngine,
  "board" | "carriers" | "clock" | "lanes" | "reader" | "slices" | "statistics" | "waiting" | "workers"
>;

export function workerOperations(deps: WorkerDeps): Operation[] {
  return [
    operation({
      ...{ id: "listWorkers", tag, method: "GET", path: "/workers", action: "worker.read" },
      summary: "List workers, in the order of their first request.",
      query: z.strictObject({ limit, after: arrival }),
      answers: { 200: { description: "A page of the workers that are remembered.", schema: pageOf(workerShape) } },
      handle: async ({ query }) => jsonText(200, await workerPage(deps, query)),
    }),
    operation({
      ...{ id: "listQueues", tag, method: "GET", path: "/queues", action: "queue.read" },
      summary: "List lanes with their tasks.",
      query: z.strictObject({ limit, after: position }),
      answers: {
        200: { description: "A page of the lanes that have a task, or a worker that has used them.", schema: pageOf(queueShape) },
      },
      handle: async ({ query }) => json(200, await queuePage(deps, query)),
    }),
  ];
}

function workerBody(
  { id, protocol, status, labels, reach, does, registeredAt, seenAt, cordoned, agent, slots, version, tasks }: WorkerView,
  figures: WorkerFigures | undefined,
) {
  const process = readAgent(agent, id);
  return {
    id,
    protocol,
    status,
    labels,
    lanes: reach?.names ?? [],
    does: workOf(does),
    registeredAt,
    seenAt,
    cordoned: cordoned ?? null,
    ...{ host: process.host, pid: process.pid, language: process.language },
    ...{ slots: slots ?? process.slots, version: version ?? process.version },
    ...{ perMinute: figures?.perMinute ?? 0, failed: figures?.failed ?? 0, p95: figures?.p95 ?? null },
    tasks: tasks.map(({ taskId, runId, step, claimedAt }) => ({ taskId, runId, step, claimedAt })),
  };
}

/** A lane of a durable function is shown under the name of its workflow. Each workflow is in the list once, behind the tasks. */
function workOf(does: readonly string[]): string[] {
  const functions = new Set(does.flatMap((name) => functionOfLane(name) ?? []));
  return [...does.filter((name) => functionOfLane(name) === undefined), ...[...functions].map((name) => `workflow ${name}`)];
}

/** As JSON text: a worker may have a thousand labels. */
async function workerPage(
  { workers, reader, statistics }: WorkerDeps,
  { limit: most, after }: { limit: number; after?: Arrival },
): Promise<string | LongBytes> {
  let next: string | null = null;
  async function* items(): AsyncGenerator<string, void, void> {
    let last: WorkerView | undefined;
    let count = 0;
    for await (const worker of workers.inOrder(after)) {
      if (count === most && last !== undefined) {
        next = `${last.registeredAt}:${last.id}`;
        return;
      }
      yield JSON.stringify(workerBody(worker, statistics.worker(worker.id)));
      last = worker;
      count++;
    }
  }
  return reader.listBody(items, { around: () => ['{"items":[', `],"next":${JSON.stringify(next)}}`] });
}

async function queuePage(deps: WorkerDeps, { limit: most, after }: { limit: number; after?: number }) {
  const sent = await sentTasks(deps);
  const body = bodyMaker(deps, sent, await delayedTasks(deps), limitedTasks(deps.board.limits.views()));
  const items: Awaited<ReturnType<typeof body>>[] = [];
  let position = 0;
  for await (const queue of lanesAfter(deps, after)) {
    if (items.length === most) return { items, next: String(position) };
    position = queue.position;
    const item = await body(await stateOf(deps, queue));
    if (isInUse(item)) items.push(item);
  }
  // After a restart, no worker has yet used the lanes of tasks that were sent before the restart.
  const { lanes } = deps;
  for (const { lane } of sent.values())
    if (!lanes.knows(lane)) items.push(await body({ lane, ready: 0, oldest: null, pollers: 0, polledAt: 0 }));
  return { items, next: null };
}

type InUse = { readonly [count in "ready" | "sent" | "held" | "delayed" | "limited" | "pollers" | "workers"]: number } & {
  readonly paused: Halt | null;
};

/** A lane is left out when it has no task and no worker could take from it: it remains from earlier work. */
function isInUse({ ready, sent, held, delayed, limited, pollers, workers, paused }: InUse): boolean {
  return ready + sent + held + delayed + limited + pollers + workers > 0 || paused !== null;
}

/** The tasks of each lane that wait for room under a limit, and the keys. */
function limitedTasks(views: readonly LimitView[]): Map<string, { count: number; readonly keys: string[] }> {
  const limited = new Map<string, { count: number; readonly keys: string[] }>();
  for (const { key, waiting } of views)
    for (const [lane, tasks] of waiting) {
      const found = limited.get(lane) ?? { count: 0, keys: [] };
      found.count += tasks;
      found.keys.push(key);
      limited.set(lane, found);
    }
  return limited;
}

function bodyMaker(
  deps: WorkerDeps,
  sent: ReadonlyMap<string, SentTasks>,
  delayed: ReadonlyMap<string, number>,
  limited: ReturnType<typeof limitedTasks>,
) {
  const why = deps.waiting();
  const crews = new Crews(deps.workers, deps.slices);
  return async (state: QueueState) => {
    const { lane, ready, pollers, polledAt } = state;
    const onTheirWay = sent.get(laneKey(lane));
    const oldest = oldestOf(state, onTheirWay);
    const figures = deps.statistics.lane(lane.name);
    return {
      lane: lane.name,
      labels: lane.labels,
      ready,
      sent: onTheirWay?.count ?? 0,
      held: deps.workers.heldOf(lane),
      delayed: delayed.get(laneKey(lane)) ?? 0,
      limited: limited.get(laneKey(lane))?.count ?? 0,
      limits: limited.get(laneKey(lane))?.keys ?? [],
      claimedPerMinute: figures?.claimedPerMinute ?? 0,
      workP95: figures?.work.p95 ?? null,
      oldestAt: oldest?.queuedAt ?? null,
      pollers,
      workers: (await crews.of(lane)).able,
      polledAt: polledAt === 0 ? null : polledAt,
      paused: deps.lanes.pauseOf(lane) ?? null,
      waiting: oldest === null ? null : await why(oldest),
    };
  };
}

function oldestOf({ oldest }: QueueState, sent: SentTasks | undefined): TaskRowHead | null {
  if (sent === undefined) return oldest;
  return oldest === null || sent.oldest.queuedAt <= oldest.queuedAt ? sent.oldest : oldest;
}
