// Logs for the rest of the server: append, read, and follow live.
//
// A follower reads the chunks after its position from the store, and waits when there are none. An append is only a hint to read again. So
// nothing is lost, repeated or buffered for a slow reader.

import { type Appended, isFullPage, type LogBatch, type LogSource, type LogStore, type StoredChunk } from "./store.ts";

export type LogEvent =
  | { readonly kind: "chunk"; readonly chunk: StoredChunk }
  /** The reader is slower than the writer: at least this many chunks have arrived that it has not received. All of them follow. */
  | { readonly kind: "lagged"; readonly behind: number };

export interface FollowOptions {
  /** Resumes after this position; 0 or absent starts with the first chunk. */
  after?: number;
  /** Stops following at once. */
  signal?: AbortSignal;
  /**
   * Called before each read. When it returns true, following stops after everything stored has been delivered. `wake` causes another read.
   */
  ended?: () => boolean | Promise<boolean>;
  /** Nothing is read for this reader while it is full. */
  reader?: SlowReader;
}

/** A reader that may be slower than what it follows. */
export interface SlowReader {
  /** True while it accepts no data. */
  readonly full: boolean;
  /** Resolves when it accepts more, or has disconnected. */
  drained(): Promise<void>;
}

/** Chunks per read: the maximum in memory for a slow reader. */
const pageMax = 200;
/** A reader that is this many chunks behind counts as lagging: a few seconds of a very chatty task. */
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

  /** All of a task's chunks, with one page of them in memory. */
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

  /** Yields everything from a position on, then new chunks, until the signal aborts or the source has ended. */
  async *follow(source: LogSource, options: FollowOptions = {}): AsyncGenerator<LogEvent, void, void> {
    const follower = new Follower(options.after ?? 0);
    const leave = this.#enter("taskId" in source ? taskKey(source.taskId) : runKey(source.runId), follower);
    const stop = () => follower.wake(0);
    const { signal, reader } = options;
    const gone = () => signal?.aborted === true;
    signal?.addEventListener("abort", stop, { once: true });
    try {
      while (!gone()) {
        if (reader?.full) await reader.drained();
        follower.look();
        // Called before the read, so that everything stored before the end is delivered.
        const last = (await options.ended?.()) === true;
        const more = yield* this.#page(source, follower, options);
        if (!more && last) return;
        if (!more && !gone()) await follower.hinted();
      }
    } finally {
      signal?.removeEventListener("abort", stop);
      leave();
    }
  }

  /**
   * Yields a page, or as much as the reader accepts, and returns true when more may follow. While the reader is full, no page is kept in
   * memory for it.
   */
  async *#page(source: LogSource, follower: Follower, { signal, reader }: FollowOptions): AsyncGenerator<LogEvent, boolean, void> {
    const chunks = await this.#store.since(source, follower.after, pageMax);
    const behind = follower.lagging();
    if (behind > 0 && !signal?.aborted) yield { kind: "lagged", behind };
    let given = 0;
    for (const chunk of chunks) {
      if (signal?.aborted || reader?.full) break;
      yield { kind: "chunk", chunk };
      follower.after = chunk.position;
      given++;
    }
    const more = given < chunks.length || isFullPage(chunks, pageMax);
    follower.given(given, more);
    return more;
  }

  /** Must be called when the source changes in another way, such as its end: followers read again. */
  wake(source: LogSource): void {
    this.#hint("taskId" in source ? taskKey(source.taskId) : runKey(source.runId), 0);
  }

  /** The number of active followers. */
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

/** One reader: whether there may be new chunks, and how far behind it is. */
class Follower {
  /** The position of the last chunk that it received. */
  after: number;
  #news = false;
  #behind = 0;
  #reported = false;
  #resume: (() => void) | null = null;

  constructor(after: number) {
    this.after = after;
  }

  wake(arrived: number): void {
    this.#news = true;
    this.#behind += arrived;
    this.#resume?.();
  }

  /** Called before a read: a change from now on causes another read. */
  look(): void {
    this.#news = false;
  }

  /** How many chunks the reader is behind, reported once each time it falls behind; otherwise 0. */
  lagging(): number {
    if (this.#reported || this.#behind < laggedMin) return 0;
    this.#reported = true;
    return this.#behind;
  }

  given(count: number, more: boolean): void {
    this.#behind = Math.max(0, this.#behind - count);
    if (more || this.#news) return;
    this.#behind = 0;
    this.#reported = false;
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
