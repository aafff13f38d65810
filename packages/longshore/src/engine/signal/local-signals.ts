// Signals, in the process that owns the data. A signal is stored with its run. The oldest record of the run that waits for its name takes
// it in the same transaction. A record waits while its row is open and names the signal. So when a wait ends in another way, nothing has to
// be removed.

import type { Clock } from "../../core/clock.ts";
import { LongshoreError } from "../../core/errors.ts";
import type { Json, JsonObject } from "../../core/json/json.ts";
import { parseExact } from "../../core/json/json-exact.ts";
import { badSignalValue } from "../../core/schema/schema.ts";
import { provenViolations } from "../../core/schema/violations.ts";
import { Slices } from "../../core/slices/slices.ts";
import type { Audit } from "../audit/local-audit.ts";
import type { LocalBoard } from "../board/local-board.ts";
import type { TaskRow } from "../board/task.ts";
import type { Rows } from "../cached-rows.ts";
import type { GroupCommit } from "../commit.ts";
import { type Once, unmarked } from "../request-marks.ts";
import { type RowStore, readAll, type TableRows } from "../rows.ts";
import { noSuchRun } from "../run/no-such-run.ts";
import type { Plan } from "../run/plan.ts";
import { isRunOpen, type Message, type Run, taskIdOf } from "../run/run.ts";
import { rowBytes } from "../stored-bytes.ts";
import { type SignalHead, signalHeadTable, signalKey, signalRows } from "../tables/signal.ts";
import { taskIdTable } from "../tables/task.ts";
import type { ReadTx, Tx } from "../tx.ts";
import {
  checkSignal,
  keptSignalBytesMax,
  keptSignalsMax,
  type NewSignal,
  rememberedSignalsMax,
  type Signal,
  signalCountsOf,
  signalCountsText,
} from "./signal.ts";
import type { SignalPage, SignalQuery, SignalStore } from "./store.ts";
import { storedSignals } from "./stored-signals.ts";

export interface LocalSignalsDeps {
  store: RowStore;
  commit: GroupCommit;
  /** Default: no request is tracked. */
  performed?: Once;
  /** Default: nothing is noted. */
  audit?: Audit | undefined;
  clock: Clock;
  board: LocalBoard;
  runs: Rows<Run>;
  planOf: (tx: ReadTx, run: Run) => Plan;
  /** Stores a message of a run to itself. */
  leave: (tx: Tx, message: Message) => void;
  /** Default: turns of its own. */
  slices?: Slices;
}

/**
 * Maximum number of signals that one operation hands to records. Each is a decision about the run; another transaction hands out the
 * others.
 */
const takenMax = 20;
/** The cost of handing out one signal, in steps of a batch's budget: about 100 us. */
const takingSteps = 1_000;
/** How many steps of a run are read to find out which signals it waits for. */
const awaitedMax = 50;
/** How many rows are read at once, in search of a row that this batch has not changed. */
const searchRows = 20;

export class LocalSignals implements SignalStore {
  readonly #options: LocalSignalsDeps;
  readonly #rows: Rows<Signal>;
  readonly #heads: TableRows<SignalHead>;
  readonly #waits: TableRows<string>;
  readonly #list: Pick<SignalStore, "list">;
  /** Calls of `#within` in progress, and the signals that they have handed out. */
  #depth = 0;
  #taken = 0;
  /** Called with the value of each signal that a commit keeps. */
  readonly onKept = new Set<(value: string) => void>();
  /** Called with a value that a step has dropped, because it does not fit the step's schema. */
  readonly onMisfit = new Set<(task: TaskRow, signal: Signal, why: string) => void>();

  constructor(options: LocalSignalsDeps) {
    const { store, commit } = options;
    this.#options = options;
    this.#heads = store.table(signalHeadTable);
    this.#waits = store.table(taskIdTable);
    this.#list = storedSignals({ store, read: (work) => commit.read(work), slices: options.slices ?? new Slices() });
    this.#rows = signalRows(store, commit, ({ value }) => {
      if (value !== null) for (const listener of this.onKept) listener(value);
    });
  }

  async send(runId: string, signal: NewSignal): Promise<Signal> {
    checkSignal(signal);
    const { commit, performed = unmarked(commit) } = this.#options;
    const number = await performed.once(
      `signal ${runId}`,
      (tx) => this.sendNow(tx, runId, signal),
      (_, before) => before,
    );
    const sent = await commit.read((tx) => this.#rows.get(tx, signalKey(runId, number)));
    // The run was removed since.
    if (sent === null) throw noSuchRun(runId);
    return sent;
  }

  list(runId: string, query: SignalQuery): Promise<SignalPage> {
    return this.#list.list(runId, query);
  }

  awaited(runId: string): Promise<readonly string[]> {
    const { board, commit } = this.#options;
    return commit.read((tx) => {
      const by = ["run_id", "signal", "sequence"];
      const ids = [...this.#waits.scan(tx, { by, equal: [runId], having: "signal", without: "ended_at", limit: awaitedMax })];
      const tasks = readAll(ids, (id) => board.tasks.get(tx, id));
      return [...new Set(tasks.flatMap((task) => (task?.state === "queued" && task.signal !== null ? [task.signal] : [])))];
    });
  }

  /** Stores a signal, or finds the one with the same key. Returns its number. */
  sendNow(tx: Tx, runId: string, signal: NewSignal): number {
    const { runs, clock } = this.#options;
    const run = runs.get(tx, runId);
    if (run === null) throw noSuchRun(runId);
    const { name, value, key = null } = signal;
    const same = key === null ? null : this.#withKey(tx, runId, key);
    if (same !== null) return same.number;
    if (!isRunOpen(run.state)) throw isOver(run);
    const { sent, kept, bytes } = signalCountsOf(run);
    const more = bytesOf(signal);
    if (kept >= keptSignalsMax) throw tooMany(run, `${kept} signals`, `at most ${keptSignalsMax}`);
    if (bytes + more > keptSignalBytesMax) throw tooMany(run, `${bytes + more} bytes of signals`, `at most ${keptSignalBytesMax} bytes`);
    const number = sent + 1;
    this.#options.audit?.note(tx, {
      verb: "signal",
      kind: "run",
      target: runId,
      was: null,
      became: { signal: name, number, chars: value.length },
    });
    const row = { runId, number, name, key, value, sentAt: clock.now(), takenAt: null, taskId: null, attempt: null };
    this.#rows.put(tx, signalKey(runId, number), row, true);
    runs.put(tx, runId, { ...run, signals: signalCountsText({ sent: number, kept: kept + 1, bytes: bytes + more }) });
    this.#forget(tx, runId, number - rememberedSignalsMax);
    this.#within(() => this.#match(tx, runId, name));
    return number;
  }

  /** Records of a run have begun to wait for these signals: those for which there is a signal take it. */
  posted(tx: Tx, runId: string, names: readonly string[]): void {
    if (this.#hasKept(tx, runId)) this.#within(() => this.#matchEach(tx, runId, names));
  }

  /** The same for a record that waits again, or while another operation on the run is in progress: in the next transaction. */
  postedLater(tx: Tx, runId: string): void {
    if (this.#hasKept(tx, runId)) this.#options.leave(tx, { kind: "take-signals", runId });
  }

  /** Hands kept signals to the records of a run that wait for them. */
  matchAll(tx: Tx, runId: string): void {
    if (!this.#hasKept(tx, runId)) return;
    const kept = this.#heads.scan(tx, { by: ["run_id", "name", "number"], equal: [runId], without: "taken_at", limit: keptSignalsMax });
    const names = new Set(Array.from(kept, ({ name }) => name));
    for (const signal of this.#rows.pending(tx)) if (signal.runId === runId) names.add(signal.name);
    this.#within(() => this.#matchEach(tx, runId, [...names]));
  }

  /** The records of these nodes are void now. Signals that they took are kept again, in their old places. */
  giveBack(tx: Tx, runId: string, nodes: readonly number[]): void {
    const { tasks } = this.#options.board;
    const takers = new Map(nodes.map((node) => [taskIdOf(runId, node), tasks.get(tx, taskIdOf(runId, node))]));
    for (const signal of this.#newestTaken(tx, runId, takers)) {
      const run = this.#options.runs.get(tx, runId);
      const value = takers.get(signal.taskId as string)?.output ?? "null";
      if (run === null) return;
      const { sent, kept, bytes } = signalCountsOf(run);
      this.#rows.put(tx, signalKey(runId, signal.number), { ...signal, value, takenAt: null, taskId: null, attempt: null });
      const signals = signalCountsText({ sent, kept: kept + 1, bytes: bytes + bytesOf({ ...signal, value }) });
      this.#options.runs.put(tx, runId, { ...run, signals });
    }
  }

  /** The signals that these records have taken. They took them last, so these are among the newest signals. */
  #newestTaken(tx: Tx, runId: string, takers: ReadonlyMap<string, TaskRow | null>): Signal[] {
    const names = new Set(Array.from(takers.values(), (task) => task?.signal));
    const isTheirs = ({ taskId, attempt }: Signal) => taskId !== null && takers.get(taskId)?.attempt === attempt;
    const found = new Map(this.#rows.pending(tx).flatMap((one) => (one.runId === runId && isTheirs(one) ? [[one.number, one]] : [])));
    const scan = { by: ["run_id", "number"], equal: [runId], backwards: true, limit: searchRows };
    for (let before = Number.MAX_SAFE_INTEGER, looked = 0; found.size < takers.size && looked < rememberedSignalsMax; ) {
      const page = [...this.#heads.scan(tx, { ...scan, below: [before] })];
      for (const { number, name } of page) {
        const signal = names.has(name) ? this.#rows.get(tx, signalKey(runId, number)) : null;
        if (signal !== null && isTheirs(signal)) found.set(number, signal);
      }
      if (page.length < searchRows) break;
      before = (page.at(-1) as SignalHead).number;
      looked += page.length;
    }
    return [...found.values()];
  }

  /** Signals that earlier operations of the same batch keep. */
  pending(tx: Tx): readonly Signal[] {
    return this.#rows.pending(tx);
  }

  #hasKept(tx: Tx, runId: string): boolean {
    const run = this.#options.runs.get(tx, runId);
    return run !== null && run.signals !== null && isRunOpen(run.state) && signalCountsOf(run).kept > 0;
  }

  /** The operation has one budget for all signals, because its decisions may post further records that wait. */
  #within(work: () => void): void {
    if (this.#depth === 0) this.#taken = 0;
    this.#depth++;
    try {
      work();
    } finally {
      this.#depth--;
    }
  }

  #matchEach(tx: Tx, runId: string, names: readonly string[]): void {
    for (const name of new Set(names)) if (!this.#match(tx, runId, name)) return;
  }

  /** Returns false when the budget of the operation is used up: a message continues. */
  #match(tx: Tx, runId: string, name: string): boolean {
    for (;;) {
      const run = this.#options.runs.get(tx, runId);
      if (run === null || !isRunOpen(run.state)) return true;
      const signal = this.#oldestKept(tx, runId, name);
      const task = signal === null ? null : this.#oldestWait(tx, run, name);
      if (signal === null || task === null) return true;
      if (this.#taken >= takenMax) {
        this.#options.leave(tx, { kind: "take-signals", runId });
        return false;
      }
      this.#taken++;
      this.#take(tx, run, signal, task);
    }
  }

  #take(tx: Tx, run: Run, signal: Signal, task: TaskRow): void {
    const { runs, board, clock } = this.#options;
    const { sent, kept, bytes } = signalCountsOf(run);
    const value = signal.value ?? "null";
    const misfit = this.#misfitOf(tx, run, task, signal);
    const by = misfit === undefined ? { taskId: task.id, attempt: task.attempt } : {};
    const taken = { value: null, takenAt: clock.now(), ...by };
    tx.spend(takingSteps);
    this.#rows.put(tx, signalKey(run.id, signal.number), { ...signal, ...taken });
    runs.put(tx, run.id, { ...run, signals: signalCountsText({ sent, kept: kept - 1, bytes: bytes - bytesOf({ ...signal, value }) }) });
    if (misfit === undefined) return board.ofRuns.complete(tx, task, value);
    tx.after(() => {
      for (const listener of this.onMisfit) listener(task, signal, misfit);
    });
  }

  /** Why the value does not fit the schema of the step; undefined when it fits. Durable functions check the values themselves. */
  #misfitOf(tx: Tx, run: Run, task: TaskRow, { name, value }: Signal): string | undefined {
    const plan = this.#options.planOf(tx, run);
    const node = plan.driven ? undefined : plan.nodes[task.node];
    if (node?.kind !== "wait" || node.schema === undefined) return undefined;
    const violations = provenViolations(node.schema as JsonObject, parseExact(value ?? "null") as Json);
    return violations.length === 0 ? undefined : badSignalValue(name, violations).message;
  }

  #oldestKept(tx: Tx, runId: string, name: string): Signal | null {
    const scan = { by: ["run_id", "name", "number"], equal: [runId, name], without: "taken_at", limit: searchRows };
    for (let after = 0; ; ) {
      const page = [...this.#heads.scan(tx, { ...scan, above: [after] })];
      for (const { number } of page) {
        const signal = this.#rows.get(tx, signalKey(runId, number));
        if (signal !== null && signal.takenAt === null) return signal;
      }
      // The signals of this batch are newer than all that are stored.
      if (page.length < searchRows) break;
      after = (page.at(-1) as SignalHead).number;
    }
    return this.#rows.pending(tx).find((one) => one.runId === runId && one.name === name && one.takenAt === null) ?? null;
  }

  /** The record of the run that has waited longest for this name. */
  #oldestWait(tx: Tx, run: Run, name: string): TaskRow | null {
    const { tasks } = this.#options.board;
    const waits = (task: TaskRow | null) => task !== null && task.state === "queued" && task.signal === name;
    let oldest = this.#storedWait(tx, run.id, name, waits);
    for (const task of tasks.pending(tx))
      if (task.runId === run.id && waits(task) && (oldest === null || task.sequence < oldest.sequence)) oldest = task;
    return oldest ?? this.#unnamedWait(tx, run, name);
  }

  #storedWait(tx: Tx, runId: string, name: string, waits: (task: TaskRow | null) => boolean): TaskRow | null {
    const { tasks } = this.#options.board;
    const scan = { by: ["run_id", "signal", "sequence"], equal: [runId, name], having: "signal", without: "ended_at" };
    for (let offset = 0; ; offset += searchRows) {
      const ids = [...this.#waits.scan(tx, { ...scan, limit: searchRows, offset })];
      for (const id of ids) {
        const task = tasks.get(tx, id);
        if (waits(task)) return task;
      }
      if (ids.length < searchRows) return null;
    }
  }

  /** An earlier version has posted this record: its row does not name the step as its signal. */
  #unnamedWait(tx: Tx, run: Run, name: string): TaskRow | null {
    const { board, planOf } = this.#options;
    const plan = planOf(tx, run);
    const node = plan.index.get(name);
    if (node === undefined || plan.nodes[node]?.kind !== "wait") return null;
    const task = board.tasks.get(tx, taskIdOf(run.id, node));
    return task?.state === "queued" && task.signal === null ? task : null;
  }

  #withKey(tx: Tx, runId: string, key: string): Pick<Signal, "number"> | null {
    const pending = this.#rows.pending(tx).find((one) => one.runId === runId && one.key === key);
    if (pending !== undefined) return pending;
    const [stored = null] = this.#heads.scan(tx, { by: ["run_id", "key"], equal: [runId, key], having: "key", limit: 1 });
    return stored;
  }

  /** Removes the row of a signal that was taken long ago. */
  #forget(tx: Tx, runId: string, number: number): void {
    if (number < 1) return;
    const old = this.#rows.get(tx, signalKey(runId, number));
    if (old !== null && old.takenAt !== null) this.#rows.remove(tx, signalKey(runId, number));
  }
}

/** The bytes that a kept signal counts. Just after it was taken, its row still has the value, so the result is the same. */
function bytesOf({ name, value, key }: NewSignal): number {
  return rowBytes + Buffer.byteLength(name) + Buffer.byteLength(value) + (key == null ? 0 : Buffer.byteLength(key));
}

function isOver({ id, state }: Run): LongshoreError {
  return new LongshoreError("LONGSHORE_CONFLICT", `Run ${id} has ended as ${state}: it takes no more signals.`);
}

function tooMany({ id }: Run, given: string, expected: string): LongshoreError {
  return new LongshoreError(
    "LONGSHORE_LIMIT",
    `Run ${id} would keep ${given} that no step has taken, expected ${expected}. Check the name of the signal, or send fewer.`,
    { detail: { field: "signals", expected } },
  );
}
