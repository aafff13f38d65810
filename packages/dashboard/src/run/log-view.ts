// The lines of a log as a page shows them: its end first, earlier pages when they are asked for, and new lines as they come. The server
// filters what is stored; this code filters what comes.

import { type Signal, signal } from "@preact/signals";
import { call, query, request } from "../core/api.ts";
import { readEvents } from "../core/event-stream.ts";
import { exported } from "../core/place.ts";
import type { LogChunk, LogPage } from "../core/shapes.ts";

export interface Line {
  readonly text: string;
  readonly step: string;
  readonly attempt: number;
  readonly stream: string;
  readonly at: number;
}

export interface LogFilter {
  readonly step: string | null;
  readonly attempt: number | null;
  readonly errorsOnly: boolean;
  /** Searched over the whole log. */
  readonly text: string;
}

/** Older lines are dropped, so that an endless log does not fill the memory. */
const linesMax = 200_000;
const pageChunks = 1_000;
/** The page gets new lines at most ten times a second. */
const flushMs = 100;

export class LogView {
  readonly lines: Signal<readonly Line[]> = signal([]);
  readonly state = signal<"reading" | "following" | "ended">("reading");
  /** Whether a page of earlier lines is being read, or a search goes on. */
  readonly isBusy = signal(false);
  /** The `before` of the next earlier page; null at the beginning of the log. */
  readonly earlier = signal<string | null>(null);
  /** Characters of the stored log that were visited. */
  readonly looked = signal(0);
  readonly problem = signal("");
  readonly #path: string;
  readonly #filter: LogFilter;
  readonly #controller = new AbortController();
  #chunks: LogChunk[] = [];
  #timer: ReturnType<typeof setTimeout> | undefined;
  #isStopped = false;

  constructor(runId: string, filter: LogFilter) {
    this.#path = `/runs/${encodeURIComponent(runId)}/logs`;
    this.#filter = filter;
  }

  /** Whether only some lines are wanted: then the whole log is visited. */
  get isSearch(): boolean {
    const { attempt, errorsOnly, text } = this.#filter;
    return attempt !== null || errorsOnly || text !== "";
  }

  start(): void {
    void this.#begin().catch((error: unknown) => {
      if (this.#controller.signal.aborted) return;
      this.problem.value = (error as Error).message;
      this.isBusy.value = false;
    });
  }

  stop(): void {
    this.#controller.abort();
    clearTimeout(this.#timer);
  }

  /** Ends a search; what was found stays. */
  pause(): void {
    this.#isStopped = true;
  }

  async more(): Promise<void> {
    if (this.isBusy.value || this.earlier.value === null) return;
    this.#isStopped = false;
    await this.#readEarlier();
  }

  async #begin(): Promise<void> {
    if (exported !== null) {
      const { items } = await call<{ items: LogChunk[] }>(this.#path);
      this.#chunks = items.flatMap((chunk) => this.#filtered(chunk) ?? []);
      this.#show();
      this.state.value = "ended";
      return;
    }
    // Lines that come after this moment are shown, also when no chunk of the page matches.
    const last = this.isSearch ? await this.#newest() : -1;
    const newest = await this.#page(null);
    const known = Math.max(last, newest.items.at(-1)?.position ?? -1);
    this.earlier.value = newest.next;
    this.#take(newest);
    performance.mark("longshore:log");
    this.state.value = "following";
    if (this.isSearch && this.earlier.value !== null) void this.#readEarlier();
    await this.#follow(last < 0 ? known : last, known);
    this.state.value = "ended";
  }

  /** One page, or all of them for a search. */
  async #readEarlier(): Promise<void> {
    this.isBusy.value = true;
    try {
      do {
        const page = await this.#page(this.earlier.value);
        this.earlier.value = page.next;
        this.#take(page);
      } while (this.isSearch && this.earlier.value !== null && !this.#isStopped && this.lines.value.length < linesMax);
    } finally {
      this.isBusy.value = false;
    }
  }

  async #page(before: string | null): Promise<LogPage> {
    const { step, attempt, errorsOnly, text } = this.#filter;
    const given = { order: "newest", limit: pageChunks, before, step, attempt, text, stream: errorsOnly ? "stderr" : null };
    const page = await call<LogPage>(`${this.#path}${query(given)}`, { signal: this.#controller.signal });
    this.looked.value += page.looked ?? 0;
    return page;
  }

  async #newest(): Promise<number> {
    const { items } = await call<LogPage>(`${this.#path}${query({ order: "newest", limit: 1, step: this.#filter.step })}`, {
      signal: this.#controller.signal,
    });
    return items[0]?.position ?? -1;
  }

  #take({ items }: LogPage): void {
    const [first] = this.#chunks;
    const older = first === undefined ? items : items.filter(({ position }) => position < first.position);
    this.#chunks = [...older, ...this.#chunks];
    this.#show();
  }

  /**
   * Chunks up to the position `known` are shown already. After a lost connection, reading continues after the last chunk that was shown.
   */
  async #follow(from: number, known: number): Promise<void> {
    const gone = this.#controller.signal;
    let after = from < 0 ? null : String(from);
    for (let delay = 100; !gone.aborted; delay = Math.min(delay * 2, 1_000)) {
      try {
        const response = await request(`${this.#path}/stream${query({ step: this.#filter.step, after })}`, { signal: gone });
        if (response.status === 404) return;
        if (!response.ok || response.body === null) throw new Error(String(response.status));
        for await (const { event, data, id } of readEvents(response.body)) {
          if (id !== undefined) after = id;
          if (event === "end") return;
          if (event !== "log") continue;
          delay = 100;
          const chunk = JSON.parse(data) as LogChunk;
          const shown = chunk.position > known ? this.#filtered(chunk) : undefined;
          if (shown !== undefined) this.#add(shown);
        }
      } catch {
        // The next round connects again.
      }
      if (!gone.aborted) await new Promise((resolve) => setTimeout(resolve, delay));
    }
  }

  #add(chunk: LogChunk): void {
    this.#chunks.push(chunk);
    this.#timer ??= setTimeout(() => {
      this.#timer = undefined;
      this.#show();
    }, flushMs);
  }

  /** Undefined when nothing of it matches. */
  #filtered(chunk: LogChunk): LogChunk | undefined {
    const { step, attempt, errorsOnly, text } = this.#filter;
    if ((step !== null && chunk.step !== step) || (attempt !== null && chunk.attempt !== attempt)) return undefined;
    if (errorsOnly && chunk.stream !== "stderr") return undefined;
    if (text === "") return chunk;
    const wanted = text.toLowerCase();
    const lines = chunk.data.split(/(?<=\n)/).filter((line) => line.toLowerCase().includes(wanted));
    return lines.length === 0 ? undefined : { ...chunk, data: lines.join("") };
  }

  #show(): void {
    const lines = linesOf(this.#chunks);
    this.lines.value = lines.length <= linesMax ? lines : lines.slice(lines.length - linesMax);
  }
}

/** Cuts chunks into lines. A line whose end is in a later chunk of the same step and stream is one line. */
function linesOf(chunks: readonly LogChunk[]): Line[] {
  const lines: Line[] = [];
  /** The place of the unfinished last line of each step and stream. */
  const open = new Map<string, number>();
  for (const { step, attempt, stream, at, data } of chunks) {
    const key = `${step} ${attempt} ${stream}`;
    const parts = data.split("\n");
    const rest = parts.pop() ?? "";
    const place = open.get(key);
    const begun = place === undefined ? undefined : lines[place];
    const texts = rest === "" ? parts : [...parts, rest];
    texts.forEach((text, index) => {
      const clean = text.endsWith("\r") ? text.slice(0, -1) : text;
      if (index === 0 && begun !== undefined) lines[place as number] = { ...begun, text: begun.text + clean };
      else lines.push({ text: clean, step, attempt, stream, at });
    });
    if (rest === "") open.delete(key);
    else open.set(key, texts.length === 1 && place !== undefined ? place : lines.length - 1);
  }
  return lines;
}

/** The whole log as it was written, page by page. */
export async function wholeLog(runId: string, step: string | null, onProgress: (chars: number) => void): Promise<string[]> {
  const texts: string[] = [];
  let chars = 0;
  for (let after: string | null = null; ; ) {
    const page: LogPage = await call(`/runs/${encodeURIComponent(runId)}/logs${query({ step, after, limit: pageChunks })}`);
    for (const { data } of page.items) {
      texts.push(data);
      chars += data.length;
    }
    onProgress(chars);
    after = page.next;
    if (after === null || page.items.length === 0) return texts;
  }
}
