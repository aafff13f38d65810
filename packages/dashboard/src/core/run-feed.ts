// The list of runs that match a query, newest first: read page by page as the user scrolls, and kept up to date by changes. Rows in view
// change in place; new runs appear at the top, but never while the user is in the list.

import { batch, signal } from "@preact/signals";
import { ApiError, call } from "./api.ts";
import { now } from "./format.ts";
import { type Change, onChange } from "./live.ts";
import { parameters, parseQuery } from "./run-query.ts";
import type { RunList, RunSummary } from "./shapes.ts";

const pageSize = 100;
/** A page of a search may be empty. This number of pages is read before the user must ask for more. */
const emptyPagesMax = 400;
const refreshGapMs = 1_000;

export class RunFeed {
  readonly rows = signal<readonly RunSummary[]>([]);
  readonly state = signal<"reading" | "idle" | "stopped" | "end">("reading");
  /** How many stored runs the search has checked. */
  readonly looked = signal(0);
  /** How many runs are stored; null when this is not known. */
  readonly of = signal<number | null>(null);
  readonly error = signal<ApiError | null>(null);
  /** The number of new runs that are not shown yet. */
  readonly newer = signal(0);
  readonly #query: string;
  readonly #controller = new AbortController();
  readonly #isBusy: () => boolean;
  #next: string | null | undefined;
  #reading = false;
  #leave = () => {};
  #timer: ReturnType<typeof setTimeout> | undefined;
  #lastAt = 0;
  readonly #unseen = new Set<string>();

  /** `isBusy`: whether the user is in the list. Then no row may move. */
  constructor(query: string, isBusy: () => boolean) {
    this.#query = query;
    this.#isBusy = isBusy;
  }

  start(): void {
    this.#leave = onChange((change) => this.#take(change));
    void this.more();
  }

  stop(): void {
    this.#leave();
    clearTimeout(this.#timer);
    this.#controller.abort();
  }

  /** Ends a search that is still running. */
  pause(): void {
    if (this.state.value === "reading") this.state.value = "stopped";
  }

  /** Reads until there is another page of rows. */
  async more(): Promise<void> {
    if (this.#reading || this.#next === null) return;
    this.#reading = true;
    this.state.value = "reading";
    try {
      const wanted = this.rows.value.length + pageSize / 2;
      for (let page = 0; page < emptyPagesMax && this.rows.value.length < wanted; page++) {
        const read = await this.#page(this.#next);
        if (this.#controller.signal.aborted) return;
        this.#next = read.next;
        batch(() => {
          this.rows.value = [...this.rows.value, ...read.items];
          this.looked.value += read.looked;
          this.of.value = read.of;
          this.error.value = null;
        });
        performance.mark("longshore:runs");
        if (this.#next === null || (this.state.value as string) === "stopped") break;
      }
      if ((this.state.value as string) !== "stopped") this.state.value = this.#next === null ? "end" : "idle";
    } catch (error) {
      if (this.#controller.signal.aborted) return;
      this.error.value = error instanceof ApiError ? error : new ApiError(0, String(error));
      this.state.value = "idle";
    } finally {
      this.#reading = false;
    }
  }

  /** Reads the first page again, and shows new runs. Without `isAsked`, the rows of a user who is in the list only change in place. */
  async refresh({ isAsked = true } = {}): Promise<void> {
    this.#lastAt = Date.now();
    try {
      const read = await this.#page(undefined);
      if (this.#controller.signal.aborted) return;
      if (!isAsked && this.#isBusy() && this.rows.value.length > 0) return this.#update(read.items);
      const fresh = new Set(read.items.map(({ id }) => id));
      const { next } = read;
      // Older rows than those of the first page were not read again, so they stay. A newer row that is not in the page no longer matches.
      const rest = this.rows.value.filter(({ id }) => !fresh.has(id) && next !== null && id <= next);
      batch(() => {
        this.rows.value = [...read.items, ...rest];
        this.of.value = read.of;
        this.newer.value = 0;
        this.error.value = null;
        this.#unseen.clear();
        if (this.#next === undefined) this.#next = read.next;
      });
    } catch (error) {
      if (!this.#controller.signal.aborted && error instanceof ApiError) this.error.value = error;
    }
  }

  /** While the user is in the list, rows change in place, and new ones are only counted. */
  #update(items: readonly RunSummary[]): void {
    const read = new Map(items.map((item) => [item.id, item]));
    const newest = this.rows.value[0]?.id ?? "";
    this.rows.value = this.rows.value.map((row) => read.get(row.id) ?? row);
    for (const id of read.keys()) if (id > newest) this.#unseen.add(id);
    this.newer.value = this.#unseen.size;
  }

  #page(before: string | null | undefined): Promise<RunList> {
    const given = parameters(parseQuery(this.#query), now.peek());
    given.set("limit", String(pageSize));
    if (before !== undefined && before !== null) given.set("before", before);
    return call<RunList>(`/runs?${given}`, { signal: this.#controller.signal });
  }

  #take(change: Change): void {
    if (change.kind === "lagged" || (change.kind === "tick" && !this.#isBusy())) return this.#soon();
    if (change.kind !== "run") return;
    const at = this.rows.value.findIndex(({ id }) => id === change.id);
    if (at >= 0) {
      this.#patch(at, change);
      // Changes of steps, retries, and runs that no longer match need a new read.
      if (!this.#isBusy()) this.#soon();
      return;
    }
    const newest = this.rows.value[0]?.id;
    if (newest !== undefined && change.id < newest) return;
    this.#unseen.add(change.id);
    if (this.#isBusy()) {
      this.newer.value = this.#unseen.size;
      return;
    }
    this.#show(change);
    this.#soon();
  }

  /** Shows a new run at once. The next refresh reads the fields that the change does not contain. */
  #show({ id, workflow, state, createdAt, endedAt = null, left = 0, failed = 0, error = null }: Change): void {
    if (this.#query !== "" || createdAt === undefined || typeof workflow !== "string") return;
    const row: RunSummary = {
      ...{ id, workflow, state: state as RunSummary["state"], createdAt, endedAt, left, failed, steps: left, retries: 0, priority: 0 },
      ...{ definitionId: "", version: null, dialect: null, startAt: null, alias: null, parentTaskId: null, parentAttempt: 1 },
      durationMs: endedAt === null ? null : endedAt - createdAt,
      firstError: error?.slice(0, 200) ?? null,
    };
    const at = this.rows.value.findIndex((one) => one.id < id);
    this.rows.value = at < 0 ? [...this.rows.value, row] : this.rows.value.toSpliced(at, 0, row);
  }

  #patch(at: number, { state, endedAt, left, failed, error }: Change): void {
    const row = this.rows.value[at];
    if (row === undefined) return;
    const rows = [...this.rows.value];
    rows[at] = {
      ...row,
      ...(state === undefined ? {} : { state: state as RunSummary["state"] }),
      ...(endedAt === undefined ? {} : { endedAt, durationMs: endedAt === null ? null : endedAt - row.createdAt }),
      ...(left === undefined ? {} : { left }),
      ...(failed === undefined ? {} : { failed }),
      ...(error === undefined ? {} : { firstError: error === null ? null : error.slice(0, 200) }),
    };
    this.rows.value = rows;
  }

  #soon(): void {
    this.#timer ??= setTimeout(
      () => {
        this.#timer = undefined;
        if (document.hidden || this.#reading) return this.#soon();
        void this.refresh({ isAsked: false });
      },
      Math.max(60, this.#lastAt + refreshGapMs - Date.now()),
    );
  }
}
