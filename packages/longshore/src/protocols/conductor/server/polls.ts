// Which workers poll for what. Kept in memory only: after a start the list is empty until they poll again, which is at once.

import type { PollData } from "../wire/shapes.ts";

/** Type and domain pairs that are remembered. Above this the one that was polled longest ago is forgotten. */
const pollsMax = 10_000;

export class Polls {
  readonly #polls = new Map<string, PollData>();

  polled(queueName: string, domain: string | undefined, workerId: string, now: number): void {
    const key = laneName(queueName, domain);
    // The newest is last, so that the first is the one to forget.
    this.#polls.delete(key);
    this.#polls.set(key, { queueName, ...(domain === undefined ? {} : { domain }), workerId, lastPollTime: now });
    if (this.#polls.size > pollsMax) this.#polls.delete(this.#polls.keys().next().value as string);
  }

  of(queueName: string): PollData[] {
    return this.all().filter((poll) => poll.queueName === queueName);
  }

  all(): PollData[] {
    return [...this.#polls.values()];
  }
}

/** The lane that a task type is queued on, and polled from. */
export function laneName(taskType: string, domain: string | undefined): string {
  return domain === undefined ? taskType : `${domain}:${taskType}`;
}
