// A store with the board and runs on it, with a clock that the test controls: a server without its ports.

import type { Clock } from "../../src/core/clock.ts";
import type { DebounceSource } from "../../src/core/debounce.ts";
import { idMaker } from "../../src/core/ids.ts";
import type { StartLimit } from "../../src/core/start-limit.ts";
import { Board } from "../../src/engine/board/board.ts";
import type { Reach } from "../../src/engine/board/lanes.ts";
import { laneOf } from "../../src/engine/board/lanes.ts";
import { farDeadlinePrefix } from "../../src/engine/board/local-deadlines.ts";
import type { BoardStore, NewTaskRow } from "../../src/engine/board/store.ts";
import type { Hold, TaskRow } from "../../src/engine/board/task.ts";
import type { PartStore } from "../../src/engine/part/store.ts";
import { brainOf } from "../../src/engine/run/brain.ts";
import type { Dialect } from "../../src/engine/run/dialect.ts";
import type { Run } from "../../src/engine/run/run.ts";
import { Runs } from "../../src/engine/run/runs.ts";
import type { Brain, RunStore } from "../../src/engine/run/store.ts";
import { scheduleDeadlinePrefix } from "../../src/engine/schedule/local-ticks.ts";
import type { ScheduleStore } from "../../src/engine/schedule/store.ts";
import type { SignalStore } from "../../src/engine/signal/store.ts";
import { codeDialect } from "../../src/protocols/longshore/dialect/dialect.ts";
import { functionDialect } from "../../src/protocols/longshore/dialect/function.ts";
import type { StepSource, Value } from "../../src/protocols/longshore/dialect/source.ts";
import { reservedLanes } from "../../src/server/protocols.ts";
import { TestClock } from "../../src/testing/clock.ts";
import { allOutputsDialect } from "./all-outputs-dialect.ts";
import { flowDialect } from "./simulation-flows.ts";
import { tiedDialect } from "./tied-dialect.ts";
import { waitingDialect } from "./waiting-dialect.ts";

export interface StoreHooks {
  deadline(id: string, at: number | null): void;
  taskChanged(task: TaskRow): void;
  runChanged(run: Run): void;
  messagesLeft(): void;
}

/** Called at every commit. A test throws from `before` or `after` to make the commit fail. */
export interface CommitProbe {
  before?(): void;
  after?(): unknown;
}

export interface StoreSetup {
  place: string | null;
  clock: Clock;
  random: () => number;
  brain: Brain;
  hooks: StoreHooks;
  probe: CommitProbe;
  sliceTasks?: number;
}

export interface OpenedStore {
  readonly board: BoardStore;
  readonly runs: RunStore;
  readonly parts: PartStore;
  readonly signals: SignalStore;
  readonly schedules: ScheduleStore;
  readonly ticks: { fire(name: string): Promise<void> };
  /** Resolves when no operation is queued or running, and nothing is being read. */
  quiet(): Promise<void>;
  /** Transactions committed so far. */
  commits(): number;
  /** Rebuilds memory from what is stored; called once all listeners are attached. */
  recover(): Promise<void>;
  readDeadlines(name: string): Promise<void>;
  close(): Promise<void>;
}

/** One implementation of the store port. */
export interface StoreKind {
  open(setup: StoreSetup): Promise<OpenedStore>;
  /** Whether what is in a place outlives the store. */
  readonly keeps: boolean;
  /** A new place whose content outlives the store. Null when this kind keeps nothing. */
  place(): string | null;
  /** A copy of a place as a power cut would leave it now. */
  copy(place: string): string | Promise<string>;
}

/** The fields of a workflow besides its steps. Default dialect: `code`. */
export interface Defining {
  output?: Value;
  timeoutMs?: number;
  limit?: StartLimit;
  debounce?: DebounceSource;
  dialect?: string;
}

export interface World {
  readonly clock: TestClock;
  readonly store: OpenedStore;
  readonly board: Board;
  readonly runs: Runs;
  readonly parts: PartStore;
  readonly schedules: ScheduleStore;
  readonly signals: SignalStore;
  readonly probe: CommitProbe;
  readonly place: string | null;
  /** Defines a workflow of code steps under `name` and starts it. */
  start(name: string, steps: StepSource[], parts?: Defining & { input?: Value }): Promise<Run>;
  define(name: string, steps: StepSource[], parts?: Defining): Promise<void>;
  post(id: string, parts?: Partial<NewTaskRow>): Promise<void>;
  /** Claims one task at once. */
  claim(names?: string | string[], parts?: { labels?: string[]; holder?: string; termMs?: number }): Promise<TaskRow | undefined>;
  task(id: string): Promise<TaskRow>;
  run(id: string): Promise<Run>;
  close(): Promise<void>;
}

export const termMs = 1_000;

export interface WorldOptions {
  place?: string | null;
  clock?: TestClock;
  /** False leaves the messages between runs where they are. */
  carries?: boolean;
  /** Tasks of a run that one transaction cancels, and that are read at once. */
  sliceTasks?: number;
}

/** Waits while the store is still busy with the work of a timer. */
class QuietClock extends TestClock {
  quiet: () => Promise<void> = () => Promise.resolve();

  protected override async turn(): Promise<void> {
    await super.turn();
    await this.quiet();
    await super.turn();
  }
}

export async function openWorld(kind: StoreKind, options: WorldOptions = {}): Promise<World> {
  const clock = options.clock ?? new QuietClock();
  const place = options.place === undefined ? kind.place() : options.place;
  const dialects = new Map<string, Dialect>(
    [codeDialect, tiedDialect, allOutputsDialect, flowDialect, waitingDialect, functionDialect].map((dialect) => [dialect.name, dialect]),
  );
  const probe: CommitProbe = {};
  const store = await kind.open({
    place,
    clock,
    random: () => 0.5,
    brain: brainOf(dialects, { reserved: reservedLanes }),
    probe,
    sliceTasks: options.sliceTasks,
    hooks: {
      deadline: (id, at) => board.deadline(id, at),
      taskChanged: (task) => board.changed(task),
      runChanged: (run) => runs.changed(run),
      messagesLeft: () => {
        if (options.carries !== false) runs.carry();
      },
    },
  });
  const board = new Board({ store: store.board, clock, reserved: reservedLanes });
  board.onDeadline(scheduleDeadlinePrefix, (name) => store.ticks.fire(name));
  board.onDeadline(farDeadlinePrefix, (name) => store.readDeadlines(name));
  const runs = new Runs({ store: store.runs, clock, makeId: idMaker(), dialects });
  if (clock instanceof QuietClock) clock.quiet = () => store.quiet();
  opened.add(store);
  await store.recover();
  const define: World["define"] = async (name, steps, parts = {}) => {
    const source = { name, steps, output: parts.output ?? null, timeoutMs: parts.timeoutMs, limit: parts.limit, debounce: parts.debounce };
    await runs.define({ name, dialect: parts.dialect ?? "code", source: JSON.stringify(source) });
  };
  let closed = false;
  return {
    clock,
    store,
    board,
    runs,
    parts: store.parts,
    signals: store.signals,
    schedules: store.schedules,
    probe,
    place,
    define,
    async start(name, steps, parts = {}) {
      await define(name, steps, parts);
      return (await runs.start({ workflow: name, input: JSON.stringify(parts.input ?? null) })).run;
    },
    post: (id, parts = {}) => board.post([newTask(id, parts)]),
    async claim(names = "work", parts = {}) {
      const reach: Reach = { names: typeof names === "string" ? [names] : names, labels: parts.labels ?? [] };
      const [task] = await board.claim({ reach, holder: parts.holder ?? "ann", termMs: parts.termMs ?? termMs });
      return task;
    },
    task: (id) => found(board.task(id), `task ${id}`),
    run: (id) => found(runs.run(id), `run ${id}`),
    async close() {
      if (closed) return;
      closed = true;
      board.close();
      await runs.close();
      opened.delete(store);
      await store.close();
    },
  };
}

export function newTask(id: string, parts: Partial<NewTaskRow> = {}): NewTaskRow {
  return { id, step: "work", lanes: [laneOf("work")], input: "null", policy: null, ...parts };
}

export function policy(parts: { failures?: number; lost?: number; delayMs?: number }): string {
  return JSON.stringify({ failures: parts.failures ?? 0, lost: parts.lost ?? 0, backoff: { kind: "fixed", delayMs: parts.delayMs ?? 0 } });
}

export function holdOf(task: TaskRow | undefined): Hold {
  if (task === undefined) throw new Error("There is no task to hold.");
  return { taskId: task.id, grant: task.grant, holder: task.holder ?? undefined };
}

/** Steps of a code workflow, on lanes of their own name. */
export function step(id: string, parts: Partial<StepSource> = {}): StepSource {
  return { id, ...(parts.workflow === undefined ? { task: id } : {}), input: null, ...parts };
}

async function found<T>(looked: Promise<T | undefined>, what: string): Promise<T> {
  const value = await looked;
  if (value === undefined) throw new Error(`There is no ${what}.`);
  return value;
}

/** How many turns a store with asynchronous reads needs when another store needs one. */
const laterTurns = 3;

/** The open stores. A turn waits for a store that is on another machine. */
const opened = new Set<OpenedStore>();

/** Lets all scheduled work run, except timers of the test clock. */
export async function turns(count = 5): Promise<void> {
  for (let turn = 0; turn < count * laterTurns; turn++) {
    await new Promise((resolve) => setImmediate(resolve));
    for (const store of opened) await store.quiet();
  }
}
