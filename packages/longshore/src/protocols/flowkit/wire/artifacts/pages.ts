// Reads a stream of parts page by page. Our own store uses this loop in process and over HTTP. The source of the pages waits for parts, so
// this loop neither polls nor sleeps.

import type { JsonObject } from "../../../../core/json/json.ts";
import { type ReadOptions, UpstreamFailed, type UpstreamPart } from "./artifacts.ts";

/** How far a source has been read: up to this part. */
export interface SourcePosition {
  readonly node: string;
  readonly after: number;
}

/** What a source has now. `ended` is set only on an empty page, so no part can follow. */
export interface SourcePage<Item = { readonly uid: string; readonly meta: JsonObject }> extends SourcePosition {
  readonly parts: readonly Item[];
  readonly ended: "complete" | "failed" | "cancelled" | null;
}

/** Returns when a source has parts or has ended, or after a timeout. */
export type AskPages = (positions: readonly SourcePosition[], signal: AbortSignal) => Promise<readonly SourcePage[]>;

export async function* partsOf(
  ask: AskPages,
  sources: readonly string[],
  { eofOnTaskDone, signal }: Pick<ReadOptions, "eofOnTaskDone" | "signal">,
): AsyncGenerator<UpstreamPart, void> {
  const positions = new Map([...new Set(sources)].map((node) => [node, 0]));
  while (positions.size > 0) {
    signal.throwIfAborted();
    const pages = await ask(
      [...positions].map(([node, after]) => ({ node, after })),
      signal,
    );
    signal.throwIfAborted();
    for (const { node: fromNode, parts, after, ended } of pages) {
      for (const { uid, meta } of parts) yield { fromNode, uid, meta };
      positions.set(fromNode, after);
      if (ended === null) continue;
      if (ended !== "complete") throw new UpstreamFailed(fromNode, ended);
      positions.delete(fromNode);
    }
  }
  if (!eofOnTaskDone) await aborted(signal);
}

/** Rejects with the signal's reason once it aborts. */
function aborted(signal: AbortSignal): Promise<never> {
  return new Promise((_, reject) => {
    const end = () => reject(signal.reason);
    if (signal.aborted) end();
    else signal.addEventListener("abort", end, { once: true });
  });
}
