// Limits how many responses of one caller are built at once. A request that reads may hold megabytes of stored data while it waits for its
// next turn of the event loop. A caller may have thousands of requests in progress. So only a few are built at once; the others wait in a
// queue and hold only the request in memory.
//
// A handler that waits for an event, such as the end of a run, releases its slot as soon as it reads `gone`.

import { type Action, actions } from "../../core/actions.ts";
import { noRoomToWait, problemError } from "./problems.ts";

/** More slots would not be faster, because the event loop does one thing at a time. Each response may hold a page of 8 Mi characters. */
export const madeAtOnce = 16;

/** The limit of characters of all waiting requests: a quarter of what may be received at once. */
const waitingCharsMax = 67_108_864;

/** A request or call whose response is being built. */
export interface SlotHolder {
  /** The caller that the slot belongs to; undefined without a slot. */
  slotOf: string | undefined;
}

interface Line {
  atWork: number;
  readonly waiting: (() => void)[];
}

export class AnswerSlots {
  readonly #lines = new Map<string, Line>();
  #waitingChars = 0;

  /** Whether responses of this action need a slot: those of open routes and metrics are short. */
  counts(action: Action): boolean {
    const { who, reads, vital } = actions[action];
    return reads === true && who !== "anyone" && !vital;
  }

  /**
   * Takes a slot for this caller. Returns undefined when one was free; otherwise a promise that resolves when there is one. Throws a
   * refusal when all waiting requests together have too many characters; `chars` is the size of this one.
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

  /** To be called when the response is built, or waits for an event. Calling it again has no effect. */
  leave(holder: SlotHolder): void {
    const { slotOf } = holder;
    if (slotOf === undefined) return;
    holder.slotOf = undefined;
    const line = this.#lines.get(slotOf) as Line;
    const next = line.waiting.shift();
    if (next !== undefined) next();
    else if (--line.atWork === 0) this.#lines.delete(slotOf);
  }

  /** The number of requests that wait for a slot. */
  get waiting(): number {
    let count = 0;
    for (const { waiting } of this.#lines.values()) count += waiting.length;
    return count;
  }
}
