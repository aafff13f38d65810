// Carries tasks from a queue to a recipient, one after the other. It takes the next task when the current one is claimed. So a recipient
// that may be busy has at most one of its tasks. A recipient that may have several unclaimed tasks has several couriers.

import { type Clock, pause } from "../../../../core/clock.ts";
import { isTransient } from "../../../../core/errors.ts";
import type { Encodable } from "../../../../net/protobuf/protobuf.ts";
import type { TaskAssignment } from "../../wire/messages.ts";
import type { Delivery, NextOptions, TaskQueue } from "./queue.ts";

export interface Recipient {
  /** Aborted when the recipient is gone. Its unclaimed task is then given back. */
  readonly gone: AbortSignal;
  /** Called then for the unclaimed task. Default: returns it to its lane. */
  leave?(delivery: Delivery): Promise<void> | void;
  /** Called before each task: returns how to offer it. May wait while the recipient should get nothing. Undefined ends this courier. */
  ready(): Promise<Omit<NextOptions, "signal"> | undefined> | Omit<NextOptions, "signal">;
  /** Hands over an assignment. Resolves when it has left this process. Rejects when that failed, which ends the courier. */
  send(assignment: Encodable<typeof TaskAssignment>, delivery: Delivery): Promise<void>;
  /** Called when no worker has claimed the task, which is back in its lane. The courier continues when the promise resolves. */
  lapsed?(delivery: Delivery): Promise<void> | void;
  taken?(delivery: Delivery): void;
}

/** Pause before the next try while the store cannot be written. */
const retryMs = 1_000;

/**
 * Resolves when the recipient is gone or does not need this courier. Rejects when the server is closing, or an assignment could not be
 * handed over.
 */
export async function deliver(queue: TaskQueue, to: Recipient, clock: Clock): Promise<void> {
  let current: Delivery | undefined;
  const leave = () => {
    if (current !== undefined) void abandon(current, to);
  };
  to.gone.addEventListener("abort", leave, { once: true });
  try {
    while (!to.gone.aborted) {
      const options = await to.ready();
      if (options === undefined) return;
      current = to.gone.aborted ? undefined : await next(queue, options, to.gone, clock);
      if (current !== undefined) await handOver(current, to);
      current = undefined;
    }
  } finally {
    to.gone.removeEventListener("abort", leave);
  }
}

async function next(
  queue: TaskQueue,
  options: Omit<NextOptions, "signal">,
  gone: AbortSignal,
  clock: Clock,
): Promise<Delivery | undefined> {
  try {
    return await queue.next({ ...options, signal: gone });
  } catch (error) {
    if (!isTransient(error)) throw error;
    await pause(clock, retryMs, gone);
    return undefined;
  }
}

async function handOver(delivery: Delivery, to: Recipient): Promise<void> {
  if (to.gone.aborted) return abandon(delivery, to);
  try {
    await to.send(delivery.assignment, delivery);
  } catch (error) {
    await delivery.giveBack();
    throw error;
  }
  if (to.gone.aborted) return abandon(delivery, to);
  const outcome = await delivery.outcome;
  if (outcome === "taken") to.taken?.(delivery);
  else if (outcome === "lapsed") await to.lapsed?.(delivery);
}

/** Takes an unclaimed task from its recipient. */
async function abandon(delivery: Delivery, to: Recipient): Promise<void> {
  await (to.leave === undefined ? delivery.giveBack() : to.leave(delivery));
}
