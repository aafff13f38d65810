// The board and the decider under a seeded scheduler: workers that vanish, repeat themselves and come late, operators that cancel and
// try again, a clock that jumps, a disk that fills up, and a server that crashes between any two calls. Everything but time, chance and
// the disk's bad days is the real thing. After every step the model and the stored rows are compared; at the end, in peace, every run ends.

import { isOpen } from "../../src/board/task.ts";
import { codeDialect } from "../../src/dialect/code/dialect.ts";
import type { WorkflowSource } from "../../src/dialect/code/source.ts";
import type { Plan } from "../../src/run/plan.ts";
import type { Run } from "../../src/run/run.ts";
import { TestClock } from "../../src/testing/clock.ts";
import { type Random, seededRandom } from "../faults/random.ts";
import { checkMemory, checkRows } from "./simulation-check.ts";
import type { Disk, Stored } from "./simulation-disk.ts";
import { broken, type KnownHold, Model, type Verb } from "./simulation-model.ts";
import { type Fault, type Machine, machineIds, type Process, startProcess } from "./simulation-process.ts";
import { label, lanes, makeTask, makeWorkflows, termMs } from "./simulation-story.ts";
import { turns } from "./world.ts";

/** Enough for a run of seven steps to be started, fail, be cancelled and be tried again. */
const stepsMax = 45;
/** Seconds of peace within which everything must have ended: the longest chain of steps, each waiting for its delay. */
const roundsMax = 120;
/** What is remembered of the way to a failure. */
const traceMax = 400;

export interface Outcome {
  steps: number;
  crashes: number;
  refusals: number;
  runs: number;
  completions: number;
}

/** Throws an error that names the seed and tells the way to the broken promise, which is played once more for that. */
export async function simulate(seed: number, disk: Disk): Promise<Outcome> {
  const simulation = await Simulation.open(seed, disk);
  try {
    return await simulation.play();
  } catch (error) {
    throw new Error(
      `Seed ${seed}: ${(error as Error).message}. Play it again with LONGSHORE_SIM_SEED=${seed}.\n${await wayTo(seed, disk)}`,
      {
        cause: error,
      },
    );
  } finally {
    simulation.close();
  }
}

async function wayTo(seed: number, disk: Disk): Promise<string> {
  const simulation = await Simulation.open(seed, disk);
  simulation.trace = [];
  try {
    await simulation.play();
    return "It does not happen again: something in it does not depend on the seed alone.";
  } catch {
    // The same error as before; only the way to it is wanted.
    return simulation.trace.slice(-traceMax).join("\n");
  } finally {
    simulation.close();
  }
}

/** What became of a call: an answer, or the certainty that nothing was done, or nothing at all. */
type Answer<T> = { value: T } | "refused" | "unknown";

interface Sent {
  hold: KnownHold;
  verb: Verb;
}

class Simulation {
  /** What happened, in words; null saves the time. */
  trace: string[] | null = null;
  readonly #random: Random;
  readonly #clock: TestClock;
  readonly #machine: Machine;
  readonly #model = new Model((taskId) => ["cancelling", "cancelled"].includes(this.#machine.disk.read().tasks.get(taskId)?.state ?? ""));
  readonly #plans = new Map<string, Plan>();
  readonly #workflows: WorkflowSource[];
  readonly #keys = new Map<string, string>();
  readonly #outcome: Outcome = { steps: 0, crashes: 0, refusals: 0, runs: 0, completions: 0 };
  readonly #grants = new Map<string, number>();
  /** What the workers believe to hold, and what they have sent. */
  #holds: KnownHold[] = [];
  readonly #sent: Sent[] = [];
  #waiting: AbortController[] = [];
  #process: Process;
  #failure: unknown;
  #calls = 0;

  static async open(seed: number, disk: Disk): Promise<Simulation> {
    disk.wipe();
    const random = seededRandom(seed);
    const clock = new TestClock(1_000_000);
    const machine: Machine = { disk, clock, random, makeId: machineIds(random), handedOut: () => {} };
    return new Simulation(random, machine, await startProcess(machine));
  }

  private constructor(random: Random, machine: Machine, process: Process) {
    this.#random = random;
    this.#machine = machine;
    this.#clock = machine.clock;
    this.#process = process;
    this.#workflows = makeWorkflows(random);
    machine.handedOut = (task) => {
      if (task.state !== "held" && task.state !== "offered") return;
      if (task.grant <= (this.#grants.get(task.id) ?? 0)) return;
      this.#grants.set(task.id, task.grant);
      this.#model.countRate(task);
    };
  }

  close(): void {
    this.#process.crash();
  }

  async play(): Promise<Outcome> {
    for (const workflow of this.#workflows) {
      const source = JSON.stringify(workflow);
      const { id } = await this.#process.runs.define({ name: workflow.name, dialect: "code", source });
      this.#plans.set(id, codeDialect.compile(source));
    }
    for (let run = 0; run < 2; run++) await this.#start();
    for (let step = 0; step < stepsMax; step++) await this.#step();
    await this.#endInPeace();
    return this.#outcome;
  }

  async #step(): Promise<void> {
    const random = this.#random;
    this.#outcome.steps++;
    this.#model.nextStep();
    if (!this.#process.alive) await this.#restart();
    if (random.chance(0.1)) this.#arrange(random.pick(["disk-full", "crash-before-commit", "crash-after-commit"] as const) as Fault);
    // The event loop stood still: what is due has not been looked at when the next calls come.
    if (random.chance(0.05)) this.#clock.jump(random.pick([300, 1_200]) as number);
    const calls = Array.from({ length: random.between(1, 5) }, () => this.#call());
    if (random.chance(0.02)) this.#crash("in the middle of calls");
    await Promise.all(calls);
    if (random.chance(0.4)) await this.#pass(random.pick([1, 20, 60, 60, 260, 260, 500, 999, 1_000, 2_500]) as number);
    await turns(1);
    if (random.chance(0.02)) this.#crash("between calls");
    this.#check();
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
    this.#waiting = [];
    const { tasks } = this.#machine.disk.read();
    const isLive = ({ taskId, grant }: KnownHold) =>
      tasks.get(taskId)?.grant === grant && ["held", "cancelling"].includes(tasks.get(taskId)?.state ?? "");
    this.#model.restarted(this.#clock.now(), isLive, termMs);
    this.#process = await startProcess(this.#machine);
  }

  #check(): void {
    if (this.#failure !== undefined) throw this.#failure;
    const stored = this.#machine.disk.read();
    checkRows(stored, (run) => this.#planOf(run));
    this.#model.compare(
      (id) => stored.tasks.get(id) ?? null,
      (id) => stored.runs.get(id) ?? null,
    );
    if (this.#process.alive) checkMemory(this.#process.store, stored);
  }

  #planOf(run: Run): Plan {
    const plan = this.#plans.get(run.definitionId);
    if (plan === undefined) throw broken(`run ${run.id} has an unknown definition`);
    return plan;
  }

  // What the outside world does.

  #call(): Promise<void> {
    const drawn = this.#random.next();
    if (drawn < 0.05) return this.#start();
    if (drawn < 0.07) return this.#post();
    if (drawn < 0.3) return this.#claim();
    if (drawn < 0.36) return this.#claimAndWait();
    if (drawn < 0.4) return this.#offer();
    if (drawn < 0.48) return this.#extend();
    if (drawn < 0.82) return this.#report();
    if (drawn < 0.88) return this.#repeat();
    if (drawn < 0.91) return this.#vanish();
    if (drawn < 0.93) return this.#cancelRun();
    if (drawn < 0.95) return this.#cancelTask();
    return this.#retry();
  }

  async #start(): Promise<void> {
    const { name } = this.#random.pick(this.#workflows) as WorkflowSource;
    const key = this.#random.chance(0.3) ? `${name}-${this.#random.between(0, 2)}` : undefined;
    const input = JSON.stringify({ go: this.#random.chance(0.5) });
    const answer = await this.#ask(`start ${name} ${key ?? ""}`, (process) => process.runs.start({ workflow: name, input, key }));
    if (typeof answer === "string") return;
    const { run, created } = answer.value;
    this.#model.started(run.id);
    if (created) this.#outcome.runs++;
    if (key === undefined) return;
    const known = this.#keys.get(key);
    if (known !== undefined && known !== run.id) throw broken(`key ${key} has started ${known} and ${run.id}`);
    this.#keys.set(key, run.id);
  }

  async #post(): Promise<void> {
    const task = makeTask(this.#random, this.#machine.makeId(this.#clock.now()));
    const answer = await this.#ask(`post ${task.id}`, (process) => process.board.post([task]));
    if (typeof answer !== "string") this.#model.posted(task.id);
  }

  #reach(): { names: string[]; labels: string[] } {
    const names = lanes.filter(() => this.#random.chance(0.7));
    return { names: names.length === 0 ? [...lanes] : names, labels: this.#random.chance(0.6) ? [label] : [] };
  }

  #holder(): string {
    return `worker-${this.#random.between(1, 3)}`;
  }

  async #claim(): Promise<void> {
    const claim = { reach: this.#reach(), holder: this.#holder(), termMs, max: this.#random.between(1, 2) };
    const answer = await this.#ask("claim", (process) => process.board.claim(claim));
    if (typeof answer !== "string") for (const task of answer.value) this.#holds.push(this.#model.handedOut(task));
  }

  /** Not waited for: whenever it is answered, in this life of the server, the worker has the task. */
  async #claimAndWait(): Promise<void> {
    const process = this.#process;
    const gone = new AbortController();
    this.#waiting.push(gone);
    const claim = { reach: this.#reach(), holder: this.#holder(), termMs, waitMs: this.#random.between(1, 5_000), signal: gone.signal };
    this.#say(`claim and wait ${claim.waitMs} ms`);
    process.board
      .claim(claim)
      .then((tasks) => {
        if (!process.alive) return;
        this.#say(`  a waiting claim got ${tasks.map((task) => `${task.id} grant ${task.grant}`).join(", ") || "nothing"}`);
        for (const task of tasks) this.#holds.push(this.#model.handedOut(task));
      })
      .catch((error: unknown) => {
        if (process.alive && (error as { code?: string }).code !== "LONGSHORE_STORE_UNAVAILABLE") this.#failure ??= error;
      });
    // Some clients hang up.
    if (this.#random.chance(0.2)) gone.abort();
  }

  async #offer(): Promise<void> {
    const answer = await this.#ask("offer", (process) => process.board.offer({ reach: this.#reach(), termMs }));
    if (typeof answer !== "string") for (const task of answer.value) this.#holds.push(this.#model.handedOut(task));
  }

  async #extend(): Promise<void> {
    const hold = this.#random.pick(this.#holds);
    if (hold === undefined) return;
    const options = { ...(this.#random.chance(0.3) ? { part: '"part"' } : {}), holder: hold.holder ?? undefined };
    const answer = await this.#ask(`extend ${hold.taskId} grant ${hold.grant}`, (process) => process.board.extend(proof(hold), options));
    if (answer === "unknown") hold.stretched = true;
    if (typeof answer === "string") return;
    this.#model.extended(hold, answer.value.verdict, answer.value.holdUntil, this.#clock.now());
    if (answer.value.verdict !== "ok") this.#drop(hold);
  }

  async #report(): Promise<void> {
    const hold = this.#random.pick(this.#holds);
    if (hold === undefined) return;
    const drawn = this.#random.next();
    const verb: Verb = drawn < 0.65 ? "complete" : drawn < 0.9 ? "fail" : "defer";
    await this.#send(hold, verb);
  }

  /** The same report once more, or a late one. */
  async #repeat(): Promise<void> {
    const sent = this.#random.pick(this.#sent);
    if (sent === undefined) return;
    await this.#send(sent.hold, this.#random.chance(0.8) ? sent.verb : "complete");
  }

  async #send(hold: KnownHold, verb: Verb): Promise<void> {
    const output = JSON.stringify(`${hold.taskId}/${hold.grant}`);
    const retryable = this.#random.chance(0.8);
    const delayMs = this.#random.pick([0, 100, 800]) as number;
    this.#sent.push({ hold, verb });
    // Sent together with others: whoever asks meanwhile must reckon with it.
    const { sure } = hold;
    const answer = await this.#ask(
      `${verb} ${hold.taskId} grant ${hold.grant}`,
      (process) => {
        if (verb === "complete") return process.board.complete(proof(hold), output);
        return verb === "fail" ? process.board.fail(proof(hold), { error: "boom", retryable }) : process.board.defer(proof(hold), delayMs);
      },
      () => this.#model.unknown(hold, verb),
    );
    if (answer === "refused") {
      hold.sure = sure;
      return;
    }
    this.#drop(hold);
    if (answer === "unknown") return;
    if (answer.value === "ok" && verb === "complete") this.#outcome.completions++;
    this.#model.reported(hold, verb, answer.value, output, this.#clock.now());
  }

  async #vanish(): Promise<void> {
    const hold = this.#random.pick(this.#holds);
    if (hold === undefined) return;
    this.#say(`the holder of ${hold.taskId} grant ${hold.grant} vanishes`);
    this.#drop(hold);
  }

  #drop(hold: KnownHold): void {
    this.#holds = this.#holds.filter((other) => other !== hold);
  }

  async #cancelRun(): Promise<void> {
    const run = this.#anyRun((state) => state === "running");
    if (run === undefined) return;
    this.#model.maybeCancelled({ runId: run });
    const answer = await this.#ask(`cancel ${run}`, (process) => process.runs.cancel(run));
    if (typeof answer === "string" || answer.value === undefined) return;
    this.#model.started(run);
    this.#model.runTold(answer.value);
  }

  async #cancelTask(): Promise<void> {
    const open = [...this.#machine.disk.read().tasks.values()].filter((task) => isOpen(task.state));
    const task = this.#random.pick(open);
    if (task === undefined) return;
    this.#model.maybeCancelled({ taskId: task.id });
    const answer = await this.#ask(`cancel task ${task.id}`, (process) => process.board.cancel(task.id));
    if (typeof answer !== "string" && answer.value) this.#model.taskCancelled(task.id);
  }

  async #retry(): Promise<void> {
    const run = this.#anyRun((state) => state !== "running" && state !== "succeeded");
    if (run === undefined) return;
    this.#model.maybeRetried(run);
    const answer = await this.#ask(`retry ${run}`, (process) =>
      process.runs.retry(run).catch((error: { code?: string }) => {
        // Another retry of this step came first.
        if (error.code === "LONGSHORE_CONFLICT") return undefined;
        throw error;
      }),
    );
    this.#model.maybeRetried(run);
    if (typeof answer !== "string" && answer.value?.state === "running") this.#say(`  ${run} goes on`);
  }

  #anyRun(wanted: (state: Run["state"]) => boolean): string | undefined {
    return this.#random.pick([...this.#machine.disk.read().runs.values()].filter((run) => wanted(run.state)))?.id;
  }

  /** `sent` is called once the request is on its way: from then on it may have been carried out. */
  async #ask<T>(what: string, request: (process: Process) => Promise<T>, sent?: () => void): Promise<Answer<T>> {
    const process = this.#process;
    const call = ++this.#calls;
    this.#say(`#${call} ${what}`);
    const answerIsLost = this.#random.chance(0.04);
    try {
      const answering = request(process);
      sent?.();
      const value = await answering;
      if (this.trace !== null) this.#say(`  #${call} answered ${answerIsLost ? "(lost) " : ""}${JSON.stringify(value, brief)}`);
      return answerIsLost ? "unknown" : { value };
    } catch (error) {
      if (!process.alive) {
        this.#say(`  #${call} never answered`);
        return "unknown";
      }
      if ((error as { code?: string }).code !== "LONGSHORE_STORE_UNAVAILABLE") throw error;
      this.#say(`  #${call} refused`);
      this.#outcome.refusals++;
      return "refused";
    }
  }

  #say(what: string): void {
    this.trace?.push(`${this.#clock.now()} ${what}`);
  }

  // Peace: no more faults, and workers that take and finish whatever there is.

  async #endInPeace(): Promise<void> {
    this.#say("peace");
    if (!this.#process.alive) await this.#restart();
    this.#process.fault = null;
    for (const gone of this.#waiting) gone.abort();
    await turns(2);
    let stored = this.#machine.disk.read();
    for (let round = 0; hasOpen(stored); round++) {
      this.#model.nextStep();
      if (round >= roundsMax) throw broken(`after ${roundsMax} seconds of peace there is still work: ${describeOpen(stored)}`);
      await this.#pass(1_000);
      await this.#workOff();
      await turns(4);
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

function proof(hold: KnownHold) {
  return { taskId: hold.taskId, grant: hold.grant, holder: hold.holder ?? undefined };
}

function hasOpen(stored: Stored): boolean {
  if (stored.messages > 0) return true;
  return [...stored.runs.values()].some((run) => run.state === "running") || [...stored.tasks.values()].some((task) => isOpen(task.state));
}

function describeOpen(stored: Stored): string {
  const runs = [...stored.runs.values()].filter((run) => run.state === "running").map((run) => `run ${run.id} (${run.left} left)`);
  const tasks = [...stored.tasks.values()]
    .filter((task) => isOpen(task.state))
    .map((task) => `${task.id} ${task.state} on ${task.lane?.name}`);
  return [...runs, ...tasks, `${stored.messages} messages`].join(", ");
}

/** Tasks and runs in a trace by what matters. */
function brief(_: string, value: unknown): unknown {
  if (typeof value !== "object" || value === null || !("state" in value)) return value;
  const { id, state, grant, attempt, left } = value as { [key: string]: unknown };
  return { id, state, grant, attempt, left };
}
