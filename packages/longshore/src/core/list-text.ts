// The JSON text of a list whose length others decide: item by item, in turns with everything else that the server does, and the long ones one
// after another. So many readers of a long list have one copy of it in memory, besides the texts that wait to be sent, which have a budget. A list
// that has to wait drops what it has read, and reads that again when its turn has come: a first item may have megabytes.

import { LongshoreError } from "./errors.ts";
import { encodeInTurns, type LongBytes } from "./long-bytes.ts";
import type { Slices } from "./slices/slices.ts";

/** A list that is longer waits for its turn; what is shorter does not notice the others. As much as is written at once. */
export const shortBytes = 65_536;
/** Of one list: a quarter of all that may wait to be sent. It takes some milliseconds to put together at the end. */
export const listBytesMax = 64 * 1_024 * 1_024;

export interface ListOptions {
  readonly alone?: boolean;
  readonly cut?: boolean;
}

/** How a text grows that is being made. */
export interface Growth {
  /** Whether so many characters more are within the limit. */
  fits(chars: number): boolean;
  /** Throws LONGSHORE_LIMIT when there are too many. */
  count(chars: number): void;
  /** Waits until a long text may go on; throws when others are before it, and the text is made again in its turn. */
  turn(): Promise<void>;
}

/** For a text that becomes part of another one, which takes the turns. */
export function limitedGrowth(): Growth {
  let chars = 0;
  return {
    fits: (more) => chars + more <= listBytesMax,
    count: (more) => {
      chars += more;
      if (chars > listBytesMax) throw tooLong();
    },
    turn: async () => {},
  };
}

export class ListTexts {
  readonly #slices: Slices;
  /** Ends when all long lists that have come so far are made. */
  #line: Promise<void> = Promise.resolve();
  #inLine = 0;

  constructor(slices: Slices) {
    this.#slices = slices;
  }

  /**
   * `items` begins to give JSON texts, and is called once more when the list had to wait. With `alone` it waits before the first of them is
   * read: for items that can be given only when all of them are in memory. With `cut` a list that is too long ends before the item that
   * exceeds the limit: for pages, whose reader continues behind what came.
   */
  async of(items: () => AsyncIterable<string> | Iterable<string>, { alone = false, cut = false }: ListOptions = {}): Promise<string> {
    return this.text(async (grew) => {
      const texts: string[] = [];
      for await (const text of items()) {
        if (cut && texts.length > 0 && !grew.fits(text.length)) break;
        grew.count(text.length);
        texts.push(text);
        await grew.turn();
      }
      return `[${texts.join(",")}]`;
    }, alone);
  }

  /**
   * A text that is made of pieces: `make` counts each of them, and takes a turn before the next. When a turn throws, `make` lets go of what it has
   * and is called once more. Not inside another one: both would wait.
   */
  async text<Made>(make: (growth: Growth) => Promise<Made>, alone = false): Promise<Made> {
    if (alone) return this.#made(make, await this.#enter());
    try {
      return await this.#made(make);
    } catch (error) {
      if (!(error instanceof MustWait)) throw error;
    }
    return this.#made(make, await this.#enter());
  }

  /** The same for the parts of an answer, which follow each other. A long one is never put together: it stays in pieces, encoded in turns. */
  body(make: (growth: Growth) => Promise<readonly string[]>): Promise<string | LongBytes> {
    return this.text(async (growth) => {
      const parts = await make(growth);
      const chars = parts.reduce((sum, part) => sum + part.length, 0);
      if (chars <= shortBytes) return parts.join("");
      return encodeInTurns(parts, async (bytes) => {
        this.#slices.spent(bytes);
        await this.#slices.turn(1);
      });
    });
  }

  async #made<Made>(make: (growth: Growth) => Promise<Made>, entered?: () => void): Promise<Made> {
    let chars = 0;
    let leave = entered;
    const growth: Growth = {
      fits: (more) => chars + more <= listBytesMax,
      count: (more) => {
        chars += more;
        if (chars > listBytesMax) throw tooLong();
        this.#slices.spent(more);
      },
      turn: async () => {
        if (chars <= shortBytes) return;
        if (leave === undefined && this.#inLine > 0) throw new MustWait();
        leave ??= await this.#enter();
        await this.#slices.turn(1);
      },
    };
    try {
      return await make(growth);
    } finally {
      leave?.();
    }
  }

  async #enter(): Promise<() => void> {
    const before = this.#line;
    this.#inLine++;
    let leave = () => {};
    this.#line = new Promise((resolve) => {
      leave = () => {
        this.#inLine--;
        resolve();
      };
    });
    await before;
    return leave;
  }
}

/** Others are before this text: what it has read so far must not wait in memory. */
class MustWait extends Error {}

function tooLong(): LongshoreError {
  const expected = `at most ${listBytesMax} characters`;
  const message = `The answer has more than ${listBytesMax} characters, which is the limit: request fewer items, or read them one by one.`;
  return new LongshoreError("LONGSHORE_LIMIT", message, { detail: { field: "answer", expected } });
}
