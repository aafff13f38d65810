// Follows what happens in a run: first what is recorded, then what comes, in one order with rising numbers. An event is sent when its
// millisecond has passed, because then no other can come before it: every change of a millisecond is committed within it. So a later reader
// of the records finds the same events in the same order under the same numbers.

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
  /** Calls back for every task and run that a commit changed; ends with the function that is returned. */
  listen(listener: { task(task: TaskRow): void; run(run: Run): void }): () => void;
}

export interface FollowWish {
  /** Only events with this number and above. */
  readonly since: number;
  /** Only these; all when it is empty. */
  readonly types: ReadonlySet<number>;
  readonly withSubRuns: boolean;
  readonly withResults: boolean;
}

export type Event = Encodable<typeof StatusEvent> & { readonly sequenceNumber: number; readonly timestamp: number };

/** An event whose turn has come. */
export interface NextEvent {
  /** Makes it, with its result if that is wanted, and hands it over. `take` does not wait: what it does not write at once is in memory. */
  give(take: (event: Event) => void): Promise<void>;
}

/** Changes that wait for a slow reader. Beyond them they are forgotten, and read again from the records when it has caught up. */
const changesMax = 10_000;

/** Ends after the run's last event, or when `signal` aborts. */
export async function* follow(deps: EventDeps, runId: string, wish: FollowWish, signal: AbortSignal): AsyncGenerator<NextEvent> {
  const follower = new Follower(deps, runId, wish);
  try {
    yield* follower.events(signal);
  } finally {
    follower.close();
  }
}

class Follower {
  readonly #deps: EventDeps;
  readonly #runId: string;
  readonly #wish: FollowWish;
  readonly #unlisten: () => void;
  #history: HistoryReader;
  /** Ids of what has changed. Their rows may be large, and are read when it is their turn. */
  #tasks = new Set<string>();
  #runs = new Set<string>();
  /** Everything up to this millisecond has been given. */
  #given = Number.NEGATIVE_INFINITY;
  #waiting: RunHistoryEvent[] = [];
  /** How many events it has taken from the room of all. */
  #held = 0;
  #readAnew = true;
  #startedAt = 0;
  #rootId = "";
  #wake = () => {};

  constructor(deps: EventDeps, runId: string, wish: FollowWish) {
    this.#deps = deps;
    this.#runId = runId;
    this.#wish = wish;
    this.#history = this.#historyOf([[runId, []]]);
    deps.followers.open.add(this);
    this.#unlisten = deps.listen({ task: (task) => this.#taskChanged(task), run: (run) => this.#runChanged(run) });
  }

  close(): void {
    this.#deps.followers.open.delete(this);
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
        if (number >= this.#wish.since && (this.#wish.types.size === 0 || this.#wish.types.has(happened.type))) {
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
    if (!this.#wish.withResults) return take({ ...head, ...(await happened.tell()) });
    await followers.make(async () => {
      await reader.turn(1);
      take({ ...head, ...(await happened.tell(reader)) });
    });
  }

  #taskChanged(task: TaskRow): void {
    if (task.runId === null || !this.#history.members.has(wireRun(task.runId).runId)) return;
    this.#tasks.add(task.id);
    this.#changed();
  }

  #runChanged(run: Run): void {
    if (!this.#history.members.has(wireRun(run.id).runId) && !(this.#wish.withSubRuns && run.alias === this.#rootId)) return;
    this.#runs.add(run.id);
    this.#changed();
  }

  #changed(): void {
    if (this.#tasks.size + this.#runs.size > changesMax) {
      this.#readAnew = true;
      this.#tasks = new Set();
      this.#runs = new Set();
    }
    this.#wake();
  }

  /** Works out the events of what has changed since the last time, or of everything. Returns up to which time they are all there. */
  async #take(): Promise<number> {
    // After the commit that reported the first change, so that all its changes are here.
    await new Promise((resolve) => setImmediate(resolve));
    // Whatever is committed during this is reported again, and handled the next time.
    const now = this.#deps.clock.now();
    const [tasks, runs] = [this.#tasks, this.#runs];
    this.#tasks = new Set();
    this.#runs = new Set();
    if (this.#readAnew) {
      this.#readAnew = false;
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
    const { withSubRuns } = this.#wish;
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

  /** What was given before is recognised by its time. Throws RESOURCE_EXHAUSTED when there is no room for more. */
  #add(events: readonly RunHistoryEvent[]): void {
    const fresh = events.filter(({ at }) => at > this.#given);
    this.#deps.followers.checkHold(this.#held, fresh.length);
    this.#hold(fresh.length);
    for (const event of fresh) this.#waiting.push(event);
  }

  #hold(more: number): void {
    this.#held += more;
    this.#deps.followers.events += more;
  }

  /** What can be given by now, with its numbers. */
  *#due(now: number): Generator<{ number: number; happened: RunHistoryEvent }> {
    const ended = this.#waiting.find(({ last }) => last);
    const until = ended === undefined ? now - 1 : ended.at;
    const due = unique(this.#waiting.filter(({ at }) => at <= until).sort(byTime));
    this.#waiting = this.#waiting.filter(({ at }) => at > until);
    this.#given = Math.max(this.#given, until);
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

/** The same event may have been worked out from several changes of one row; the newest has the most. */
function unique(sorted: readonly RunHistoryEvent[]): RunHistoryEvent[] {
  return sorted.filter((happened, at) => {
    const next = sorted[at + 1];
    return next === undefined || byTime(happened, next) !== 0;
  });
}
