// Builds the JSON text of a list that may be very long. The text is built item by item, and encoded piece by piece, so that the server does
// other work between them.
// Long lists are built one after another. So even many of them need the memory of one, plus the texts that wait to be sent, which have a
// budget. A list that must wait drops the items that it has read, and reads them again in its turn.

import { LongshoreError } from "./errors.ts";
import { encodeInTurns, type LongBytes } from "./long-bytes.ts";
import { rowBytes, type Slices } from "./slices/slices.ts";

/** Longer lists wait for their turn; shorter ones do not. This is also the size of one write. */
export const shortBytes = 65_536;
/** The limit for one list: a quarter of all bytes that may wait to be sent. */
export const listBytesMax = 64 * 1_024 * 1_024;

export interface ListOptions {
  readonly alone?: boolean;
  readonly cut?: boolean;
  /** What is before and after the items, when all are read. Default: brackets. */
  readonly around?: () => readonly [string, string];
}

const brackets = () => ["[", "]"] as const;

/** Controls the growth of a text that is being built. */
export interface Growth {
  /** Returns whether this many more characters are within the limit. */
  fits(chars: number): boolean;
  /** Adds to the length. Throws LONGSHORE_LIMIT when the text is too long. */
  count(chars: number): void;
  /** Waits until a long text may continue. Throws when other long texts are first; the text is then built again in its turn. */
  turn(): Promise<void>;
}

/** For a text that becomes part of another text, which takes the turns itself. */
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
  /** Resolves when all long lists so far are built. */
  #line: Promise<void> = Promise.resolve();
  #inLine = 0;

  constructor(slices: Slices) {
    this.#slices = slices;
  }

  /**
   * `items` starts to return JSON texts; it is called a second time when the list had to wait. With `alone`, the list waits before its
   * first item is read: for items that can be read only with all of them in memory. With `cut`, a list that is too long ends before the
   * limit: for pages, whose reader continues after the last item.
   */
  of(
    items: () => AsyncIterable<string> | Iterable<string>,
    { alone = false, cut = false, around = brackets }: ListOptions = {},
  ): Promise<string | LongBytes> {
    return this.body(async (grew) => {
      const texts: string[] = [];
      for await (const text of items()) {
        if (cut && texts.length > 0 && !grew.fits(text.length)) break;
        grew.count(text.length);
        texts.push(texts.length === 0 ? text : `,${text}`);
        await grew.turn();
      }
      const [before, after] = around();
      return [before, ...texts, after];
    }, alone);
  }

  /**
   * Builds a text from pieces: `make` counts each piece, and waits for a turn before the next. When a turn throws, `make` drops what it has
   * and is called again. Do not nest calls: both would wait without end.
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

  /**
   * The same for the parts of a response body, in their order. A long body is never joined: it stays in pieces, which are encoded in turns.
   */
  body(make: (growth: Growth) => Promise<readonly string[]>, alone = false): Promise<string | LongBytes> {
    return this.text(async (growth) => {
      const pieces = await make(growth);
      const chars = pieces.reduce((sum, piece) => sum + piece.length, 0);
      if (chars <= shortBytes) return pieces.join("");
      return encodeInTurns(pieces, (bytes) => this.#slices.turn(rowsOf(bytes)));
    }, alone);
  }

  async #made<Made>(make: (growth: Growth) => Promise<Made>, entered?: () => void): Promise<Made> {
    let chars = 0;
    /** Characters that no turn has counted yet. */
    let owed = 0;
    let leave = entered;
    const growth: Growth = {
      fits: (more) => chars + more <= listBytesMax,
      count: (more) => {
        chars += more;
        if (chars > listBytesMax) throw tooLong();
        owed += more;
      },
      turn: async () => {
        if (chars > shortBytes) {
          if (leave === undefined && this.#inLine > 0) throw new MustWait();
          leave ??= await this.#enter();
        } else if (owed < rowBytes) return;
        const rows = rowsOf(owed);
        owed = 0;
        await this.#slices.turn(rows);
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

function rowsOf(chars: number): number {
  return 1 + Math.floor(chars / rowBytes);
}

/** Thrown when other texts are first: the pieces built so far must not wait in memory. */
class MustWait extends Error {}

function tooLong(): LongshoreError {
  const expected = `at most ${listBytesMax} characters`;
  const message = `The answer has more than ${listBytesMax} characters, which is the limit: request fewer items, or read them one by one.`;
  return new LongshoreError("LONGSHORE_LIMIT", message, { detail: { field: "answer", expected } });
}
