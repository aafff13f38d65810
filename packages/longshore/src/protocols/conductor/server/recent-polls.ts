// The last poll of each task type and domain, for Conductor's poll data. It is in memory only, and empty after a start of the server.

import { laneName } from "../dialect/placement.ts";
import type { PollData } from "../wire/shapes.ts";

/** How many pairs of type and domain are kept. Above this number, the pair with the oldest poll is removed. */
const pollsMax = 10_000;

export class RecentPolls {
  readonly #polls = new Map<string, PollData>();

  polled(queueName: string, domain: string | undefined, workerId: string, now: number): void {
    const key = laneName(queueName, domain);
    // The newest poll is last, so the first one is removed.
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
