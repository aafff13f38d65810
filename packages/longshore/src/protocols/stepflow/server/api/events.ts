// Follows the events of a run: first the recorded ones, then new ones, in one order with rising numbers. An event has the time of its
// commit, in milliseconds. It is sent when this millisecond is over, because then no other event can come before it. So a later reader of
// the records gets the same events with the same numbers.

import type { Clock } from "../../../../core/clock.ts";
import type { TaskRow } from "../../../../engine/board/task.ts";
import type { Run } from "../../../../engine/run/run.ts";
import type { Encodable } from "../../../../net/protobuf/protobuf.ts";
import type { StatusEvent } from "../../wire/api-messages.ts";
import { wireRun } from "../run-id.ts";
import { byTime, type RunHistoryEvent, type Within } from "./event-history.ts";
import { type HistoryDeps, HistoryReader, readHistory } from "./history-reader.ts";
import { numberOf, numberOfEnd } from "./sequence.ts";

export interface EventDeps extends HistoryDeps {
  readonly clock: Clock;
  /** Calls the listener for every task and run that a commit changed, until the returned function is called. */
  listen(listener: { task(task: TaskRow): void; run(run: Run): void }): () => void;
}

export interface FollowOptions {
  /** Only events with this number or a higher one. */
  readonly since: number;
  /** Only events of these types. When empty, events of all types. */
  readonly types: ReadonlySet<number>;
  readonly withSubRuns: boolean;
  readonly withResults: boolean;
}

export type Event = Encodable<typeof StatusEvent> & { readonly sequenceNumber: number; readonly timestamp: number };

/** The event that is sent next. */
export interface NextEvent {
  /** Makes the event, with its result if requested, and passes it to `take`. `take` does not wait: it keeps in memory what it cannot write at once. */
  give(take: (event: Event) => void): Promise<void>;
}

/** Maximum number of changes that wait for a slow reader. Above it, they are dropped, and the follower reads all records again. */
const changesMax = 10_000;

/** Ends after the run's last event, or when `signal` aborts. */
export async function* follow(deps: EventDeps, runId: string, options: FollowOptions, signal: AbortSignal): AsyncGenerator<NextEvent> {
  const follower = new Follower(deps, runId, options);
  try {
    yield* follower.events(signal);
  } finally {
    follower.close();
  }
}

class Follower {
  readonly #deps: EventDeps;
  readonly #runId: string;
  readonly #options: FollowOptions;
  readonly #unlisten: () => void;
  #history: HistoryReader;
  /** Ids of changed tasks and runs. Rows may be large, so they are read later, one by one. */
  #tasks = new Set<string>();
  #runs = new Set<string>();
  /** All events up to this millisecond were sent. */
  #sentUntil = Number.NEGATIVE_INFINITY;
  #waiting: RunHistoryEvent[] = [];
  /** How many events this follower has in memory. All followers share one maximum. */
  #held = 0;
  #readAgain = true;
  #startedAt = 0;
  #rootId = "";
  #wake = () => {};

  constructor(deps: EventDeps, runId: string, options: FollowOptions) {
    this.#deps = deps;
    this.#runId = runId;
    this.#options = options;
    this.#history = this.#historyOf([[runId, []]]);
    this.#unlisten = deps.listen({ task: (task) => this.#taskChanged(task), run: (run) => this.#runChanged(run) });
  }

  close(): void {
    this.#hold(-this.#held);
    this.#unlisten();
    this.#wake();
  }

  async *events(signal: AbortSignal): AsyncGenerator<NextEvent> {
    const { clock } = this.#deps;
    while (!signal.aborted) {
      const changed = new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
      for (const { number, happened } of this.#due(await this.#take())) {
        if (signal.aborted) return;
        if (number >= this.#options.since && (this.#options.types.size === 0 || this.#options.types.has(happened.type))) {
          yield { give: (take) => this.#give(number, happened, take) };
        }
        if (happened.last) return;
      }
      this.#hold(this.#waiting.length - this.#held);
      const stopTimer = this.#waiting.length === 0 ? () => {} : clock.at(clock.now() + 1, this.#wake);
      signal.addEventListener("abort", this.#wake, { once: true });
      if (!signal.aborted) await changed;
      signal.removeEventListener("abort", this.#wake);
      stopTimer();
    }
  }

  async #give(number: number, happened: RunHistoryEvent, take: (event: Event) => void): Promise<void> {
    const { reader, followers } = this.#deps;
    const head = { sequenceNumber: number, timestamp: happened.at };
    if (!this.#options.withResults) return take({ ...head, ...(await happened.toEvent()) });
    await followers.make(async () => {
      await reader.turn(1);
      take({ ...head, ...(await happened.toEvent(reader)) });
    });
  }

  #taskChanged(task: TaskRow): void {
    if (task.runId === null || !this.#history.members.has(wireRun(task.runId).runId)) return;
    this.#tasks.add(task.id);
    this.#changed();
  }

  #runChanged(run: Run): void {
    if (!this.#history.members.has(wireRun(run.id).runId) && !(this.#options.withSubRuns && run.alias === this.#rootId)) return;
    this.#runs.add(run.id);
    this.#changed();
  }

  #changed(): void {
    if (this.#tasks.size + this.#runs.size > changesMax) {
      this.#readAgain = true;
      this.#tasks = new Set();
      this.#runs = new Set();
    }
    this.#wake();
  }

  /** Makes the events of what has changed since the last call, or of all records. Returns the time up to which the events are complete. */
  async #take(): Promise<number> {
    // Waits until the commit that reported the first change has reported all of its changes.
    await new Promise((resolve) => setImmediate(resolve));
    // A commit that happens after this line is reported again, and handled by the next call.
    const now = this.#deps.clock.now();
    const [tasks, runs] = [this.#tasks, this.#runs];
    this.#tasks = new Set();
    this.#runs = new Set();
    if (this.#readAgain) {
      this.#readAgain = false;
      this.#waiting = [];
      this.#hold(-this.#held);
      await this.#readAll();
      return now;
    }
    for (const id of runs) await this.#history.run(id);
    for (const id of tasks) await this.#history.task(id);
    return now;
  }

  async #readAll(): Promise<void> {
    const { withSubRuns } = this.#options;
    const read = () => readHistory(this.#deps, this.#runId, withSubRuns);
    const { startedAt, rootId, members, events } = await this.#deps.followers.read(`${this.#runId} ${withSubRuns}`, read);
    if (startedAt === undefined) return;
    this.#startedAt = startedAt;
    this.#rootId = rootId;
    this.#history = this.#historyOf(members);
    this.#add(events);
  }

  #historyOf(members: Iterable<readonly [string, Within]>): HistoryReader {
    return new HistoryReader(this.#deps, this.#runId, new Map(members), (events) => this.#add(events));
  }

  /** Ignores events that were already sent: their time shows this. Throws RESOURCE_EXHAUSTED above the maximum of events in memory. */
  #add(events: readonly RunHistoryEvent[]): void {
    const fresh = events.filter(({ at }) => at > this.#sentUntil);
    this.#deps.followers.checkHold(this.#held, fresh.length);
    this.#hold(fresh.length);
    for (const event of fresh) this.#waiting.push(event);
  }

  #hold(more: number): void {
    this.#held += more;
    this.#deps.followers.events += more;
  }

  /** The events that can be sent now, with their numbers. */
  *#due(now: number): Generator<{ number: number; happened: RunHistoryEvent }> {
    const ended = this.#waiting.find(({ last }) => last);
    const until = ended === undefined ? now - 1 : ended.at;
    const due = unique(this.#waiting.filter(({ at }) => at <= until).sort(byTime));
    this.#waiting = this.#waiting.filter(({ at }) => at > until);
    this.#sentUntil = Math.max(this.#sentUntil, until);
    let place = 0;
    let at = Number.NaN;
    for (const happened of due) {
      place = happened.at === at ? place + 1 : 0;
      at = happened.at;
      const number = happened.last ? numberOfEnd(this.#startedAt, at) : numberOf(this.#startedAt, at, place);
      yield { number, happened };
    }
  }
}

/** Several changes of one row may lead to the same event. The newest is kept, because it has the most fields. */
function unique(sorted: readonly RunHistoryEvent[]): RunHistoryEvent[] {
  return sorted.filter((happened, at) => {
    const next = sorted[at + 1];
    return next === undefined || byTime(happened, next) !== 0;
  });
}
