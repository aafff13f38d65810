// The output of a plugin's process, line by line. The last lines are kept, because they explain its end.

import { StringDecoder } from "node:string_decoder";
import type { Clock } from "../../../../core/clock.ts";

/** Longer lines are cut: they are not readable, and a process may write a line without an end. */
const lineCharsMax = 4_000;
const cutMark = " ... (cut)";
/** How many lines are kept for the message about the end of the process. */
const tailLines = 20;
/** A process that writes without a pause must not fill the log: further lines in one window are only counted. */
const windowMs = 10_000;
const windowLinesMax = 1_000;

/** Splits a stream of bytes into lines. */
export class LineCutter {
  readonly #decoder = new StringDecoder("utf8");
  readonly #line: (text: string) => void;
  #rest = "";
  #cut = false;

  constructor(line: (text: string) => void) {
    this.#line = line;
  }

  write(chunk: Buffer): void {
    const pieces = this.#decoder.write(chunk).split("\n");
    for (const [at, piece] of pieces.entries()) {
      this.#take(piece);
      if (at < pieces.length - 1) this.#flush();
    }
  }

  end(): void {
    this.#take(this.#decoder.end());
    if (this.#rest !== "") this.#flush();
  }

  #take(text: string): void {
    const room = lineCharsMax - this.#rest.length;
    this.#rest += text.slice(0, room);
    if (text.length > room) this.#cut = true;
  }

  #flush(): void {
    const text = this.#rest.replace(/\r$/, "");
    this.#rest = "";
    const cut = this.#cut;
    this.#cut = false;
    this.#line(cut ? text + cutMark : text);
  }
}

/** Passes a limited number of lines to the log, and keeps the last ones. */
export class LineLog {
  readonly #clock: Pick<Clock, "now">;
  readonly #tell: (text: string) => void;
  readonly #tail: string[] = [];
  #windowAt = 0;
  #count = 0;

  constructor(clock: Pick<Clock, "now">, tell: (text: string) => void) {
    this.#clock = clock;
    this.#tell = tell;
  }

  line(text: string): void {
    if (text.trim() === "") return;
    this.#tail.push(text);
    if (this.#tail.length > tailLines) this.#tail.shift();
    const now = this.#clock.now();
    if (now - this.#windowAt >= windowMs) {
      if (this.#count > windowLinesMax) this.#tell(`... ${this.#count - windowLinesMax} more lines were left out`);
      this.#windowAt = now;
      this.#count = 0;
    }
    if (++this.#count <= windowLinesMax) this.#tell(text);
  }

  /** The last lines as one text; empty when there are none. */
  get tail(): string {
    return this.#tail.join("\n");
  }
}
