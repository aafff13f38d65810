// Random durable functions on a server and a worker that crash. The result must be the one without crashes. Each side effect must be in the
// journal once, and the result of each step accepted once. The functions run in the real driver, on the real board, decider and rows. This
// file reports tasks, loses workers, repeats reports, and ends the server before or after a commit. With every second seed, rows are read
// later and commits take a while, as with a database on another machine.

import { writeExact } from "../../src/core/json/json-exact.ts";
import { Slices } from "../../src/core/slices/slices.ts";
import type { Task } from "../../src/core/task.ts";
import { type JournalPage, journalQuestion, type Turn, type TurnNews, type TurnReport } from "../../src/core/turn.ts";
import { isDriver, isOpen, type TaskRow } from "../../src/engine/board/task.ts";
import { commandOf, isCommand } from "../../src/engine/run/driven-state.ts";
import type { RunHistory } from "../../src/engine/run/history.ts";
import { LocalHistory } from "../../src/engine/run/local-history.ts";
import { LocalJournal } from "../../src/engine/run/local-journal.ts";
import { isRunOpen } from "../../src/engine/run/run.ts";
import type { ReadTx } from "../../src/engine/tx.ts";
import { driverTasks } from "../../src/runner/function/driver.ts";
import { foresightOf } from "../../src/runner/function/foreseen-turns.ts";
import { sqliteRows } from "../../src/store/sqlite/row-store.ts";
import { checkHistory } from "../../src/verify/verify.ts";
import { type Random, seededRandom } from "../faults/random.ts";
import type { Disk } from "./simulation-disk.ts";
import { altered, type FunctionPlant, planted } from "./simulation-function-plants.ts";
import { Lives } from "./simulation-lives.ts";
import { broken } from "./simulation-model.ts";
import { Operator } from "./simulation-operator.ts";
import { Shards } from "./simulation-owner.ts";
import { type Fault, type Machine, machineIds, type Process, startProcess, WatchedClock } from "./simulation-process.ts";
import { functionsOf, makeProgram, type Played, type Program, resultsOf, taskNames } from "./simulation-programs.ts";
import { CommittedStates } from "./simulation-reads.ts";
import { turns } from "./world.ts";

/** The handlers of a worker by their lane. */
type FunctionWorker = ReadonlyMap<string, Task>;

/** When the server crashes, and what goes wrong with workers. Chances are in [0, 1]. */
export interface Trouble {
  /** The server ends at this commit, counted from the start of the run; at others with `crashes`. */
  readonly at?: { readonly commit: number; readonly fault: Fault };
  readonly crashes?: number;
  readonly lost?: number;
  readonly repeated?: number;
  /** An operator gives an order. */
  readonly orders?: number;
  readonly plant?: FunctionPlant;
}

export interface Outcome {
  readonly commits: number;
  readonly crashes: number;
  readonly lost: number;
  readonly replays: number;
  /** Turns that were accepted before they were handed out. */
  readonly foreseen: number;
  readonly locals: number;
  /** Orders that an operator gave. */
  readonly orders: number;
}

const termMs = 1_000;
/** Far more than a program needs with many crashes. */
const roundsMax = 3_000;
/** After this many rounds of a story, runs that an order has stopped are continued. */
const ordersWithin = 400;
/** Longer than any program sleeps, except for sleeps that must lose a race. */
const longMs = 86_400_000;
/** Turns of the event loop within which a running server has answered. */
const turnsMax = 500;

export async function playFunctions(seed: number, disk: Disk, trouble: Trouble = {}): Promise<Outcome> {
  const simulation = new Simulation(seed, disk, trouble);
  try {
    return await simulation.play();
  } catch (error) {
    const way = [JSON.stringify(makeProgram(seededRandom(seed))), ...simulation.way].join("\n");
    throw new Error(`Seed ${seed} with ${JSON.stringify(trouble)}: ${(error as Error).message}\n${way}`, { cause: error });
  }
}

class Simulation {
  /** What happened, as a text. */
  readonly way: string[] = [];
  readonly #program: Program;
  readonly #trouble: Trouble;
  readonly #random: Random;
  readonly #machine: Machine;
  readonly #disk: Disk;
  /** The number of the last side effect or handler call: no two have the same. */
  #count = 0;
  #commits = 0;
  /** Crashes begin when the programs are defined. */
  #isTroubled = false;
  readonly #outcome = { crashes: 0, lost: 0, replays: 0, foreseen: 0 };
  /** The result of each command when it was first on disk, by its run and its mark. */
  readonly #accepted = new Map<string, string>();
  /** Results that another life or pass produces again. */
  readonly #void = new Set<string>();
  /** The records of each side effect, by its run and its mark. */
  readonly #locals = new Map<string, Set<string>>();
  /** The newest attempt of each record, and the result that it has given. */
  readonly #attempts = new Map<string, number>();
  readonly #keys = new Map<string, string>();
  readonly #operator: Operator;
  #failure: unknown;
  #worker: FunctionWorker;

  constructor(seed: number, disk: Disk, trouble: Trouble) {
    this.#program = makeProgram(seededRandom(seed));
    this.#trouble = trouble;
    this.#disk = disk;
    this.#random = seededRandom(seed + 1_000_003);
    this.#operator = new Operator(this.#random, disk, this.#program, (what) => this.#say(what));
    disk.wipe();
    disk.watch = { task: (task) => this.#look(task), run: () => {} };
    this.#machine = {
      ...{ disk, clock: new WatchedClock(1_000_000), random: this.#random, lives: new Lives(), plant: null },
      ...{ lies: trouble.plant === "lost commits", late: seed % 2 === 0, wire: false, isTroubled: false },
      ...{ makeId: machineIds(this.#random), shards: new Shards(), states: new CommittedStates(), running: new Set() },
      nextFault: () => this.#nextFault(),
      handedOut: () => {},
      failed: (error) => {
        this.#failure ??= error;
      },
      say: () => {},
    };
    this.#worker = this.#newWorker();
  }

  async play(): Promise<Outcome> {
    let process = await startProcess(this.#machine);
    for (const { name, source } of functionsOf(this.#program, { count: () => 0, uses: () => {} }))
      await process.runs.define({ name, dialect: "function", source: JSON.stringify(source) });
    const { run } = await process.runs.start({ workflow: this.#program.name, input: "null" });
    this.#isTroubled = true;
    const { orders = 0 } = this.#trouble;
    for (let round = 0; ; round++) {
      if (round > roundsMax) throw broken(`the run has not ended after ${roundsMax} rounds: ${this.#open()}`);
      if (!process.alive) {
        this.#verify();
        process = await this.#restart();
      }
      const stored = this.#disk.read();
      if (this.#failure !== undefined) throw this.#failure;
      const now = stored.runs.get(run.id);
      if (now === undefined) throw broken("the run is gone");
      if (now.state === "succeeded" || (orders === 0 && now.state !== "running")) break;
      if (now.state === "blocked") throw broken(`the run is blocked: ${now.error}`);
      if (this.#random.chance(orders)) await unlessDead(this.#operator.order(process), undefined);
      const waits = !(await this.#work(process));
      const isLate = this.#operator.isDone || round > ordersWithin || this.#waitsLong();
      const isOn = orders > 0 && isLate && (await unlessDead(this.#operator.bringOn(process, run.id), false));
      if (waits && !isOn) await this.#pass();
    }
    this.#isTroubled = false;
    const { state, output, error } = this.#disk.read().runs.get(run.id) ?? {};
    process.crash();
    this.#verify();
    if (state !== "succeeded") throw broken(`the run is ${state}: ${error}`);
    this.#compare(JSON.parse(output ?? "null") as Played);
    return { ...this.#outcome, commits: this.#commits, locals: this.#locals.size, orders: this.#operator.given };
  }

  /** Takes the available work and reports it. False when there is nothing to do now. */
  async #work(process: Process): Promise<boolean> {
    const claimed = await unlessDead(process.board.claim({ ...this.#claim(), max: this.#random.between(1, 4) }), []);
    await unlessDead(Promise.all(claimed.map((task) => this.#perform(process, task))), []);
    await turns(2);
    await this.#machine.clock.quiet();
    return claimed.length > 0;
  }

  #claim() {
    return { reach: { names: [...taskNames, ...this.#worker.keys()], labels: [] }, holder: "w", termMs };
  }

  /** Nothing is due before the sleeps that must lose every race. */
  #waitsLong(): boolean {
    const { clock } = this.#machine;
    return (clock.nextAtMs ?? Number.POSITIVE_INFINITY) > clock.now() + longMs;
  }

  async #pass(): Promise<void> {
    const { clock } = this.#machine;
    await clock.advance(Math.max(1, (clock.nextAtMs ?? clock.now()) - clock.now()));
    clock.tooBusy();
  }

  async #restart(): Promise<Process> {
    this.#outcome.crashes++;
    // A worker in a process of its own does not end with the server.
    if (this.#random.chance(0.5)) this.#worker = this.#newWorker();
    return startProcess(this.#machine);
  }

  async #perform(process: Process, task: TaskRow): Promise<void> {
    const { board } = process;
    const hold = { taskId: task.id, grant: task.grant };
    const { lost = 0, repeated = 0 } = this.#trouble;
    try {
      const output = isDriver(task) ? await this.#turn(process, task) : await this.#handle(process, task);
      if (this.#random.chance(lost)) {
        this.#outcome.lost++;
        this.#worker = this.#newWorker();
        return;
      }
      if (!isDriver(task) && this.#random.chance(0.7)) return await this.#completeWithTurn(process, task, output);
      const calls = this.#random.chance(repeated) ? 2 : 1;
      for (let call = 0; call < calls; call++) await board.complete(hold, output);
    } catch (error) {
      await board.fail(hold, { error: (error as Error).message, retryable: !(error instanceof Refused) });
    }
  }

  /** Reports a step as a worker does that takes another task. Adds the turn that the result brings, if it has the function in memory. */
  async #completeWithTurn(process: Process, task: TaskRow, output: string): Promise<void> {
    const { board } = process;
    const hold = { taskId: task.id, grant: task.grant };
    const foreseen = await foresightOf(this.#worker)?.(
      task.runId ?? "",
      { shown: task.step, since: task.claimedAt ?? 0 },
      JSON.parse(output),
    );
    const turn = foreseen === undefined ? undefined : { ...foreseen.turn, report: writeExact(foreseen.turn.report as never) };
    const { task: next, tookTurn } = await board.completeAndClaim(hold, output, { turn }, this.#claim());
    if (tookTurn) {
      this.#outcome.foreseen++;
      foreseen?.accepted();
    }
    if (this.#random.chance(this.#trouble.repeated ?? 0)) await board.completeAndClaim(hold, output, { turn }, this.#claim());
    if (next !== undefined) await this.#perform(process, next);
  }

  async #turn(process: Process, task: TaskRow): Promise<string> {
    const handle = this.#worker.get(task.lane?.name ?? "")?.handle;
    if (handle === undefined) throw new Error(`A worker got ${task.lane?.name}, for which it had not asked.`);
    const turn = JSON.parse(task.input) as Turn;
    const ask = async (question: string, value: unknown) => {
      if (question !== journalQuestion) {
        const { verdict, news } = await process.board.command({ taskId: task.id, grant: task.grant }, JSON.stringify(value));
        return news === null ? verdict : (JSON.parse(news) as TurnNews);
      }
      this.#outcome.replays++;
      return this.#journal(process, task.runId ?? "", Number(value));
    };
    const context = { ids: { runId: task.runId ?? "" }, signal: new AbortController().signal, log: () => {}, ask };
    const report = (await handle(turn as never, context as never)) as unknown as TurnReport;
    return writeExact((this.#trouble.plant === "another value of a side effect" ? altered(report) : report) as never);
  }

  async #journal({ store }: Process, runId: string, after: number): Promise<unknown> {
    const journal = new LocalJournal({
      ...{ store: store.rows, read: (work) => store.commit.read(work), slices: new Slices() },
      ...{ runs: store.runs.runs, tasks: store.board.tasks },
    });
    const page = JSON.parse((await journal.page(runId, after)) ?? "null") as JournalPage | null;
    const { plant } = this.#trouble;
    if (page === null || plant === undefined) return page;
    return { ...page, entries: planted(page.entries, plant) };
  }

  /** A handler. Its answer has a new number in each call. */
  async #handle(process: Process, task: TaskRow): Promise<string> {
    const { mark, value } = JSON.parse(task.input) as { mark: string; value: unknown };
    const runId = task.runId ?? "";
    const serial = ++this.#count;
    const [, name] = (commandOf(task) ?? "").split(" ");
    if (name === "refused") throw new Refused(`${mark} is refused`);
    if (name === "flaky" && task.attempt < 1) throw new Error("not yet");
    if (name === "cancel") await process.runs.cancel(runId, "by a task");
    if (name === "send")
      for (let at = 0; at < Number(value); at++)
        await process.store.runs.signals.send(runId, { name: mark, value: JSON.stringify(`${mark}#${at}`), key: `${mark}#${at}` });
    return JSON.stringify({ value, serial });
  }

  /** The published checker accepts the data after a crash, and at the end. */
  #verify(): void {
    const history = new LocalHistory({ store: sqliteRows(this.#disk.db, () => null), nodeOf: () => undefined, withParts: false });
    const tx: ReadTx = { isOperation: false, loaded: new Map() };
    for (const id of history.runIds(tx, "")) {
      const [found] = checkHistory(history.run(tx, id) as RunHistory);
      if (found !== undefined) throw broken(`longshore verify finds ${JSON.stringify(found)}`);
    }
  }

  /** Called for each row that a commit has changed. */
  #look(task: TaskRow): void {
    const { id, attempt, output } = task;
    // A retry makes results void that were not kept: they are produced again.
    if (task.state === "forgotten" || this.#attempts.get(id) !== attempt) this.#forget(id);
    this.#attempts.set(id, attempt);
    if (task.state !== "done" || task.command === null || isDriver(task)) return;
    const isLocal = isCommand(task, "local");
    if (!isLocal && !isCommand(task, "step")) return;
    const mark = isLocal ? commandOf(task)?.slice("local ".length) : (JSON.parse(task.input) as { mark?: string }).mark;
    const key = `${task.runId} ${isLocal ? "local " : ""}${mark}`;
    const before = this.#void.delete(key) ? undefined : this.#accepted.get(key);
    if (before === undefined) this.#accepted.set(key, output ?? "");
    else if (before !== output) this.#failure ??= broken(`${key} had the result ${before}, and then ${output}`);
    this.#keys.set(id, key);
    if (isLocal) this.#locals.set(key, (this.#locals.get(key) ?? new Set()).add(id));
  }

  #forget(id: string): void {
    const key = this.#keys.get(id);
    if (key === undefined) return;
    this.#keys.delete(id);
    this.#void.add(key);
    this.#locals.get(key)?.delete(id);
  }

  #compare({ results, serials }: Played): void {
    const expected = JSON.stringify(resultsOf(this.#program));
    if (JSON.stringify(results) !== expected) throw broken(`the result is ${JSON.stringify(results)}, expected ${expected}`);
    for (const [key, serial] of Object.entries(serials)) {
      const accepted = this.#accepted.get(key);
      if (accepted === undefined || (JSON.parse(accepted) as { serial: number }).serial !== serial)
        throw broken(`the function got answer ${serial} of ${key}, the accepted one is ${accepted}`);
    }
    for (const [key, records] of this.#locals) if (records.size > 1) throw broken(`${key} is in the journal ${records.size} times`);
  }

  /** A side effect may use only what is on disk. */
  #uses(key: string, result: number): void {
    const onDisk = this.#accepted.get(key);
    if (onDisk !== String(result)) this.#failure ??= broken(`a side effect uses result ${result} of ${key}, on disk is ${onDisk}`);
  }

  #say(what: string): void {
    this.way.push(`${this.#machine.clock.now()} ${what}`);
  }

  #open(): string {
    const { runs, tasks } = this.#disk.read();
    const open = [...tasks.values()].filter(({ runId, state }) => isOpen(state) && isRunOpen(runs.get(runId ?? "")?.state ?? "failed"));
    return open.map(({ id, step, state, lane }) => `${id} ${step} ${state} ${lane?.name}`).join(", ");
  }

  #newWorker(): FunctionWorker {
    const functions = functionsOf(this.#program, {
      count: () => ++this.#count,
      uses: (runId, mark, result) => this.#uses(`${runId} local ${mark}`, result),
    });
    const steady = () => this.#machine.clock.now();
    return new Map(
      driverTasks(
        functions.map(({ code }) => code),
        { steady },
      ).map((each) => [each.name, each]),
    );
  }

  #nextFault(): Fault | null {
    if (!this.#isTroubled) return null;
    const commit = ++this.#commits;
    const { at, crashes = 0 } = this.#trouble;
    if (at?.commit === commit) return at.fault;
    if (!this.#random.chance(crashes)) return null;
    return this.#random.pick(["crash-before-commit", "crash-after-commit"] as const) ?? null;
  }
}

/** A failure that no retry can change. */
class Refused extends Error {}

/** The result of a call, or `otherwise` when the server has crashed: then it refuses calls, or never answers. */
async function unlessDead<Result>(call: Promise<Result>, otherwise: Result): Promise<Result> {
  let answer: { readonly value: Result } | undefined;
  const settled = call.then(
    (value) => {
      answer = { value };
    },
    () => {
      answer = { value: otherwise };
    },
  );
  for (let turn = 0; turn < turnsMax && answer === undefined; turn++) await Promise.race([settled, turns(1)]);
  return answer?.value ?? otherwise;
}
