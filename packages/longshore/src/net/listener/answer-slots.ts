// How many answers of one caller are made at once. A request that reads may hold megabytes of what is stored while it waits for its next
// turn of the event loop, and a caller may have thousands of them in progress. So few of each caller are made at once; the others wait in a
// queue with nothing in memory but the request.
//
// A handler that waits for something to happen, such as the end of a run, gives its place to the next as soon as it reads whether its
// client has disconnected: a long poll would keep it for long, and holds nothing meanwhile.

import { type Action, actions } from "../../core/actions.ts";
import { noRoomToWait, problemError } from "./problems.ts";

/** More gain nothing, because the loop does one thing at a time; each may hold a page of 8 Mi characters. */
export const madeAtOnce = 16;

/** Characters of all requests that wait in lines: a quarter of what may be received at once. */
const waitingCharsMax = 67_108_864;

/** A request or call whose answer is made. */
export interface SlotHolder {
  /** Who the place belongs to; undefined while it has none. */
  slotOf: string | undefined;
}

interface Line {
  atWork: number;
  readonly waiting: (() => void)[];
}

export class AnswerSlots {
  readonly #lines = new Map<string, Line>();
  #waitingChars = 0;

  /** Whether its answers count: those of open routes and metrics are short. */
  counts(action: Action): boolean {
    const { who, reads, vital } = actions[action];
    return reads === true && who !== "anyone" && !vital;
  }

  /**
   * Takes a place for the caller of this name. Undefined when there was one; else it resolves when there is. Throws a refusal when requests
   * that wait have too many characters together; this one has so many.
   */
  enter(holder: SlotHolder, chars: number, caller = ""): Promise<void> | undefined {
    const line = this.#lines.get(caller);
    if (line === undefined) this.#lines.set(caller, { atWork: 1, waiting: [] });
    else if (line.atWork < madeAtOnce) line.atWork++;
    else return this.#wait(line, holder, chars, caller);
    holder.slotOf = caller;
    return undefined;
  }

  #wait(line: Line, holder: SlotHolder, chars: number, caller: string): Promise<void> {
    if (this.#waitingChars + chars > waitingCharsMax) throw problemError(noRoomToWait(waitingCharsMax));
    this.#waitingChars += chars;
    return new Promise((resolve) =>
      line.waiting.push(() => {
        this.#waitingChars -= chars;
        holder.slotOf = caller;
        resolve();
      }),
    );
  }

  /** The answer is made, or waits for something else. Calling it again is harmless. */
  leave(holder: SlotHolder): void {
    const { slotOf } = holder;
    if (slotOf === undefined) return;
    holder.slotOf = undefined;
    const line = this.#lines.get(slotOf) as Line;
    const next = line.waiting.shift();
    if (next !== undefined) next();
    else if (--line.atWork === 0) this.#lines.delete(slotOf);
  }

  /** Answers that wait for a place. */
  get waiting(): number {
    let count = 0;
    for (const { waiting } of this.#lines.values()) count += waiting.length;
    return count;
  }
}
