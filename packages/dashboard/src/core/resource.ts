// Data that a page reads from the server and keeps up to date. It is read again after a change that concerns it, not too often, and not
// while the page is hidden. The earlier data stays visible until the next answer.

import { type ReadonlySignal, signal } from "@preact/signals";
import { useEffect, useMemo } from "preact/hooks";
import { ApiError, call } from "./api.ts";
import { type Change, onChange } from "./live.ts";
import { exported } from "./place.ts";

export interface Resource<Value> {
  readonly data: ReadonlySignal<Value | undefined>;
  readonly error: ReadonlySignal<ApiError | null>;
  refresh(): void;
}

export interface ResourceOptions {
  /** Whether a change concerns this data. Absent: no change does. */
  readonly on?: (change: Change) => boolean;
  /** The data is read again after this time, because some of its changes are not reported. */
  readonly everyMs?: number;
  /** The shortest time between two reads because of changes. */
  readonly gapMs?: number;
}

const gapMsDefault = 1_000;

/** `key` identifies the data. With another key the earlier data is dropped; with null nothing is read. */
export function useResource<Value>(
  key: string | null,
  load: (gone: AbortSignal) => Promise<Value>,
  { on, everyMs, gapMs = gapMsDefault }: ResourceOptions = {},
): Resource<Value> {
  const resource = useMemo(() => new Reader(load, gapMs), [key]);
  useEffect(() => {
    if (key === null) return;
    resource.start(on, everyMs);
    return () => resource.stop();
  }, [resource]);
  return resource;
}

/** The usual case: one path of the API. */
export function useApi<Value>(path: string | null, options: ResourceOptions = {}): Resource<Value> {
  return useResource<Value>(path, (gone) => call<Value>(path as string, { signal: gone }), options);
}

class Reader<Value> implements Resource<Value> {
  readonly data = signal<Value | undefined>(undefined);
  readonly error = signal<ApiError | null>(null);
  readonly #load: (gone: AbortSignal) => Promise<Value>;
  readonly #gapMs: number;
  #controller = new AbortController();
  #isReading = false;
  #isDue = false;
  #lastAt = 0;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #every: ReturnType<typeof setInterval> | undefined;
  #leave: (() => void)[] = [];

  constructor(load: (gone: AbortSignal) => Promise<Value>, gapMs: number) {
    this.#load = load;
    this.#gapMs = gapMs;
  }

  start(on: ((change: Change) => boolean) | undefined, everyMs: number | undefined): void {
    this.#controller = new AbortController();
    void this.#read();
    if (exported !== null) return;
    const shown = () => {
      if (!document.hidden && this.#isDue) this.#soon();
    };
    document.addEventListener("visibilitychange", shown);
    this.#leave.push(() => document.removeEventListener("visibilitychange", shown));
    this.#leave.push(
      onChange((change) => {
        if (change.kind === "lagged" || (on?.(change) ?? false)) this.#soon();
      }),
    );
    if (everyMs !== undefined) this.#every = setInterval(() => this.#soon(), everyMs);
  }

  stop(): void {
    this.#controller.abort();
    clearTimeout(this.#timer);
    clearInterval(this.#every);
    this.#timer = undefined;
    for (const leave of this.#leave) leave();
    this.#leave = [];
  }

  refresh(): void {
    this.#lastAt = 0;
    this.#soon();
  }

  #soon(): void {
    this.#isDue = true;
    if (document.hidden || this.#isReading || this.#timer !== undefined) return;
    this.#timer = setTimeout(
      () => {
        this.#timer = undefined;
        void this.#read();
      },
      Math.max(0, this.#lastAt + this.#gapMs - Date.now()),
    );
  }

  async #read(): Promise<void> {
    const { signal: gone } = this.#controller;
    this.#isReading = true;
    this.#isDue = false;
    this.#lastAt = Date.now();
    try {
      const value = await this.#load(gone);
      if (gone.aborted) return;
      this.data.value = value;
      this.error.value = null;
    } catch (error) {
      if (gone.aborted) return;
      this.error.value = error instanceof ApiError ? error : new ApiError(0, String((error as Error).message));
    } finally {
      this.#isReading = false;
      if (this.#isDue && !gone.aborted) this.#soon();
    }
  }
}
