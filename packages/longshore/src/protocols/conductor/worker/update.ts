// One try of reporting a result: with update-v2 when the next task is wanted and the server has that endpoint, else with v1.
//
// The worker finds out for each server whether v2 exists. When v2 is not found, the reason may be a missing endpoint or a missing
// task. So the worker sends the same result with v1. The endpoint is missing only if v1 accepts it. After an hour the worker tries v2 again,
// because servers are upgraded while workers run.

import type { Clock } from "../../../core/clock.ts";
import { LongshoreError } from "../../../core/errors.ts";
import { updateAnswer } from "../wire/codes.ts";
import type { PolledTask } from "../wire/shapes.ts";
import { type Answer, type Client, quote, taskOf, unexpected } from "./client.ts";
import { isClosedConnection } from "./connection.ts";

const probeAgainMs = 3_600_000;

export interface UpdatesOptions {
  readonly client: Client;
  readonly clock: Clock;
  readonly v2: boolean;
}

export class Updates {
  readonly #options: UpdatesOptions;
  #v2FromMs: number;

  constructor(options: UpdatesOptions) {
    this.#options = options;
    this.#v2FromMs = options.v2 ? 0 : Number.POSITIVE_INFINITY;
  }

  /**
   * Returns the next task of the same type when `chain` requests one and the server has one. Throws when the result was not accepted. The
   * error is LONGSHORE_BAD_OUTPUT or LONGSHORE_LIMIT when the server will never accept it.
   */
  async send(body: string, task: string, chain: boolean, signal?: AbortSignal): Promise<PolledTask | undefined> {
    const { client, clock } = this.#options;
    const v2 = chain && clock.now() >= this.#v2FromMs ? await this.#tryV2(body, signal) : undefined;
    if (v2 !== undefined && v2 !== "no-endpoint") {
      const next = taskOf(v2, task);
      // A truncated response does not show whether the result was accepted. So the result is sent again with v1; every server accepts a
      // repeated result there.
      if (next !== "garbled") return next;
    }
    const answer = await client.update(body, signal);
    check(answer);
    if (v2 === "no-endpoint") this.#v2FromMs = clock.now() + probeAgainMs;
    return undefined;
  }

  /** The response when it was accepted; undefined when the connection broke, so that the outcome is unknown. */
  async #tryV2(body: string, signal: AbortSignal | undefined): Promise<Answer | "no-endpoint" | undefined> {
    try {
      const answer = await this.#options.client.updateV2(body, signal);
      if (updateAnswer(answer.status, answer.text) === "no-endpoint") return "no-endpoint";
      check(answer);
      return answer;
    } catch (error) {
      // The caller sends the result again with v1. With v2 again, the server could hand out a second task.
      if (isClosedConnection(error) && !signal?.aborted) return undefined;
      throw error;
    }
  }
}

function check(answer: Answer): void {
  const meaning = updateAnswer(answer.status, answer.text);
  if (meaning === "taken") return;
  if (meaning !== "refused") throw unexpected("an update", answer, "200");
  const code = answer.status === 413 ? "LONGSHORE_LIMIT" : "LONGSHORE_BAD_OUTPUT";
  throw new LongshoreError(code, `The server refuses the result: ${quote(answer)}`);
}
