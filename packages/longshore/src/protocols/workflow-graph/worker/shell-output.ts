// What a shell command writes: lines for the log, and outputs for the jobs that depend on it.
//
// Outputs come in two ways. On stdout, one line each:     ::set-output key=value
// In the file $WFG_OUTPUT, lines of two forms:            key=value
//                                                         key<<END
//                                                         several lines
//                                                         END
// When a key is set more than once, its last value counts; the file counts as later than stdout. `::set-output` lines stay in the log.

import { constants } from "node:fs";
import { open } from "node:fs/promises";
import { refusal } from "../../../core/errors.ts";
import type { Outputs } from "../wire/shapes.ts";

/** Half of what the reference accepts in one request: JSON makes the outputs longer, because it escapes some characters. */
const outputBytesMax = 1024 * 1024;
/** A line longer than this is logged in pieces: a command without newlines must not fill the memory. */
const lineCharsMax = 64 * 1024;
/** How much of the end of the output is kept for the error text. */
const tailCharsMax = 4_096;

/** Cuts a stream of bytes into lines. Bytes that are not UTF-8 become replacement characters, also across chunk boundaries. */
export class OutputLines {
  readonly outputs: Outputs = Object.create(null);
  /** The last characters of the stream. */
  tail = "";
  readonly #decoder = new TextDecoder("utf-8", { fatal: false, ignoreBOM: true });
  readonly #onLines: (text: string) => void;
  #rest = "";
  #outputChars = 0;

  /** `onLines` gets one or more whole lines, each with its newline; the last one of the stream may lack it. */
  constructor(onLines: (text: string) => void) {
    this.#onLines = onLines;
  }

  write(chunk: Uint8Array): void {
    this.#take(this.#decoder.decode(chunk, { stream: true }));
  }

  end(): void {
    this.#take(this.#decoder.decode());
    if (this.#rest !== "") this.#emit(this.#rest);
    this.#rest = "";
  }

  /** Throws when the outputs are too large to be reported. */
  checkOutputs(): void {
    if (this.#outputChars <= outputBytesMax) return;
    throw refusal("LONGSHORE_LIMIT", `::set-output was given ${this.#outputChars} characters, expected at most ${outputBytesMax}.`);
  }

  #take(text: string): void {
    this.tail = (this.tail + text.slice(-tailCharsMax)).slice(-tailCharsMax);
    const whole = this.#rest + text;
    const end = whole.lastIndexOf("\n") + 1;
    this.#rest = whole.slice(end);
    if (end > 0) this.#emit(whole.slice(0, end));
    if (this.#rest.length < lineCharsMax) return;
    this.#emit(this.#rest);
    this.#rest = "";
  }

  #emit(text: string): void {
    if (text.includes("::set-output ")) for (const line of text.split("\n")) this.#readOutput(line);
    this.#onLines(text);
  }

  #readOutput(line: string): void {
    const match = /^::set-output\s+([^=\s]+)=(.*?)\r?$/.exec(line);
    if (match === null) return;
    const [, key, value] = match as unknown as [string, string, string];
    this.#outputChars += key.length + value.length;
    if (this.#outputChars <= outputBytesMax) this.outputs[key] = value;
  }
}

/** The command may have replaced the file with a pipe or a device, where a plain open or read could wait without an end. */
const plainFile = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK;

export async function readOutputFile(path: string): Promise<Outputs> {
  const file = await open(path, plainFile);
  try {
    const stats = await file.stat();
    const { size } = stats;
    if (!stats.isFile())
      throw refusal("LONGSHORE_BAD_OUTPUT", "$WFG_OUTPUT is not a file any more. Write to it and leave it in its place.");
    if (size > outputBytesMax) throw refusal("LONGSHORE_LIMIT", `$WFG_OUTPUT holds ${size} bytes, expected at most ${outputBytesMax}.`);
    return parseOutputFile(await file.readFile("utf8"));
  } finally {
    await file.close();
  }
}

export function parseOutputFile(text: string): Outputs {
  const outputs: Outputs = Object.create(null);
  const lines = text.split("\n").map((line) => line.replace(/\r$/, ""));
  for (let at = 0; at < lines.length; at++) {
    const line = lines[at] as string;
    if (line.trim() === "") continue;
    const block = /^([^=<\s]+)<<(\S+)$/.exec(line);
    if (block !== null) {
      const [, key, mark] = block as unknown as [string, string, string];
      const end = lines.indexOf(mark, at + 1);
      if (end < 0) throw badLine(at, `"${line}" is never closed by a line "${mark}"`);
      outputs[key] = lines.slice(at + 1, end).join("\n");
      at = end;
      continue;
    }
    const equals = line.indexOf("=");
    if (equals < 1) throw badLine(at, `"${line.slice(0, 80)}" is neither key=value nor key<<END`);
    outputs[line.slice(0, equals)] = line.slice(equals + 1);
  }
  return outputs;
}

function badLine(at: number, problem: string): Error {
  return refusal("LONGSHORE_BAD_OUTPUT", `Line ${at + 1} of $WFG_OUTPUT: ${problem}.`, "WFG_OUTPUT");
}
