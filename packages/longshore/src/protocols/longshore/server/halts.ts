// Orders that hold work back: a queue is paused, or a worker gets no more tasks.

import { z } from "zod";
import { laneOf } from "../../../engine/board/lanes.ts";
import type { ProtocolEngine } from "../../server-half.ts";
import { haltShape } from "../wire/worker-shapes.ts";
import { json, type Operation, operation } from "./operation.ts";

const nameCharsMax = 512;
const labelsMax = 100;
const reasonCharsMax = 1_000;

const queue = {
  lane: z.string().min(1).max(nameCharsMax).describe("the name of a lane"),
  labels: z.array(z.string().min(1).max(nameCharsMax)).max(labelsMax).default([]).describe("the labels of the lane; none when absent"),
};
const reason = z.string().min(1).max(reasonCharsMax).optional().describe(`a text of 1 to ${reasonCharsMax} characters`);

const queueShape = z.object({ lane: z.string(), labels: z.array(z.string()), paused: haltShape.nullable() });
const workerShape = z.object({ id: z.string(), cordoned: haltShape.nullable() });

type HaltDeps = Pick<ProtocolEngine, "board">;

export function haltOperations({ board }: HaltDeps): Operation[] {
  return [
    operation({
      ...{ id: "pauseQueue", tag: "queues", method: "POST", path: "/queues/pause", action: "queue.steer" },
      summary: "Pause a queue: its tasks are handed out no more. Tasks that workers hold continue.",
      body: z.strictObject({ ...queue, reason }),
      answers: { 200: { description: "It is paused; when it was paused already, as it was.", schema: queueShape } },
      async handle({ body, request }) {
        const lane = laneOf(body.lane, body.labels);
        const paused = await board.halts.pause(lane, { reason: body.reason ?? null, by: request.caller.name ?? null });
        return json(200, { lane: lane.name, labels: lane.labels, paused: paused ?? null });
      },
    }),
    operation({
      ...{ id: "resumeQueue", tag: "queues", method: "POST", path: "/queues/resume", action: "queue.steer" },
      summary: "Hand out the tasks of a paused queue again.",
      body: z.strictObject(queue),
      answers: { 200: { description: "It is not paused.", schema: queueShape } },
      async handle({ body }) {
        const lane = laneOf(body.lane, body.labels);
        await board.halts.resume(lane);
        return json(200, { lane: lane.name, labels: lane.labels, paused: null });
      },
    }),
    operation({
      ...{ id: "cordonWorker", tag: "workers", method: "POST", path: "/workers/:id/cordon", action: "worker.steer" },
      summary: "Give a worker no more tasks. Tasks that it holds continue.",
      body: z.strictObject({ reason }),
      answers: { 200: { description: "It is cordoned; when it was already, as it was.", schema: workerShape } },
      async handle({ params, body, request }) {
        const id = params.id as string;
        const cordoned = await board.halts.cordon(id, { reason: body.reason ?? null, by: request.caller.name ?? null });
        return json(200, { id, cordoned: cordoned ?? null });
      },
    }),
    operation({
      ...{ id: "uncordonWorker", tag: "workers", method: "POST", path: "/workers/:id/uncordon", action: "worker.steer" },
      summary: "Give a cordoned worker tasks again.",
      answers: { 200: { description: "It is not cordoned.", schema: workerShape } },
      async handle({ params }) {
        const id = params.id as string;
        await board.halts.uncordon(id);
        return json(200, { id, cordoned: null });
      },
    }),
  ];
}
