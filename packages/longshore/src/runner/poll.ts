// One request for work, with its events. All protocols that poll use it.

import { toError } from "../core/errors.ts";
import type { TransportHost } from "./transport.ts";

export interface Poll<Answer> {
  readonly task: string;
  readonly worker: string;
  /** How many tasks are requested. */
  readonly count: number;
  readonly call: () => Promise<Answer>;
  /** How many tasks were received. Absent for a stream: its end is not an event. */
  readonly received?: (answer: Answer) => number;
}

/** Rejects with the error of `call`. Emits no `pollFailed` while the worker drains, because draining ends polls. */
export async function poll<Answer>(host: TransportHost, { task, worker, count, call, received }: Poll<Answer>): Promise<Answer> {
  const { clock, draining } = host;
  const startedMs = clock.now();
  if (host.wants("pollStarted")) host.emit("pollStarted", { task, worker, count });
  try {
    const answer = await call();
    if (received !== undefined && host.wants("pollCompleted")) {
      host.emit("pollCompleted", { task, worker, durationMs: clock.now() - startedMs, received: received(answer) });
    }
    return answer;
  } catch (error) {
    if (!draining.aborted && host.wants("pollFailed")) {
      host.emit("pollFailed", { task, worker, durationMs: clock.now() - startedMs, error: toError(error) });
    }
    throw error;
  }
}
