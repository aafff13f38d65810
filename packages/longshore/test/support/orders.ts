// Definitions under any operator commands. Workers report, fail, repeat reports, come late or disappear. Operators pause, skip, end steps,
// cancel, retry, rerun and restart. Calls are concurrent, and the server is stopped and started. After each event, a simple reference model
// and the published checker check every run. No task may be handed out again after its completion. At the end, without further commands,
// every run must end.

import { expect, it } from "vitest";
import type { FailureReport } from "../../src/engine/board/board.ts";
import { type Hold, isOpen, type TaskRow } from "../../src/engine/board/task.ts";
import { isRunOpen, type Run } from "../../src/engine/run/run.ts";
import { Skips } from "../../src/engine/run/skips.ts";
import { type Random, seededRandom } from "../faults/random.ts";
import type { OrderKind, RunWorld } from "./run-world.ts";

/** What a test needs from a world. */
export type OrdersWorld = Pick<
  RunWorld,
  "clock" | "board" | "parts" | "runs" | "restart" | "tell" | "settle" | "allRuns" | "rows" | "findings" | "poll"
>;

/** The tested definitions of one or several dialects, and their meaning. */
export interface Story {
  readonly world: OrdersWorld;
  /** The definitions as text, for the trace of a failure. */
  readonly told: string;
  /** What workers take from. */
  readonly lanes: readonly { readonly name: string; readonly labels?: string[] }[];
  /** Starts the runs. */
  begin(): Promise<void>;
  /** The fault of a run that has nothing left to decide, as a text; null when there is none. `records` are the newest, by step. */
  faultIn(run: Run, records: ReadonlyMap<string, TaskRow>, known: Known): string | null;
  /** Steps that a command may name. */
  steps(run: Run, order: "rerun" | "skip"): readonly string[];
  /** Only a report ends it. */
  waits(run: Run, task: TaskRow): boolean;
  /** JSON text. */
  output?(task: TaskRow, random: Random): string;
  /** The tries of the run's worker tasks as the API shows them, oldest first. */
  shown?(run: Run): Promise<readonly ShownTry[]>;
  failure?(task: TaskRow, random: Random): FailureReport;
}

export interface ShownTry {
  readonly taskId: string;
  readonly attempt: number;
  readonly isCompleted: boolean;
  /** JSON text. */
  readonly output: string | null;
}

/** Events that the records do not show. */
export interface Known {
  /** A rerun named the step: it runs for any outcome of the steps before it. */
  isNamed(run: Run, step: string): boolean;
  /** The task has given a part in this life. */
  isStreamed(run: Run, task: TaskRow): boolean;
  /** A report has ended the task, in this life or an earlier one, although no worker held it. */
  isReported(task: TaskRow): boolean;
}

const stepsMax = 40;
/** How long a worker keeps a task silently. */
const termMs = 30_000;
/** After this time a failed try is followed by another, and a lease has ended. */
const peaceMs = 60_000;
/** Rounds without commands within which every run must end: each round ends at least one task of each run. */
const roundsMax = 80;

class Play implements Known {
  readonly #story: Story;
  readonly #random: Random;
  /** The life of its run in which a task was completed. */
  readonly #completed = new Map<string, number>();
  /** The output of each completion that was accepted, by task and attempt. */
  readonly #accepted = new Map<string, string>();
  /** What workers hold and have not reported on. */
  #held: TaskRow[] = [];
  readonly #named = new Set<string>();
  readonly #streamed = new Set<string>();
  readonly #reported = new Set<string>();
  readonly way: string[] = [];

  constructor(story: Story, random: Random) {
    this.#story = story;
    this.#random = random;
    this.way.push(story.told);
  }

  async play(): Promise<void> {
    await this.#story.begin();
    for (let step = 0; step < stepsMax; step++) {
      if (this.#random.chance(0.01)) await this.#restart();
      // From time to time, two callers act at the same moment.
      await Promise.all(this.#random.chance(0.2) ? [this.#act(), this.#act()] : [this.#act()]);
      await this.#world.settle();
      await this.#check();
    }
    this.way.push("peace");
    for (let round = 0; this.#runs().some(({ state }) => isRunOpen(state)); round++) {
      if (round === roundsMax) throw new Error(`After ${roundsMax} rounds of peace there are open: ${this.#open().join(", ")}.`);
      await this.#workOff();
      await this.#check();
    }
  }

  isNamed({ id, retries }: Run, step: string): boolean {
    return this.#named.has(`${id} ${retries} ${step}`);
  }

  isStreamed({ retries }: Run, { id }: TaskRow): boolean {
    return this.#streamed.has(`${id} ${retries}`);
  }

  isReported({ id }: TaskRow): boolean {
    return this.#reported.has(id);
  }

  get #world(): OrdersWorld {
    return this.#story.world;
  }

  #runs(): Run[] {
    return this.#world.allRuns();
  }

  #open(): string[] {
    const open = this.#runs().filter(({ state }) => isRunOpen(state));
    return open.map(({ id, state }) => {
      const tasks = this.#records(id).filter((task) => isOpen(task.state));
      return `${id} (${state}: ${tasks.map(({ step }) => step)})`;
    });
  }

  /** The newest records of a run that count. */
  #records(runId: string): TaskRow[] {
    return this.#world.rows(runId).filter(({ state }) => state !== "forgotten");
  }

  async #check(): Promise<void> {
    for (const run of this.#runs()) {
      checkShown((await this.#story.shown?.(run)) ?? [], this.#accepted);
      if (run.state === "paused" || run.backlog !== null) continue;
      const fault = this.#story.faultIn(run, new Map(this.#records(run.id).map((task) => [task.step, task])), this);
      if (fault !== null) throw new Error(`run ${run.id} of ${run.workflow} is ${run.state} in life ${run.retries}: ${fault}`);
    }
    const [found] = this.#world.findings();
    if (found !== undefined) throw new Error(`longshore verify finds ${JSON.stringify(found)}`);
  }

  async #act(): Promise<void> {
    const drawn = this.#random.next();
    if (drawn < 0.36) return this.#work();
    if (drawn < 0.42) return this.#take();
    if (drawn < 0.48) return this.#hear();
    if (drawn < 0.56) return this.#report();
    if (drawn < 0.59) return this.#pass();
    if (drawn < 0.62) return this.#cancelOne();
    if (drawn < 0.68) return this.#tell("pause", ({ state }) => state === "running");
    if (drawn < 0.76) return this.#tell("resume", ({ state }) => state === "paused");
    if (drawn < 0.8) return this.#tell("cancel", ({ state }) => isRunOpen(state));
    if (drawn < 0.87) return this.#tell("retry", ({ state }) => !isRunOpen(state) && state !== "succeeded");
    if (drawn < 0.89) return this.#tell("restart", ({ state }) => !isRunOpen(state));
    if (drawn < 0.95) return this.#tell("rerun", ({ state }) => !isRunOpen(state));
    return this.#tell("skip", ({ state }) => state === "running");
  }

  async #tell(kind: OrderKind, wanted: (run: Run) => boolean): Promise<void> {
    const run = this.#random.pick(this.#runs().filter(wanted));
    if (run === undefined) return;
    const step = kind === "rerun" || kind === "skip" ? this.#random.pick(this.#among(run, kind)) : "";
    if (step === undefined) return;
    this.way.push(`${kind} ${run.id} ${step}`);
    if (kind === "rerun") this.#named.add(`${run.id} ${run.retries + 1} ${step}`);
    await this.#world.tell(run.id, kind, step);
  }

  /** Those that have begun, or that have not. */
  #among(run: Run, kind: "rerun" | "skip"): string[] {
    const skips = new Skips(run);
    const begun = new Set(
      this.#records(run.id)
        .filter(({ node }) => !skips.has(node))
        .map(({ step }) => step),
    );
    return this.#story.steps(run, kind).filter((step) => begun.has(step) === (kind === "rerun"));
  }

  async #restart(): Promise<void> {
    this.way.push("the server stops and starts");
    await this.#world.restart();
  }

  async #pass(): Promise<void> {
    const ms = this.#random.pick([1, 1_000, termMs - 1, termMs, peaceMs]) as number;
    this.way.push(`time passes, ${ms} ms`);
    await this.#world.clock.advance(ms);
  }

  async #work(): Promise<void> {
    const task = await this.#poll(this.#random.pick(this.#story.lanes) as Story["lanes"][number]);
    if (task !== undefined) await this.#end(task, this.#random.next());
  }

  async #take(): Promise<void> {
    const task = await this.#poll(this.#random.pick(this.#story.lanes) as Story["lanes"][number]);
    if (task === undefined) return;
    this.way.push(`take ${task.id} ${task.step}`);
    this.#held.push(task);
  }

  /** A worker with a task sends a heartbeat, emits a part, or reports, possibly too late, and possibly again. */
  async #hear(): Promise<void> {
    const task = this.#random.pick(this.#held);
    if (task === undefined) return;
    const hold = { taskId: task.id, grant: task.grant };
    const drawn = this.#random.next();
    if (drawn < 0.2) await this.#world.board.extend(hold);
    else if (drawn < 0.6) await this.#part(task, hold);
    else {
      if (this.#random.chance(0.8)) this.#held = this.#held.filter((other) => other !== task);
      await this.#end(task, this.#random.next());
    }
  }

  async #part(task: TaskRow, hold: Hold): Promise<void> {
    const life = this.#lifeOf(task);
    const verdict = await this.#world.parts.put(hold, [{ uid: `p${this.#random.between(0, 2)}`, value: "1" }]);
    this.way.push(`part of ${task.id} ${task.step}: ${verdict}`);
    if (verdict === "ok") this.#streamed.add(`${task.id} ${life}`);
  }

  async #poll(lane: Story["lanes"][number]): Promise<TaskRow | undefined> {
    // Another caller may complete it at the same time.
    const completed = new Map(this.#completed);
    const task = await this.#world.poll(lane.name, { ...(lane.labels && { labels: lane.labels }), termMs });
    if (task === undefined) return undefined;
    const life = this.#lifeOf(task);
    if (completed.get(task.id) === life) throw new Error(`${task.step} was handed out again in life ${life} of ${task.runId}.`);
    return task;
  }

  #lifeOf({ runId }: TaskRow): number {
    return this.#runs().find(({ id }) => id === runId)?.retries ?? -1;
  }

  async #end(task: TaskRow, drawn: number): Promise<void> {
    const { id: taskId, grant, attempt } = task;
    const hold = task.state === "held" ? { taskId, grant } : { taskId, attempt };
    const life = this.#lifeOf(task);
    const succeeds = drawn < 0.8;
    const failing = this.#story.failure?.(task, this.#random) ?? { error: "no", retryable: drawn < 0.9 };
    const output = this.#story.output?.(task, this.#random) ?? "{}";
    const verdict = await (succeeds ? this.#world.board.complete(hold, output) : this.#world.board.fail(hold, failing));
    this.way.push(`${succeeds ? "complete" : "fail"} ${taskId} ${task.step}: ${verdict}`);
    if (succeeds && verdict === "ok" && task.lane !== null) {
      this.#accepted.set(`${taskId} ${attempt}`, output);
      if (this.#completed.get(taskId) === life) throw new Error(`${task.step} was completed again in life ${life} of ${task.runId}.`);
      this.#completed.set(taskId, life);
    }
    await this.#world.settle();
  }

  /** A report ends something that waits: a wait, a join, a child run, or work that no worker has claimed. */
  async #report(): Promise<void> {
    const open = this.#runs().flatMap(({ id }) => this.#records(id).filter(({ state }) => state === "queued"));
    const task = this.#random.pick(open);
    if (task === undefined) return;
    this.#reported.add(task.id);
    await this.#end(task, this.#random.next());
  }

  async #cancelOne(): Promise<void> {
    const open = this.#runs().flatMap(({ id }) => this.#records(id).filter(({ state }) => isOpen(state)));
    const task = this.#random.pick(open);
    if (task === undefined) return;
    this.way.push(`cancel task ${task.id} ${task.step}`);
    await this.#world.board.cancel(task.id);
  }

  async #workOff(): Promise<void> {
    for (const task of this.#held.splice(0)) await this.#end(task, 0);
    await this.#world.clock.advance(peaceMs);
    for (const run of this.#runs()) {
      if (run.state === "paused") await this.#world.tell(run.id, "resume");
      const waiting = this.#records(run.id).filter((task) => isOpen(task.state) && this.#story.waits(run, task));
      for (const task of waiting) await this.#end(task, 0);
    }
    for (const lane of this.#story.lanes)
      for (let task = await this.#poll(lane); task !== undefined; task = await this.#poll(lane)) await this.#end(task, 0);
  }
}

/** A try that is shown as completed has an accepted completion with this output, and no further try follows it. */
function checkShown(tries: readonly ShownTry[], accepted: ReadonlyMap<string, string>): void {
  for (const [at, { taskId, attempt, isCompleted, output }] of tries.entries()) {
    if (!isCompleted) continue;
    const reported = accepted.get(`${taskId} ${attempt}`);
    const shown = `Try ${attempt} of ${taskId} is shown as completed`;
    if (reported === undefined) throw new Error(`${shown}, and no completion of it was accepted.`);
    if (reported !== output) throw new Error(`${shown} with ${output}, and was completed with ${reported}.`);
    if (tries[at + 1]?.taskId === taskId) throw new Error(`${shown}, and was tried again.`);
  }
}

/**
 * A test for each few seeds. `LONGSHORE_SIM_SEED=7` runs only seed 7 and prints the trace of a failure; `LONGSHORE_SIM_SEEDS` is how many
 * there are, and
 * `LONGSHORE_SIM_FIRST` the first of them. `found` are seeds that have found a fault; each has a test of its own.
 */
export function playOrders(
  title: string,
  { seeds, found = [] }: { seeds: number; found?: readonly number[] },
  open: (random: Random) => Promise<Story>,
): void {
  const only = Number(process.env.LONGSHORE_SIM_SEED ?? 0);
  const begin = Number(process.env.LONGSHORE_SIM_FIRST ?? 1);
  const [first, last] = only > 0 ? [only, only] : [begin, begin + Number(process.env.LONGSHORE_SIM_SEEDS ?? seeds) - 1];
  const play = async (from: number, to: number): Promise<void> => {
    const failures: string[] = [];
    for (let seed = from; seed <= to; seed++) {
      const random = seededRandom(seed);
      const one = new Play(await open(random), random);
      await one.play().catch((error: Error) => failures.push(`Seed ${seed}: ${error.message}`, ...(only > 0 ? one.way : [])));
    }
    expect(failures).toEqual([]);
  };
  for (let from = first; from <= last; from += perTest) {
    const to = Math.min(from + perTest - 1, last);
    it(`${title} with seeds ${from} to ${to}`, () => play(from, to), 300_000);
  }
  if (process.env.LONGSHORE_SIM_SEED === undefined && process.env.LONGSHORE_SIM_SEEDS === undefined)
    it.each(found)(`${title} with seed %i, which found a fault`, (seed) => play(seed, seed));
}

const perTest = 20;
