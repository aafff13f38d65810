// Prints chunks of several logs as whole lines, each with the name of its step. A chunk may end in the middle of a line.

import type { LogChunk } from "./api.ts";
import { type Output, oneLine, type Paint, type Style } from "./terminal.ts";

/** The colours of steps. */
const styles: readonly Style[] = ["cyan", "green", "yellow", "blue"];

export class LinePrinter {
  readonly #output: Output;
  readonly #paint: Paint;
  readonly #named: boolean;
  /** The beginning of a line that has not ended, by step, attempt and stream. */
  readonly #open = new Map<string, { readonly text: string; readonly chunk: LogChunk }>();
  readonly #steps = new Map<string, Style>();

  constructor(output: Output, paint: Paint, named: boolean) {
    this.#output = output;
    this.#paint = paint;
    this.#named = named;
  }

  add(chunk: LogChunk): void {
    const key = `${chunk.taskId} ${chunk.attempt} ${chunk.stream}`;
    const lines = `${this.#open.get(key)?.text ?? ""}${chunk.data}`.split(/\r?\n/);
    const rest = lines.pop() ?? "";
    for (const line of lines) this.#print(chunk, line);
    if (rest === "") this.#open.delete(key);
    else this.#open.set(key, { text: rest, chunk });
  }

  /** Prints lines without a line end too. */
  end(): void {
    for (const { text, chunk } of this.#open.values()) this.#print(chunk, text);
    this.#open.clear();
  }

  #print(chunk: LogChunk, line: string): void {
    // A reader of a file or a pipe needs the original bytes; a terminal must not be controlled by them.
    const text = this.#output.isTTY ? oneLine(line) : line;
    const body = chunk.stream === "stderr" ? this.#paint("red", text) : text;
    this.#output.write(this.#named ? `${this.#paint(this.#styleOf(chunk.step), oneLine(chunk.step))} ${body}\n` : `${body}\n`);
  }

  #styleOf(step: string): Style {
    const known = this.#steps.get(step) ?? (styles[this.#steps.size % styles.length] as Style);
    this.#steps.set(step, known);
    return known;
  }
}
