// The JSON text of a list whose length others decide: item by item, in turns with everything else that the server does, and the long ones one
// after another. So many readers of a long list have one copy of it in memory, besides the texts that wait to be sent, which have a budget.

import { LongshoreError } from "./errors.ts";
import type { Slices } from "./slices.ts";

/** A list that is longer waits for its turn; what is shorter does not notice the others. As much as is written at once. */
export const shortBytes = 65_536;
/** Of one list: a quarter of all that may wait to be sent. It takes some milliseconds to put together at the end. */
export const listBytesMax = 64 * 1_024 * 1_024;

export interface ListOptions {
  readonly alone?: boolean;
  readonly cut?: boolean;
}

export class ListTexts {
  readonly #slices: Slices;
  /** Ends when all long lists that have come so far are made. */
  #line: Promise<void> = Promise.resolve();

  constructor(slices: Slices) {
    this.#slices = slices;
  }

  /**
   * `items` gives JSON texts, and is read no further than needed while the list waits. With `alone` it waits before the first of them is read:
   * for items that can be given only when all of them are in memory. With `cut` a list that is too long ends before the item that exceeds the
   * limit: for pages, whose reader goes on behind what came.
   */
  async of(items: AsyncIterable<string> | Iterable<string>, { alone = false, cut = false }: ListOptions = {}): Promise<string> {
    const texts: string[] = [];
    let bytes = 0;
    let leave = alone ? await this.#enter() : undefined;
    try {
      for await (const text of items) {
        bytes += text.length;
        if (bytes > listBytesMax) {
          if (cut && texts.length > 0) break;
          throw tooLong();
        }
        texts.push(text);
        this.#slices.spent(text.length);
        if (bytes <= shortBytes) continue;
        leave ??= await this.#enter();
        await this.#slices.turn(1);
      }
      return `[${texts.join(",")}]`;
    } finally {
      leave?.();
    }
  }

  async #enter(): Promise<() => void> {
    const before = this.#line;
    let leave = () => {};
    this.#line = new Promise((resolve) => {
      leave = resolve;
    });
    await before;
    return leave;
  }
}

function tooLong(): LongshoreError {
  const message = `The list has more than ${listBytesMax} characters, which is the limit of an answer: read its items one by one.`;
  return new LongshoreError("LONGSHORE_LIMIT", message);
}
