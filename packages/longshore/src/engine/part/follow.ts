// Reads parts as they arrive. When a page is empty, it waits for the commit that adds more, and never polls.

import type { Clock } from "../../core/clock.ts";
import { type PartPage, type PartStore, pagePartsMax } from "./store.ts";

export interface Following {
  /** The task whose parts are read. */
  readonly source: string;
  /** The task that reads: parts that it has finished with are left out. When absent, all parts are returned. */
  readonly reader?: string;
  /** Parts up to this sequence are already known. */
  readonly after?: number;
  readonly limit?: number;
}

/**
 * Yields pages until the source has ended and everything was delivered; the last page has the end state and no parts. Returns early,
 * without an error, when `signal` aborts.
 */
export async function* followParts(store: PartStore, following: Following, signal: AbortSignal): AsyncGenerator<PartPage, void> {
  let after = following.after ?? 0;
  while (!signal.aborted) {
    const page = await nextPage(store, { ...following, after }, signal);
    if (signal.aborted) return;
    yield page;
    const last = page.parts.at(-1);
    if (last !== undefined) after = last.sequence;
    else if (page.ended !== null) return;
  }
}

/** Returns the next page that is not empty, or an empty page after `waitMs`. */
export async function pollParts(
  store: PartStore,
  following: Following,
  waiting: { clock: Clock; waitMs: number; signal?: AbortSignal },
): Promise<PartPage> {
  if (waiting.waitMs <= 0) return readPage(store, following);
  const over = new AbortController();
  const stopTimer = waiting.clock.at(waiting.clock.now() + waiting.waitMs, () => over.abort());
  const gone = () => over.abort();
  waiting.signal?.addEventListener("abort", gone, { once: true });
  try {
    if (waiting.signal?.aborted) over.abort();
    return await nextPage(store, following, over.signal);
  } finally {
    stopTimer();
    waiting.signal?.removeEventListener("abort", gone);
  }
}

/** Returns the next page that has parts or an end; when `signal` aborts, the page at that time. */
export async function nextPage(store: PartStore, following: Following, signal: AbortSignal): Promise<PartPage> {
  for (;;) {
    // The watch starts before the read, so that a change in between wakes it.
    const more = watchOnce(store, following.source, signal);
    try {
      const page = await readPage(store, following);
      if (page.parts.length > 0 || page.ended !== null || signal.aborted) return page;
      await more.changed;
    } finally {
      more.stop();
    }
  }
}

function readPage(store: PartStore, { source, reader, after = 0, limit = pagePartsMax }: Following): Promise<PartPage> {
  return reader === undefined ? store.read(source, after, limit) : store.unread(reader, source, after, limit);
}

function watchOnce(store: PartStore, source: string, signal: AbortSignal): { changed: Promise<void>; stop: () => void } {
  let wake = () => {};
  const changed = new Promise<void>((resolve) => {
    wake = resolve;
  });
  const unwatch = store.watch(source, () => wake());
  const aborted = () => wake();
  if (signal.aborted) wake();
  signal.addEventListener("abort", aborted, { once: true });
  return {
    changed,
    stop() {
      unwatch();
      signal.removeEventListener("abort", aborted);
    },
  };
}
