// The board and the decider with a seeded scheduler. Workers disappear, repeat reports and come late. Operators cancel and retry. The clock
// jumps, the disk becomes full, and the server crashes between any two calls. Only time, chance and the disk's faults are simulated. After
// every step the model is compared with the stored rows. At the end, without faults, every run must end.

import { isOpen, type TaskRow } from "../../src/engine/board/task.ts";
import type { RunHistory } from "../../src/engine/run/history.ts";
import { LocalHistory } from "../../src/engine/run/local-history.ts";
import type { Plan } from "../../src/engine/run/plan.ts";
import type { Run } from "../../src/engine/run/run.ts";
import type { ReadTx } from "../../src/engine/tx.ts";
import { sqliteRows } from "../../src/store/sqlite/row-store.ts";
import { checkHistory } from "../../src/verify/verify.ts";
import { type Random, seededRandom } from "../faults/random.ts";
import { checkMemory, checkRows } from "./simulation-check.ts";
import { Clients, type Outcome, proof } from "./simulation-clients.ts";
import { makeDebounced } from "./simulation-debounce.ts";
import type { Disk, Stored } from "./simulation-disk.ts";
import { Lives } from "./simulation-lives.ts";
import { broken, type KnownHold, Model } from "./simulation-model.ts";
import { leaseMs, Shards } from "./simulation-owner.ts";
import type { Plant } from "./simulation-plants.ts";
import { type Fault, type Machine, machineIds, type Process, startProcess, WatchedClock } from "./simulation-process.ts";
import { CommittedStates, Readers } from "./simulation-reads.ts";
import { label, lanes, makeWorkflows, termMs, type Workflow } from "./simulation-story.ts";
import { turns } from "./world.ts";

/** Enough for a run of seven steps to be started, fail, be cancelled and be tried again. */
const stepsMax = 45;
/** For simulations in which a third of the calls are reads. */
const stepsWithReadersMax = 60;
/** Seconds without faults within which everything must end: the longest chain of steps, each with its delay. */
const roundsMax = 120;
/** How much of the trace to a failure is kept. */
const traceMax = 400;

/** What is unusual about the disk: see Machine. */
export interface How {
  lies?: boolean;
  late?: boolean;
  /** Connections to the database break, and others read meanwhile. */
  breaks?: boolean;
  /** As `breaks`, and servers take over from others that continue. */
  lives?: boolean;
  /** Runs begin their next life while messages about their end wait. */
  overtakes?: boolean;
  plant?: Plant;
}

/** How an owner is replaced: it stops until its lease has ended, or the session with its lock ends. */
type Replacing = "frozen" | "lock lost";

/** Throws an error with the seed and the steps to the broken promise. For this, the seed is run once more. */
export async function simulate(seed: number, disk: Disk, how: How = {}): Promise<Outcome> {
  const simulation = await Simulation.open(seed, disk, how);
  try {
    return await simulation.play();
  } catch (error) {
    // What it has in progress must not reach the disk of the next one.
    simulation.close();
    const way = (await traceOf(seed, disk, how)).slice(-traceMax).join("\n");
    throw new Error(`Seed ${seed}: ${(error as Error).message}. Play it again with LONGSHORE_SIM_SEED=${seed}.\n${way}`, { cause: error });
  } finally {
    simulation.close();
  }
}

/** The trace of a seed, up to its end or to the first broken promise. */
export async function traceOf(seed: number, disk: Disk, how: How = {}): Promise<string[]> {
  const simulation = await Simulation.open(seed, disk, how);
  simulation.trace = [];
  try {
    await simulation.play();
  } catch (error) {
    simulation.trace.push((error as Error).message);
  } finally {
    simulation.close();
  }
  return simulation.trace;
}

class Simulation {
  /** The trace; null saves time. */
  trace: string[] | null = null;
  readonly #random: Random;
  readonly #clock: WatchedClock;
  readonly #machine: Machine;
  readonly #clients: Clients;
  readonly #model = new Model((taskId) => ["cancelling", "cancelled"].includes(this.#machine.disk.read().tasks.get(taskId)?.state ?? ""));
  readonly #plans = new Map<string, Plan>();
  readonly #workflows: Workflow[];
  readonly #outcome: Outcome = { steps: 0, crashes: 0, refusals: 0, takeovers: 0, runs: 0, completions: 0 };
  /** The newest grant of each task, as reported by commits. */
  readonly #grants = new Map<string, number>();
  /** The owner of the shard. One for each shard where a story has several. */
  #process: Process;
  /** Those that were replaced and continue. */
  #replaced: Process[] = [];
  readonly #readers: Readers | null;
  readonly #takesOver: boolean;
  #failure: unknown;

  static async open(seed: number, disk: Disk, how: How): Promise<Simulation> {
    const { lies = false, late = false, lives: takesOver = false, breaks = takesOver, overtakes = false, plant = null } = how;
    disk.wipe();
    const random = seededRandom(seed);
    const clock = new WatchedClock(1_000_000);
    const lives = new Lives();
    disk.watch = lives;
    const machine: Machine = {
      ...{ disk, clock, random, lives, lies, overtakes, plant },
      ...{ late: late || breaks, wire: breaks, isTroubled: false },
      makeId: machineIds(random),
      // Between the transactions of an end come other calls and crashes. When there is one, an order can overtake all messages about this end.
      sliceTasks: () => (!overtakes || random.chance(0.5) ? 1 : 10),
      shards: new Shards(),
      states: new CommittedStates(),
      running: new Set(),
      handedOut: () => {},
      failed: () => {},
      say: () => {},
    };
    return new Simulation(random, machine, await startProcess(machine), takesOver);
  }

  private constructor(random: Random, machine: Machine, process: Process, takesOver: boolean) {
    this.#takesOver = takesOver;
    this.#random = random;
    this.#machine = machine;
    this.#clock = machine.clock;
    this.#process = process;
    this.#workflows = makeWorkflows(random);
    machine.handedOut = (task) => this.#countHandOut(task);
    machine.lives.revived = (run) => this.#model.revived(run);
    machine.failed = (error) => {
      this.#failure ??= error;
    };
    machine.say = (what) => this.#say(what);
    const anyProcess = () => this.#anyProcess();
    const refused = () => this.#outcome.refusals++;
    const { states } = machine;
    this.#readers = machine.wire ? new Readers({ random, states, refused, process: anyProcess, say: machine.say }) : null;
    this.#clients = new Clients({
      ...{ random, machine, model: this.#model, workflows: this.#workflows, outcome: this.#outcome },
      process: anyProcess,
      tracing: () => this.trace !== null,
      say: (what) => this.#say(what),
      failed: machine.failed,
    });
  }

  close(): void {
    for (const process of [this.#process, ...this.#replaced]) process.crash();
  }

  /** A client may not know yet that there is another owner. */
  #anyProcess(): Process {
    const old = this.#replaced.length > 0 && this.#random.chance(0.35) ? this.#random.pick(this.#replaced) : undefined;
    return old ?? this.#process;
  }

  async play(): Promise<Outcome> {
    for (const workflow of [...this.#workflows, makeDebounced(this.#random, "a")]) {
      const { name, dialect, source } = workflow;
      const { id } = await this.#process.runs.define({ name, dialect: dialect.name, source });
      this.#plans.set(id, dialect.compile(source));
    }
    this.#machine.isTroubled = true;
    for (let run = 0; run < 2; run++) await this.#clients.start();
    for (let step = 0; step < (this.#readers === null ? stepsMax : stepsWithReadersMax); step++) await this.#step();
    await this.#endInPeace();
    this.#verify();
    return this.#outcome;
  }

  async #step(): Promise<void> {
    const random = this.#random;
    this.#outcome.steps++;
    this.#model.nextStep();
    if (!this.#process.alive) await this.#restart();
    if (random.chance(0.1)) this.#arrange(random.pick(["disk-full", "crash-before-commit", "crash-after-commit"] as const) as Fault);
    // The event loop was blocked: what is due has not been looked at when the next calls come.
    if (random.chance(0.05)) this.#clock.jump(random.pick([300, 1_200]) as number);
    const calls: Promise<void>[] = [];
    for (let left = random.between(1, 5); left > 0; left--) {
      // Some come in the middle of a commit.
      if (this.#machine.late && random.chance(0.5)) await turns(random.between(1, 6));
      const call = this.#readers !== null && random.chance(0.35) ? this.#readers.call() : this.#clients.call();
      calls.push(call.catch(this.#machine.failed));
      if (this.#takesOver && this.#process.alive && random.chance(0.03))
        await this.#takeOver(random.pick(["frozen", "lock lost"] as const) as Replacing);
    }
    if (random.chance(0.02)) this.#crash("in the middle of calls");
    await Promise.all(calls);
    if (random.chance(0.4)) await this.#pass(random.pick([1, 20, 60, 60, 260, 260, 500, 999, 1_000, 2_500]) as number);
    await this.#settle(1);
    if (random.chance(0.02)) this.#crash("between calls");
    if (this.#replaced.length > 0 && random.chance(0.3)) this.#endReplaced();
    this.#check();
  }

  /** Turns of the event loop, each until the store has nothing to do. */
  async #settle(count: number): Promise<void> {
    for (let turn = 0; turn < count; turn++) {
      await turns(1);
      await this.#clock.quiet();
    }
  }

  async #pass(ms: number): Promise<void> {
    this.#say(`time passes, ${ms} ms`);
    await this.#clock.advance(ms);
  }

  #arrange(fault: Fault): void {
    this.#say(`the next commit: ${fault}`);
    this.#process.fault = fault;
  }

  #crash(when: string): void {
    this.#say(`crash ${when}`);
    this.#process.crash();
  }

  async #restart(): Promise<void> {
    this.#say("restart");
    this.#outcome.crashes++;
    this.#verify();
    await this.#begin();
  }

  /** A server takes over from one that continues. */
  async #takeOver(how: Replacing): Promise<void> {
    const old = this.#process;
    const { owner } = old;
    if (owner === null) return;
    this.#say(`another server takes over: ${how}`);
    this.#outcome.takeovers++;
    if (how === "frozen") {
      owner.isFrozen = true;
      this.#clock.jump(leaseMs);
    } else owner.loseLock();
    if (!this.#machine.shards.isFree(0, this.#clock.now())) throw broken("the shard is not free");
    this.#replaced.push(old);
    // The session ends for both sides, but not at the same time.
    if (how === "lock lost" && this.#random.chance(0.5)) owner.noticeLoss();
    await this.#begin();
    owner.isFrozen = false;
    owner.noticeLoss();
  }

  #endReplaced(): void {
    this.#say("the replaced servers end");
    for (const process of this.#replaced) process.crash();
    this.#replaced = [];
  }

  /** Nothing of an earlier owner is written from here on. */
  async #begin(): Promise<void> {
    const { tasks } = this.#machine.disk.read();
    const isLive = ({ taskId, grant }: KnownHold) =>
      tasks.get(taskId)?.grant === grant && ["offered", "held", "cancelling"].includes(tasks.get(taskId)?.state ?? "");
    this.#model.restarted(this.#clock.now(), isLive, termMs);
    this.#process = await startProcess(this.#machine);
  }

  #check(): void {
    if (this.#failure !== undefined) throw this.#failure;
    if (this.#clock.tooBusy()) throw broken("timers are armed again and again, without time passing");
    const stored = this.#machine.disk.read();
    checkRows(stored, (run) => this.#planOf(run));
    this.#clients.debounced.check(stored.runs);
    this.#model.compare(
      (id) => stored.tasks.get(id) ?? null,
      (id) => stored.runs.get(id) ?? null,
    );
    if (this.#process.alive) checkMemory(this.#process.store, stored);
  }

  /** The published checker agrees with what a crash left behind, and with what is there at the end. */
  #verify(): void {
    const nodeOf = (_tx: ReadTx, definitionId: string, node: number) => this.#plans.get(definitionId)?.nodes[node];
    const history = new LocalHistory({ store: sqliteRows(this.#machine.disk.db, () => null), nodeOf, withParts: true });
    const tx: ReadTx = { isOperation: false, loaded: new Map() };
    for (const id of history.runIds(tx, "")) {
      const [found] = checkHistory(history.run(tx, id) as RunHistory);
      if (found !== undefined) throw broken(`longshore verify finds ${JSON.stringify(found)}`);
    }
  }

  /** Called within the commit, where nothing may throw. */
  #countHandOut(task: TaskRow): void {
    if ((task.state !== "held" && task.state !== "offered") || task.grant <= (this.#grants.get(task.id) ?? 0)) return;
    this.#grants.set(task.id, task.grant);
    try {
      this.#model.countRate(task);
    } catch (error) {
      this.#failure ??= error;
    }
  }

  #planOf(run: Run): Plan {
    const plan = this.#plans.get(run.definitionId);
    if (plan === undefined) throw broken(`run ${run.id} has an unknown definition`);
    return plan;
  }

  #say(what: string): void {
    this.trace?.push(`${this.#clock.now()} ${what}`);
  }

  // No more faults, and workers that claim and finish all tasks.

  async #endInPeace(): Promise<void> {
    this.#say("peace");
    this.#machine.isTroubled = false;
    this.#endReplaced();
    if (!this.#process.alive) await this.#restart();
    this.#process.fault = null;
    this.#clients.hangUp();
    await this.#settle(2);
    let stored = this.#machine.disk.read();
    for (let round = 0; hasOpen(stored); round++) {
      this.#model.nextStep();
      if (round >= roundsMax) throw broken(`after ${roundsMax} seconds of peace there is still work: ${describeOpen(stored)}`);
      await this.#pass(1_000);
      await this.#workOff();
      await this.#settle(4);
      this.#check();
      stored = this.#machine.disk.read();
    }
    if (this.#process.board.waiting > 0) throw broken(`${this.#process.board.waiting} claims still wait`);
  }

  async #workOff(): Promise<void> {
    const reach = { names: [...lanes], labels: [label] };
    const tasks = await this.#process.board.claim({ reach, holder: "diligent", termMs, max: 100 });
    const holds = tasks.map((task) => this.#model.handedOut(task));
    await Promise.all(
      holds.map(async (hold) => {
        this.#say(`finish ${hold.taskId} grant ${hold.grant}`);
        const output = JSON.stringify(`${hold.taskId}/${hold.grant}`);
        const verdict = await this.#process.board.complete(proof(hold), output);
        this.#model.reported(hold, "complete", verdict, output, this.#clock.now());
      }),
    );
  }
}

function hasOpen(stored: Stored): boolean {
  if (stored.messages.length > 0) return true;
  return [...stored.runs.values()].some((run) => run.state === "running") || [...stored.tasks.values()].some((task) => isOpen(task.state));
}

function describeOpen(stored: Stored): string {
  const runs = [...stored.runs.values()].filter((run) => run.state === "running").map((run) => `run ${run.id} (${run.left} left)`);
  const tasks = [...stored.tasks.values()]
    .filter((task) => isOpen(task.state))
    .map((task) => `${task.id} ${task.state} on ${task.lane?.name}`);
  return [...runs, ...tasks, `${stored.messages.length} messages`].join(", ");
}
