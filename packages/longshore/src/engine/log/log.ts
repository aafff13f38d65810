// Logs for the rest of the server: append, read, and follow live.
//
// A follower pulls: it reads from the store what comes after its position, and sleeps when there is nothing. An append is only a hint
// to look again. So replay passes into live without gap or repetition, nothing is buffered for a slow reader, and nothing is lost for one
// either: it is notified how far behind it is, and continues at its own pace from its position.

import { type Appended, isFullPage, type LogBatch, type LogSource, type LogStore, type StoredChunk } from "./store.ts";

export type LogEvent =
  | { readonly kind: "chunk"; readonly chunk: StoredChunk }
  /** The reader is slower than the writer: at least so many chunks have arrived that it has not been given. All of them follow. */
  | { readonly kind: "lagged"; readonly behind: number };

export interface FollowOptions {
  /** Resume after this position; 0 or absent begins with the first chunk. */
  after?: number;
  /** Ends the following at once. */
  signal?: AbortSignal;
  /** Called before each read: true ends the following once everything stored has been delivered. `wake` makes it read again. */
  ended?: () => boolean | Promise<boolean>;
}

/** Chunks fetched at a time: what a slow reader may have in memory. */
const pageMax = 200;
/** Behind by this many a reader counts as lagging: a few seconds of a very chatty task. */
const laggedMin = 2_000;

export class Logs {
  readonly #store: LogStore;
  readonly #followers = new Map<string, Set<Follower>>();

  constructor(store: LogStore) {
    this.#store = store;
  }

  async append(batch: LogBatch): Promise<Appended> {
    const appended = await this.#store.append(batch);
    if (appended.stored > 0) {
      this.#hint(taskKey(batch.taskId), appended.stored);
      if (batch.runId !== null) this.#hint(runKey(batch.runId), appended.stored);
    }
    return appended;
  }

  read(taskId: string, page: { after?: number; limit: number }): Promise<StoredChunk[]> {
    return this.#store.read(taskId, page);
  }

  /** All of a task's chunks, page by page, so that no more than a page of them is in memory. */
  async *all(taskId: string): AsyncGenerator<StoredChunk, void, void> {
    for (let after = 0; ; ) {
      const page = await this.#store.read(taskId, { after, limit: pageMax });
      yield* page;
      if (!isFullPage(page, pageMax)) return;
      after = page.at(-1)?.position ?? after;
    }
  }

  lastLine(taskId: string): Promise<string | null> {
    return this.#store.lastLine(taskId);
  }

  /** Everything from a position on, then what arrives, until the signal aborts or the source has ended. */
  async *follow(source: LogSource, options: FollowOptions = {}): AsyncGenerator<LogEvent, void, void> {
    const follower = new Follower();
    const leave = this.#enter("taskId" in source ? taskKey(source.taskId) : runKey(source.runId), follower);
    const stop = () => follower.wake(0);
    options.signal?.addEventListener("abort", stop, { once: true });
    const gone = () => options.signal?.aborted === true;
    let after = options.after ?? 0;
    try {
      while (!gone()) {
        follower.look();
        // Checked before the read: the read then includes whatever was stored before the end.
        const last = (await options.ended?.()) === true;
        const chunks = await this.#store.since(source, after, pageMax);
        const behind = follower.lagging();
        if (behind > 0 && !gone()) yield { kind: "lagged", behind };
        for (const chunk of chunks) {
          if (gone()) return;
          yield { kind: "chunk", chunk };
          after = chunk.position;
        }
        const more = isFullPage(chunks, pageMax);
        follower.given(chunks.length, more);
        if (!more && last) return;
        if (!more && !gone()) await follower.hinted();
      }
    } finally {
      options.signal?.removeEventListener("abort", stop);
      leave();
    }
  }

  /** Something else about the source has changed, such as its end: followers look again. */
  wake(source: LogSource): void {
    this.#hint("taskId" in source ? taskKey(source.taskId) : runKey(source.runId), 0);
  }

  /** How many readers follow now. */
  get following(): number {
    let count = 0;
    for (const followers of this.#followers.values()) count += followers.size;
    return count;
  }

  #hint(key: string, arrived: number): void {
    for (const follower of this.#followers.get(key) ?? []) follower.wake(arrived);
  }

  #enter(key: string, follower: Follower): () => void {
    const followers = this.#followers.get(key) ?? new Set();
    this.#followers.set(key, followers.add(follower));
    return () => {
      followers.delete(follower);
      if (followers.size === 0 && this.#followers.get(key) === followers) this.#followers.delete(key);
    };
  }
}

/** One reader: whether there may be something new, and how far behind it is. */
class Follower {
  #news = false;
  #behind = 0;
  #told = false;
  #resume: (() => void) | null = null;

  wake(arrived: number): void {
    this.#news = true;
    this.#behind += arrived;
    this.#resume?.();
  }

  /** Before a read: a change from now on causes another read. */
  look(): void {
    this.#news = false;
  }

  /** How many chunks it is behind, once per time that it falls behind; else 0. */
  lagging(): number {
    if (this.#told || this.#behind < laggedMin) return 0;
    this.#told = true;
    return this.#behind;
  }

  given(count: number, more: boolean): void {
    this.#behind = Math.max(0, this.#behind - count);
    if (more || this.#news) return;
    this.#behind = 0;
    this.#told = false;
  }

  hinted(): Promise<void> {
    if (this.#news) return Promise.resolve();
    return new Promise((resolve) => {
      this.#resume = () => {
        this.#resume = null;
        resolve();
      };
    });
  }
}

function taskKey(taskId: string): string {
  return `task:${taskId}`;
}

function runKey(runId: string): string {
  return `run:${runId}`;
}
