// The results of a durable function that its worker does not have yet. Each gets the next number, and is sent with the next turn, or with
// the reply to a turn that continues.

import type { Draft } from "./draft.ts";
import { type DriverState, type Failing, failureText, resultText } from "./driven-state.ts";

/** Maximum number of new results whose nodes the state lists. The worker reads further results from the journal. */
const newsMax = 100;
/** Maximum characters of all results that are sent with one turn. */
export const resultsCharsMax = 65_536;

export class NewResults {
  readonly #draft: Draft;
  readonly #state: DriverState;
  /** Commands that were reported together with their result: the worker has the result. */
  readonly #known = new Set<number>();

  constructor(draft: Draft, state: DriverState) {
    this.#draft = draft;
    this.#state = state;
  }

  /** Gives the result of this command the next number. */
  number(node: number): void {
    this.#state.place++;
    if (this.#state.news.length < newsMax) this.#state.news.push(node);
    this.#draft.leave();
    this.#draft.update({ left: this.#draft.run.left - 1 });
  }

  /** The worker has reported the result of this command itself. */
  knows(node: number): void {
    this.#known.add(node);
  }

  /** The function has received results up to this number: no turn brings them. */
  received(place: number): void {
    const state = this.#state;
    const count = Math.min(place, state.place) - state.sent;
    if (count <= 0) return;
    state.news.splice(0, count);
    state.sent += count;
  }

  /** All results up to the newest were sent. */
  sent(): void {
    this.#state.sent = this.#state.place;
    this.#state.news = [];
  }

  /** JSON texts of the new results, without outputs that are large; null when rows must be loaded first. */
  texts(current?: { node: number; failing: Failing | undefined }): string[] | null {
    const { news, sent } = this.#state;
    const results: string[] = [];
    let chars = 0;
    for (const [at, node] of news.entries()) {
      if (node === current?.node && current.failing !== undefined) {
        results.push(failureText(node, sent + at + 1, this.#draft.now, current.failing));
        continue;
      }
      if (this.#known.has(node)) {
        results.push(`{"node":${node},"place":${sent + at + 1},"state":"done","at":${this.#draft.now}}`);
        continue;
      }
      const record = this.#draft.frontier.record(node);
      if (record == null) {
        this.#draft.need.records.push(node);
        continue;
      }
      const text = resultText(record, sent + at + 1, this.#draft.now, resultsCharsMax - chars);
      chars += text.length;
      results.push(text);
    }
    return this.#draft.lacks ? null : results;
  }
}
