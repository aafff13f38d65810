// Reads definition files that arrive in requests. The YAML parser takes seconds for a file of some megabytes and cannot be interrupted. So
// a large text is read in a separate thread while the server handles other requests. A thread reads one text and ends; one thread runs at a
// time.

import type { Worker } from "node:worker_threads";
import type { Clock } from "../core/clock.ts";
import { type ErrorCode, type ErrorDetail, LongshoreError } from "../core/errors.ts";
import { startProgram } from "../core/program-thread.ts";
import type { DefinitionFile, DefinitionText } from "../protocols/server-half.ts";

/** Longer texts are read in a thread: the parser takes some milliseconds for this many characters, and so does the start of a thread. */
export const hereCharsMax = 16_384;
/** Several times what the largest accepted file takes. */
const threadMsMax = 20_000;
/** Several times the memory of the largest accepted file. */
const threadMbMax = 1_024;
/** The limit of large texts that are being read or wait: each is in memory, and the last one waits for all others. */
export const largeMax = 8;

/** The message that a thread posts. */
export type ReadOutcome =
  | { readonly parsed: DefinitionFile }
  | { readonly refused: { readonly code: ErrorCode; readonly message: string; readonly detail: ErrorDetail } };

export class DefinitionReader {
  /** The number of threads started so far. */
  threads = 0;
  #large = 0;
  #last: Promise<unknown> = Promise.resolve();
  readonly #clock: Clock;
  readonly #msMax: number;

  constructor(clock: Clock, msMax = threadMsMax) {
    this.#clock = clock;
    this.#msMax = msMax;
  }

  /** Rejects with LONGSHORE_BAD_DEFINITION with line and column, or with LONGSHORE_LIMIT when too many large texts wait. */
  async read(given: DefinitionText): Promise<DefinitionFile> {
    const { text, file } = given;
    if (text.length > hereCharsMax) return this.#inTurn(given);
    // The parser of definition files is loaded with the first file.
    const { definitionParser } = await import("./definition-file.ts");
    return (await definitionParser())(text, file);
  }

  #inTurn(given: DefinitionText): Promise<DefinitionFile> {
    if (this.#large >= largeMax) {
      const message = `${this.#large} definitions of more than ${hereCharsMax} characters are being read, which is the limit. Send it again later.`;
      return Promise.reject(new LongshoreError("LONGSHORE_LIMIT", message));
    }
    this.#large++;
    const result = this.#last.then(() => this.#inThread(given)).finally(() => this.#large--);
    this.#last = result.catch(() => {});
    return result;
  }

  /** Settles when the thread has ended, for any reason. */
  #inThread(given: DefinitionText): Promise<DefinitionFile> {
    this.threads++;
    const worker = startThread(given);
    return new Promise((resolve, reject) => {
      let settle = () => reject(new Error("The thread that read the definition ended without a result."));
      const cancel = this.#clock.at(this.#clock.now() + this.#msMax, () => {
        settle = () => reject(tooMuch(`more than ${this.#msMax / 1_000} s`));
        void worker.terminate();
      });
      worker.on("message", (outcome: ReadOutcome) => {
        settle = () => ("parsed" in outcome ? resolve(outcome.parsed) : reject(refusalOf(outcome.refused)));
      });
      worker.on("error", (error) => {
        const isFull = (error as NodeJS.ErrnoException).code === "ERR_WORKER_OUT_OF_MEMORY";
        settle = () => reject(isFull ? tooMuch(`more than ${threadMbMax} MB of memory`) : error);
      });
      worker.on("exit", () => {
        cancel();
        settle();
      });
    });
  }
}

function startThread(workerData: DefinitionText): Worker {
  const options = { workerData, resourceLimits: { maxOldGenerationSizeMb: threadMbMax } };
  const worker = startProgram(new URL("./definition-thread.ts", import.meta.url), import.meta.url, options);
  // The request that waits for the thread keeps the process alive.
  worker.unref();
  return worker;
}

function refusalOf({ code, message, detail }: { code: ErrorCode; message: string; detail: ErrorDetail }): LongshoreError {
  return new LongshoreError(code, message, { detail });
}

function tooMuch(what: string): LongshoreError {
  const detail = { field: "", expected: "a smaller definition, or several", line: 1, column: 1 };
  return new LongshoreError("LONGSHORE_BAD_DEFINITION", `Reading the definition takes ${what}, which is the limit.`, { detail });
}
