// Follows what happens in a run: first what is recorded, then what comes, in one order with rising numbers. An event is sent when its
// millisecond has passed, because then no other can come before it: every change of a millisecond is committed within it. So a later reader
// of the records finds the same events in the same order under the same numbers.

import type { Clock } from "../../../../core/clock.ts";
import type { TaskRow } from "../../../../engine/board/task.ts";
import type { Reader } from "../../../../engine/run/reader.ts";
import type { Run } from "../../../../engine/run/run.ts";
import { GrpcCode, GrpcError } from "../../../../net/grpc/status.ts";
import type { Encodable } from "../../../../net/protobuf/protobuf.ts";
import { settingsOf } from "../../dialect/settings.ts";
import type { StatusEvent } from "../../wire/api-messages.ts";
import { wireRun } from "../run-id.ts";
import { byTime, eventsOfItem, eventsOfRun, eventsOfStep, type RunHistoryEvent, type Within, withinStep } from "./event-history.ts";
import type { ItemRuns } from "./items.ts";
import type { Renderer } from "./render.ts";
import { numberOf, numberOfEnd } from "./sequence.ts";

export interface EventDeps {
  readonly clock: Clock;
  readonly reader: Reader;
  readonly renderer: Renderer;
  readonly items: ItemRuns;
  /** Calls back for every task and run that a commit changed; ends with the function that is returned. */
  listen(listener: { task(task: TaskRow): void; run(run: Run): void }): () => void;
  readonly followers: Followers;
}

/** Those that follow now, and how many events wait to be given to them. */
export class Followers {
  readonly open = new Set<object>();
  events = 0;
  #reading = 0;
  readonly #line: (() => void)[] = [];

  /** Few read all records of their runs at once; the others wait with nothing in memory. */
  async inTurn(read: () => Promise<void>): Promise<void> {
    if (this.#reading < readingMax) this.#reading++;
    else await new Promise<void>((resolve) => this.#line.push(resolve));
    try {
      await read();
    } finally {
      const next = this.#line.shift();
      if (next === undefined) this.#reading--;
      else next();
    }
  }

  /** Whether one that has so many events waiting may have more. What it has itself does not count, so that the largest run can be followed. */
  mayHold(own: number, more: number): boolean {
    return this.events - own + more <= eventsMax;
  }
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

/** Each holds the row of a run meanwhile, which may have the inputs of all of its items. */
const readingMax = 8;
/** Events that wait for all readers together, besides those of one: about 200 MB. */
const eventsMax = 500_000;
/** Changes that wait for a slow reader. Beyond them they are forgotten, and read again from the records when it has caught up. */
const changesMax = 10_000;
/** Runs of one family that are looked through for those that belong to the run. */
const familyMax = 100_000;

/** Readers at once. Each costs its share of every change. */
const followersMax = 500;

/** Throws RESOURCE_EXHAUSTED when there is no room for another. */
export function checkRoom({ followers }: EventDeps): void {
  if (followers.open.size < followersMax) return;
  throw new GrpcError(GrpcCode.RESOURCE_EXHAUSTED, `${followersMax} readers follow events already, which is the limit`);
}

/** Ends after the run's last event, or when `signal` aborts. */
export async function* follow(deps: EventDeps, runId: string, wish: FollowWish, signal: AbortSignal): AsyncGenerator<Event> {
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
  /** Runs that the wire knows and whose events belong here, with their places. Those of their items are found by their ids. */
  readonly #members = new Map<string, Within>();
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
    this.#members.set(runId, []);
    deps.followers.open.add(this);
    this.#unlisten = deps.listen({ task: (task) => this.#taskChanged(task), run: (run) => this.#runChanged(run) });
  }

  close(): void {
    this.#deps.followers.open.delete(this);
    this.#hold(-this.#held);
    this.#unlisten();
    this.#wake();
  }

  async *events(signal: AbortSignal): AsyncGenerator<Event> {
    const { clock } = this.#deps;
    while (!signal.aborted) {
      const changed = new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
      for (const { number, happened } of this.#due(await this.#take())) {
        if (signal.aborted) return;
        if (number >= this.#wish.since && (this.#wish.types.size === 0 || this.#wish.types.has(happened.type))) {
          yield { sequenceNumber: number, timestamp: happened.at, ...(await this.#told(happened)) };
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

  async #told(happened: RunHistoryEvent): Promise<Encodable<typeof StatusEvent>> {
    const { reader } = this.#deps;
    if (!this.#wish.withResults) return happened.tell();
    await reader.turn(1);
    return happened.tell(reader);
  }

  #taskChanged(task: TaskRow): void {
    if (task.runId === null || !this.#members.has(wireRun(task.runId).runId)) return;
    this.#tasks.add(task.id);
    this.#changed();
  }

  #runChanged(run: Run): void {
    if (!this.#members.has(wireRun(run.id).runId) && !(this.#wish.withSubRuns && run.alias === this.#rootId)) return;
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
      await this.#deps.followers.inTurn(() => this.#readAll());
      return now;
    }
    const { reader } = this.#deps;
    for (const id of runs) await this.#takeRun(await reader.run(id));
    for (const id of tasks) await this.#takeTask(await reader.task(id));
    return now;
  }

  async #readAll(): Promise<void> {
    const { reader, renderer } = this.#deps;
    const run = await reader.run(this.#runId);
    if (run === undefined) return;
    this.#startedAt = await renderer.startOf(run);
    this.#rootId = settingsOf(run).rootRunId ?? run.id;
    await this.#readRun(run);
    if (!this.#wish.withSubRuns) return;
    for (const id of await this.#family()) {
      const other = await reader.run(id);
      if (other !== undefined && (await this.#join(other))) await this.#readRun(other);
    }
  }

  /** The ids, oldest first: a run comes before those that it has started. */
  async #family(): Promise<string[]> {
    const found: { id: string; createdAt: number; depth: number }[] = [];
    const order = { by: "created", down: false } as const;
    const { runs } = await this.#deps.reader.search({ aliases: [this.#rootId], order, offset: 0, limit: familyMax });
    for await (const run of runs) found.push({ id: run.id, createdAt: run.createdAt, depth: settingsOf(run).depth ?? 0 });
    return found.sort((a, b) => a.createdAt - b.createdAt || a.depth - b.depth).map(({ id }) => id);
  }

  /** True for a run that belongs to one that is followed, from now on or before. */
  async #join(run: Run): Promise<boolean> {
    if (this.#members.has(run.id)) return true;
    const { parentRunId, parentTaskId } = settingsOf(run);
    const around = parentRunId === undefined ? undefined : this.#members.get(parentRunId);
    if (around === undefined) return false;
    const task = parentTaskId === undefined ? undefined : await this.#deps.reader.task(parentTaskId);
    const step = task?.runId == null ? undefined : { itemIndex: wireRun(task.runId).itemIndex, ordinal: task.ordinal };
    this.#members.set(run.id, withinStep(around, step, run));
    return true;
  }

  /** A whole run that the wire knows. */
  async #readRun(run: Run): Promise<void> {
    const within = this.#members.get(run.id) as Within;
    this.#add(eventsOfRun(run, within, run.id === this.#runId));
    if (settingsOf(run).items === undefined) return this.#readItem(run, within);
    for await (const item of this.#deps.items.each(run.id)) await this.#readItem(item, within);
  }

  async #readItem(item: Run, within: Within): Promise<void> {
    const view = await this.#deps.renderer.viewOf(item);
    this.#add(eventsOfItem(item, view, within));
    for await (const task of this.#deps.reader.records(item.id)) {
      const step = view.byNode.get(task.node);
      if (step === undefined) continue;
      const earlier = task.attempt > task.firstAttempt ? (await this.#deps.reader.attempts(task.id)).slice(0, -1) : [];
      this.#add(
        eventsOfStep(
          task,
          step,
          within,
          earlier.filter(({ attempt }) => attempt >= task.firstAttempt),
        ),
      );
    }
  }

  async #takeRun(run: Run | undefined): Promise<void> {
    if (run === undefined) return;
    const { runId } = wireRun(run.id);
    if (runId === run.id && !this.#members.has(run.id)) {
      // A run that has just been started; its tasks may have been reported before it.
      if (await this.#join(run)) await this.#readRun(run);
      return;
    }
    const within = this.#members.get(runId);
    if (within === undefined) return;
    if (run.id === runId) this.#add(eventsOfRun(run, within, run.id === this.#runId));
    if (settingsOf(run).items === undefined) this.#add(eventsOfItem(run, await this.#deps.renderer.viewOf(run), within));
  }

  async #takeTask(task: TaskRow | undefined): Promise<void> {
    if (task === undefined) return;
    const within = this.#members.get(wireRun(task.runId as string).runId);
    const item = within === undefined ? undefined : await this.#deps.reader.run(task.runId as string);
    // The task that looks after the items of a run is no step of theirs.
    if (item === undefined || within === undefined || settingsOf(item).items !== undefined) return;
    const step = (await this.#deps.renderer.viewOf(item)).byNode.get(task.node);
    if (step !== undefined) this.#add(eventsOfStep(task, step, within));
  }

  /** What was given before is recognised by its time. Throws RESOURCE_EXHAUSTED when there is no room for more. */
  #add(events: readonly RunHistoryEvent[]): void {
    const fresh = events.filter(({ at }) => at > this.#given);
    if (!this.#deps.followers.mayHold(this.#held, fresh.length))
      throw new GrpcError(GrpcCode.RESOURCE_EXHAUSTED, `${eventsMax} events wait for their readers already, which is the limit`);
    this.#hold(fresh.length);
    this.#waiting.push(...fresh);
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
