// Limits: how far each is used, and changes of them by an operator.

import { z } from "zod";
import { LongshoreError } from "../../../core/errors.ts";
import type { LimitView } from "../../../engine/board/limit-changes.ts";
import type { ProtocolEngine } from "../../server-half.ts";
import { pageOf } from "../wire/shapes.ts";
import { limitShape } from "../wire/worker-shapes.ts";
import { json, type Operation, operation } from "./operation.ts";

const tag = "queues";
/** Limits in one answer: those with the most tasks that wait. */
const limitsMax = 1_000;
const countMax = 1_000_000;
const windowMsMax = 86_400_000;
const reasonCharsMax = 1_000;

const count = z.number().int().min(0).max(countMax);
const body = z
  .strictObject({
    held: count
      .nullable()
      .optional()
      .describe(`a whole number from 0 to ${countMax}: how many tasks may be held; null for any number; as the tasks say when absent`),
    rate: z
      .strictObject({ count: count.min(1), windowMs: z.number().int().min(1).max(windowMsMax) })
      .nullable()
      .optional()
      .describe("count and windowMs: how many tasks may be handed out in any window; null for any number; as the tasks say when absent"),
    reason: z.string().min(1).max(reasonCharsMax).optional().describe(`a text of 1 to ${reasonCharsMax} characters`),
  })
  .refine(({ held, rate }) => held !== undefined || rate !== undefined, { path: ["held"], error: "held or rate is needed" });

export function limitOperations({ board }: Pick<ProtocolEngine, "board">): Operation[] {
  const { limits } = board;
  const known = (key: string) => {
    const view = limits.view(key);
    if (view === undefined)
      throw new LongshoreError("LONGSHORE_NOT_FOUND", `No task uses the limit ${key} now.`, { detail: { field: "key" } });
    return json(200, limitBody(view));
  };
  return [
    operation({
      ...{ id: "listLimits", tag, method: "GET", path: "/limits", action: "queue.read" },
      summary: "List the limits that tasks use now, and those that were changed.",
      answers: { 200: { description: "Those with the most waiting tasks first, at most 1,000.", schema: pageOf(limitShape) } },
      handle() {
        const items = limits.views().map(limitBody);
        items.sort((one, other) => other.waiting - one.waiting || other.held - one.held || (one.key < other.key ? -1 : 1));
        return json(200, { items: items.slice(0, limitsMax), next: null });
      },
    }),
    operation({
      ...{ id: "changeLimit", tag, method: "PUT", path: "/limits/:key", action: "queue.steer" },
      summary: "Change a limit for all tasks that use its key, until the change is taken back. What workers hold goes on.",
      body,
      answers: { 200: { description: "The limit as it applies now.", schema: limitShape } },
      async handle({ params, body: { reason, ...change }, request }) {
        const key = params.key as string;
        await limits.change(key, { ...change, reason: reason ?? null, by: request.caller.name ?? null });
        return known(key);
      },
    }),
    operation({
      ...{ id: "takeBackLimit", tag, method: "DELETE", path: "/limits/:key", action: "queue.steer" },
      summary: "Take the change of a limit back: the limits of the tasks apply again.",
      answers: { 204: { description: "It is not changed." } },
      async handle({ params }) {
        await limits.takeBack(params.key as string);
        return { status: 204 };
      },
    }),
  ];
}

function limitBody({ waiting, ...view }: LimitView) {
  const tasks = [...waiting.values()].reduce((sum, each) => sum + each, 0);
  return { ...view, waiting: tasks, lanes: [...waiting.keys()].map(laneText) };
}

/** The key of a lane as a person names it. */
function laneText(key: string): string {
  const [name = "", ...labels] = key.split("\u0000");
  return labels.length === 0 ? name : `${name} [${labels.join(" ")}]`;
}
