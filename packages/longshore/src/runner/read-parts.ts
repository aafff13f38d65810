// Reads the parts of another step one by one, from a transport that returns them in pages.

import type { StepPart } from "../core/context.ts";
import type { PartReader } from "./transport.ts";

/** Ends when the source ends. Throws the reason when one of the signals aborts: the handler's own, or one that the handler passed. */
export async function* readParts(reader: PartReader, signals: readonly AbortSignal[]): AsyncGenerator<StepPart, void> {
  const [first, ...others] = signals as [AbortSignal, ...AbortSignal[]];
  const signal = others.length === 0 ? first : AbortSignal.any([...signals]);
  for (;;) {
    signal.throwIfAborted();
    const page = await reader.next(signal);
    signal.throwIfAborted();
    if (page === undefined) return;
    for (const part of page) {
      yield part;
      signal.throwIfAborted();
    }
  }
}
