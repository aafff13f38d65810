// What a thread of the evaluator gets, and what it returns. README.md, "Expressions".

/** Code of a definition and the data that it reads. */
export interface Evaluation {
  readonly language: "javascript" | "jq";
  readonly code: string;
  /** JSON text. In JavaScript it is `$`. */
  readonly input: string;
  /** How long it may run. */
  readonly msMax: number;
}

/**
 * `output` is JSON text: in JavaScript the value of the last statement, in jq the list of all results. `failed` is the text of the error;
 * with `isLimit` the code was stopped, so that another attempt may succeed on a machine with less to do.
 */
export type Evaluated = { readonly output: string } | { readonly failed: string; readonly isLimit?: true };

/** How long code may run, as on the real server. */
export const evaluationMsMax = 4_000;
/** Memory of one evaluation in JavaScript: some values of the largest size, and what code makes of them. */
export const scriptBytesMax = 64 * 1_048_576;
/** Memory of one evaluation of jq, which copies its input several times. No memory of a thread grows beyond this. */
export const memoryBytesMax = 256 * 1_048_576;
/** Maximum characters of a result, and of its values: the server reads a result of this size in some milliseconds. */
export const outputCharsMax = 1_048_576;
/** Expressions of definitions read no more values than this of any output (dialect/json-path/evaluate.ts). */
export const outputValuesMax = 65_536;
/** Code chooses the text of its error. The task shows a part of it. */
export const failureCharsMax = 4_096;

export function overdue(msMax: number): string {
  return `Script not evaluated within ${msMax / 1_000} seconds, interrupted.`;
}
