// One life of a simulated server: a real store, board and runs on a database that outlives it. It ends by a crash: changes without a commit
// are lost, and open requests are never answered.

import { idMaker, type MakeId } from "../../src/core/ids.ts";
import { Slices } from "../../src/core/slices/slices.ts";
import { Board } from "../../src/engine/board/board.ts";
import { farDeadlinePrefix } from "../../src/engine/board/local-deadlines.ts";
import type { TaskRow } from "../../src/engine/board/task.ts";
import type { RowStore } from "../../src/engine/rows.ts";
import { brainOf } from "../../src/engine/run/brain.ts";
import { Counts } from "../../src/engine/run/counts.ts";
import type { Dialect } from "../../src/engine/run/dialect.ts";
import { LocalReader } from "../../src/engine/run/local-reader.ts";
import { Runs } from "../../src/engine/run/runs.ts";
import { scheduleDeadlinePrefix } from "../../src/engine/schedule/local-ticks.ts";
import { codeDialect } from "../../src/protocols/longshore/dialect/dialect.ts";
import { functionDialect } from "../../src/protocols/longshore/dialect/function.ts";
import type { DataStore } from "../../src/server/data-store.ts";
import { reservedLanes } from "../../src/server/protocols.ts";
import { TestClock } from "../../src/testing/clock.ts";
import type { Random } from "../faults/random.ts";
import { openSqliteStore } from "../support/sqlite-store.ts";
import { missingRows } from "./missing-rows.ts";
import type { Disk } from "./simulation-disk.ts";
import { flowDialect } from "./simulation-flows.ts";
import type { Lives } from "./simulation-lives.ts";
import { type Break, type Shards, SimulatedOwner } from "./simulation-owner.ts";
import { type Plant, planted, plantedRows } from "./simulation-plants.ts";
import type { CommittedStates } from "./simulation-reads.ts";
import { rowsOnWire } from "./simulation-wire.ts";
import { diskFull } from "./sqlite.ts";
import { tiedDialect } from "./tied-dialect.ts";
import { turns } from "./world.ts";

/** The fault of the next commit. Both crashes end the process. After the second kind, the commit is stored, but no caller gets an answer. */
export type Fault = "disk-full" | "crash-before-commit" | "crash-after-commit";

export interface Process {
  readonly store: DataStore;
  readonly board: Board;
  readonly runs: Runs;
  readonly reader: LocalReader;
  readonly alive: boolean;
  /** Null when only one server at a time can have the data. */
  readonly owner: SimulatedOwner | null;
  /** Another server has taken the data over. */
  readonly isDeposed: boolean;
  /** The newest committed state that this life knows to be committed. */
  readonly acknowledged: number;
  /** The next commit meets this fault. */
  fault: Fault | null;
  crash(): void;
}

/** The maximum number of timers that one step may set: far more than needed, and far fewer than an endless loop sets. */
const timersMax = 10_000;

/** Detects an endless loop of a real machine: a timer that sets itself for the current time again and again. */
export class WatchedClock extends TestClock {
  #armed = 0;
  /** Resolves when the store has nothing to do. */
  quiet: () => Promise<void> = () => Promise.resolve();

  protected override async turn(): Promise<void> {
    await super.turn();
    await this.quiet();
  }

  override at(atMs: number, fn: () => void): () => void {
    return ++this.#armed > timersMax ? () => {} : super.at(atMs, fn);
  }

  /** True when a step has armed too many; then the next one is counted. */
  tooBusy(): boolean {
    const busy = this.#armed > timersMax;
    this.#armed = 0;
    return busy;
  }
}

export interface Machine {
  readonly disk: Disk;
  readonly clock: WatchedClock;
  readonly random: Random;
  readonly makeId: MakeId;
  readonly lives: Lives;
  /** The fault of the next commit when no step of the simulation has set one. Default: none. */
  nextFault?(): Fault | null;
  /** How many tasks of an ended run one transaction writes. Runs have few tasks here. Default: one, so that most runs end in several. */
  sliceTasks?(): number;
  handedOut(task: TaskRow): void;
  /** A promise was broken inside a commit, where nothing may throw. */
  failed(error: unknown): void;
  /** A disk that sometimes confirms writes that it has not made. For testing the simulation itself. */
  readonly lies: boolean;
  /** Rows are read later and commits take a while, as with a database on another machine. */
  readonly late: boolean;
  /** The database is on the far side of a connection that breaks, and its shards have owners. */
  readonly wire: boolean;
  /** Clients restart runs while messages about their end wait. */
  readonly overtakes?: boolean;
  readonly shards: Shards;
  readonly states: CommittedStates;
  /** Connections break from the start of a life until the faults end. */
  isTroubled: boolean;
  /** The lives that may have something in progress. */
  readonly running: Set<Process>;
  /** A fault of the engine. For testing the simulation itself. */
  readonly plant: Plant | null;
  say(what: string): void;
}

export function machineIds(random: Random): MakeId {
  return idMaker((into) => {
    for (let at = 0; at < into.length; at++) into[at] = random.between(0, 255);
  });
}

export async function startProcess(machine: Machine): Promise<Process> {
  const { clock, random } = machine;
  const { db } = machine.disk;
  const dialects = new Map<string, Dialect>(
    [codeDialect, functionDialect, tiedDialect, flowDialect].map((dialect) => [dialect.name, dialect]),
  );
  let alive = true;
  const life = { fault: null as Fault | null, isTroubled: false, committed: machine.states.last, acknowledged: machine.states.last };
  const owner = machine.wire ? ownerOf(machine, 0) : null;
  const store = await openSqliteStore({
    directory: null,
    clock,
    random: () => random.next(),
    brain: machine.lives.watch(brainOf(dialects, { reserved: reservedLanes }), (error) => {
      // The state of a replaced owner is never written.
      if (!owner?.isDeposed) machine.failed(error);
    }),
    open: async () => ({ ...db, transaction, close: () => {} }),
    sliceTasks: machine.sliceTasks?.() ?? 1,
    wrap: (stored) => {
      const rows = machine.plant === null ? stored : plantedRows(stored, machine.plant);
      return owner !== null ? onWire(rows, owner) : machine.late ? missingRows(rows, { misses: 0 }, turnsOf(random)) : rows;
    },
    hooks: {
      deadline: (id, at) => board.deadline(id, at),
      taskChanged: (task) => {
        counts.taskChanged(task);
        board.changed(task);
        machine.handedOut(task);
      },
      runChanged: (run, before) => {
        counts.runChanged(run, before);
        runs.changed(run);
      },
      messagesLeft: () => carry(),
    },
  });
  if (machine.plant !== null) planted(store, machine.plant);
  const counts = new Counts({ store: store.rows, commit: store.commit });
  const reader = readerOf(store, counts);
  const board = new Board({ store: store.board, clock, reserved: reservedLanes });
  board.onDeadline(scheduleDeadlinePrefix, (name) => store.ticks.fire(name));
  board.onDeadline(farDeadlinePrefix, (name) => store.readDeadlines(name));
  const runs = new Runs({ store: store.runs, clock, makeId: machine.makeId, dialects });

  /** Messages between runs may be delayed, and commands may overtake them. */
  function carry(): void {
    if (random.chance(0.5)) runs.carry();
    else clock.at(clock.now() + (random.pick([1, 60, 500]) as number), () => runs.carry());
  }

  function onWire(rows: RowStore, by: SimulatedOwner): RowStore {
    const troubled = (probability: number) => machine.isTroubled && life.isTroubled && random.chance(probability);
    const onIt = rowsOnWire(rows, {
      owner: by,
      turns: turnsOf(random),
      pause: () => turns(random.between(0, 3)),
      nextBreak: () => (troubled(0.12) ? (random.pick(breaks) as Break) : null),
      failsLoad: () => troubled(0.04),
      acknowledged: () => {
        life.acknowledged = life.committed;
      },
    });
    return machine.plant === "endless trust" ? { ...onIt, isOwned: () => true } : onIt;
  }

  function transaction(work: () => void): void {
    const fault = life.fault ?? machine.nextFault?.() ?? null;
    life.fault = null;
    if (machine.lies && random.chance(0.1)) return;
    db.transaction(() => {
      if (!alive) throw new Error("A dead process writes nothing.");
      work();
      if (fault === "disk-full") throw diskFull();
      if (fault === "crash-before-commit") throw crashed();
    });
    machine.lives.nextCommit();
    const stored = machine.disk.read();
    if (machine.wire) machine.states.add(stored);
    life.committed = machine.states.last;
    if (fault === "crash-after-commit") throw crashed();
  }

  function crashed(): Error {
    crash();
    return new Error("The process has crashed.");
  }

  function crash(): void {
    alive = false;
    owner?.stop();
    board.close();
    void runs.close();
  }

  const process: Process = {
    store,
    board,
    runs,
    reader,
    owner,
    crash,
    get isDeposed() {
      return owner?.isDeposed ?? false;
    },
    get acknowledged() {
      return life.acknowledged;
    },
    get alive() {
      return alive;
    },
    get fault() {
      return life.fault;
    },
    set fault(next) {
      life.fault = next;
    },
  };
  for (const other of machine.running) if (!other.alive) machine.running.delete(other);
  machine.running.add(process);
  clock.quiet = async () => {
    for (const each of machine.running) await each.store.commit.quiet();
  };
  await store.recover();
  life.isTroubled = true;
  return process;
}

const breaks: readonly Break[] = ["before", "after", "after", "late"];

function turnsOf(random: Random): () => number {
  return () => random.between(0, 3);
}

function ownerOf({ shards, clock, random, say }: Machine, shard: number): SimulatedOwner {
  return new SimulatedOwner({
    ...{ shards, shard, clock, say },
    pause: () => turns(random.between(0, 3)),
    isAskingLost: () => random.chance(0.6),
  });
}

function readerOf({ rows, commit, board, runs }: DataStore, counts: Counts): LocalReader {
  return new LocalReader({
    store: rows,
    read: (work) => commit.read(work),
    ...{ tasks: board.tasks, lanes: board.lanes, runs: runs.runs, definitions: runs.definitions },
    ...{ counts, slices: new Slices() },
  });
}
