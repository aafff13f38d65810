// Reading parts as they come: waits where a page is empty, wakes with the commit that brings more, never polls.

import type { Clock } from "../../core/clock.ts";
import { type PartPage, type PartStore, pagePartsMax } from "./store.ts";

export interface Following {
  /** The task whose parts are read. */
  readonly source: string;
  /** The task that reads: what it has finished with is left out. Absent: everything is given. */
  readonly reader?: string;
  /** Parts up to this sequence are known already. */
  readonly after?: number;
  readonly limit?: number;
}

/**
 * Pages until the source has ended and everything was given; the last page holds how it ended and has no parts. Returns early, without
 * an error, when `signal` aborts.
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

/** The next page that is not empty, or an empty one after `waitMs`. */
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

/** The next page that has parts or an end; when `signal` aborts, what there is then. */
export async function nextPage(store: PartStore, following: Following, signal: AbortSignal): Promise<PartPage> {
  for (;;) {
    // Watched before it is read, so that what comes in between wakes it.
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
