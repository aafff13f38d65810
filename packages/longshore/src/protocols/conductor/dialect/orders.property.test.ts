// Any definition, under any orders of operators: whatever is paused, skipped, ended by hand, terminated, retried, rerun and restarted, exactly the
// tasks have begun that a plain reading of the definition expects, no task is handed out again after its completion, and in peace every run ends.
// `LONGSHORE_SIM_SEED=7 npx vitest run --project unit orders.property` plays seed 7 alone and prints the way to a failure.

import { describe, expect, it } from "vitest";
import { type Random, seededRandom } from "../../../../test/faults/random.ts";
import { everyTask, faultIn, keys, lanes, makePlan, type PlanTask } from "../../../../test/support/conductor-plans.ts";
import { type ConductorWorld, openConductor } from "../../../../test/support/conductor-world.ts";
import { isOpen, type TaskRow } from "../../../engine/board/task.ts";
import { isRunOpen, type Run } from "../../../engine/run/run.ts";
import { Skips } from "../../../engine/run/skips.ts";

const seeds = 300;
const perTest = 20;
const stepsMax = 40;
/** A failed try is followed by another after this long. */
const retryMs = 60_000;
/** Rounds of peace within which every run must have ended: each ends at least one task of each. */
const roundsMax = 60;

class Play {
  readonly #random: Random;
  readonly #world: ConductorWorld;
  readonly #plans: { readonly [workflow: string]: PlanTask[] };
  /** The life of its run in which a task was completed. */
  readonly #completed = new Map<string, number>();
  readonly way: string[] = [];

  constructor(seed: number, world: ConductorWorld) {
    this.#random = seededRandom(seed);
    this.#world = world;
    this.#plans = { inner: makePlan(this.#random, null), w: makePlan(this.#random, "inner") };
  }

  async play(): Promise<void> {
    const { inner, w } = this.#plans;
    this.#world.workflow({ name: "inner", tasks: inner });
    this.way.push(JSON.stringify(this.#plans));
    await this.#world.start(w as PlanTask[], { input: { key: this.#random.pick(keys) as string } });
    for (let step = 0; step < stepsMax; step++) {
      await this.#act();
      this.#check();
    }
    for (let round = 0; this.#runs().some(({ state }) => isRunOpen(state)); round++) {
      if (round === roundsMax) throw new Error(`After ${roundsMax} rounds of peace there are open: ${this.#open().join(", ")}.`);
      await this.#workOff();
      this.#check();
    }
  }

  #runs(): Run[] {
    return this.#world.allRuns();
  }

  #open(): string[] {
    const open = this.#runs().filter(({ state }) => isRunOpen(state));
    return open.map(
      ({ id, state }) =>
        `${id} (${state}: ${this.#records(id)
          .filter((task) => isOpen(task.state))
          .map(({ step }) => step)})`,
    );
  }

  /** The newest records of a run that count. */
  #records(runId: string): TaskRow[] {
    return this.#world.rows(runId).filter(({ state }) => state !== "forgotten");
  }

  #planOf({ workflow }: Run): PlanTask[] {
    return this.#plans[workflow] as PlanTask[];
  }

  #typeOf(run: Run, { step }: TaskRow): string {
    return [...everyTask(this.#planOf(run))].find(({ taskReferenceName }) => taskReferenceName === step)?.type ?? "";
  }

  #check(): void {
    for (const run of this.#runs()) {
      if (run.state === "paused" || run.backlog !== null) continue;
      const fault = faultIn(this.#planOf(run), run, new Map(this.#records(run.id).map((task) => [task.step, task])));
      if (fault !== null) throw new Error(fault);
      const open = this.#records(run.id).filter(({ state }) => isOpen(state) && state !== "cancelling").length;
      if (run.state === "running" && run.active !== open)
        throw new Error(`Run ${run.id} counts ${run.active} open tasks, there are ${open}.`);
    }
  }

  async #act(): Promise<void> {
    const drawn = this.#random.next();
    if (drawn < 0.45) return this.#work();
    if (drawn < 0.57) return this.#report();
    if (drawn < 0.64) return this.#tell("pause", ({ state }) => state === "running");
    if (drawn < 0.74) return this.#tell("resume", ({ state }) => state === "paused");
    if (drawn < 0.78) return this.#tell("cancel", ({ state }) => isRunOpen(state));
    if (drawn < 0.86) return this.#tell("retry", ({ state }) => !isRunOpen(state) && state !== "succeeded");
    if (drawn < 0.88) return this.#tell("restart", ({ state }) => !isRunOpen(state));
    return this.#tell(drawn < 0.94 ? "rerun" : "skip", ({ state }) => (drawn < 0.94 ? !isRunOpen(state) : state === "running"));
  }

  async #tell(kind: "pause" | "resume" | "cancel" | "retry" | "restart" | "rerun" | "skip", wanted: (run: Run) => boolean): Promise<void> {
    const run = this.#random.pick(this.#runs().filter(wanted));
    if (run === undefined) return;
    const begun = this.#records(run.id).filter(({ node }) => !new Skips(run).has(node));
    const names = new Set(begun.map(({ step }) => step));
    const tasks = [...everyTask(this.#planOf(run))].filter(({ type }) => kind === "rerun" || type !== "FORK_JOIN");
    const among = tasks.filter(({ taskReferenceName }) => names.has(taskReferenceName) === (kind === "rerun"));
    const ref = kind === "rerun" || kind === "skip" ? this.#random.pick(among)?.taskReferenceName : "";
    if (ref === undefined) return;
    this.way.push(`${kind} ${run.id} ${ref}`);
    await this.#world.tell(run.id, kind, ref);
  }

  async #work(): Promise<void> {
    const task = await this.#poll(this.#random.pick(lanes) as string);
    if (task !== undefined) await this.#end(task, this.#random.next());
  }

  async #poll(lane: string): Promise<TaskRow | undefined> {
    const task = await this.#world.poll(lane);
    if (task === undefined) return undefined;
    const life = this.#lifeOf(task);
    if (this.#completed.get(task.id) === life) throw new Error(`${task.step} was handed out again in life ${life} of ${task.runId}.`);
    return task;
  }

  #lifeOf({ runId }: TaskRow): number {
    return this.#runs().find(({ id }) => id === runId)?.retries ?? -1;
  }

  async #end(task: TaskRow, drawn: number): Promise<void> {
    const { id: taskId, grant, attempt } = task;
    const hold = task.state === "held" ? { taskId, grant } : { taskId, attempt };
    const life = this.#lifeOf(task);
    const failing = { error: "no", retryable: drawn < 0.9 };
    const verdict = drawn < 0.8 ? await this.#world.board.complete(hold, "{}") : await this.#world.board.fail(hold, failing);
    this.way.push(`${drawn < 0.8 ? "complete" : "fail"} ${taskId} ${task.step}: ${verdict}`);
    if (drawn < 0.8 && verdict === "ok" && task.lane !== null) this.#completed.set(taskId, life);
    await this.#world.settle();
  }

  /** What waits is ended by a report: a WAIT, a JOIN, a child run, or work that no worker has polled. */
  async #report(): Promise<void> {
    const open = this.#runs().flatMap(({ id }) => this.#records(id).filter(({ state }) => state === "queued"));
    const task = this.#random.pick(open);
    if (task !== undefined) await this.#end(task, this.#random.next());
  }

  async #workOff(): Promise<void> {
    await this.#world.clock.advance(retryMs);
    for (const run of this.#runs()) {
      if (run.state === "paused") await this.#world.tell(run.id, "resume");
      const waiting = this.#records(run.id).filter((task) => isOpen(task.state) && this.#typeOf(run, task) === "WAIT");
      for (const task of waiting) await this.#end(task, 0);
    }
    for (const lane of lanes) {
      for (let task = await this.#poll(lane); task !== undefined; task = await this.#poll(lane)) await this.#end(task, 0);
    }
  }
}

async function playAll(from: number, to: number): Promise<string[]> {
  const failures: string[] = [];
  for (let seed = from; seed <= to; seed++) {
    // Records are ended and made void one by one, so that orders meet runs of which only some are.
    const play = new Play(seed, await openConductor({ sliceTasks: 1 }));
    await play.play().catch((error: Error) => failures.push(`Seed ${seed}: ${error.message}`, ...(from === to ? play.way : [])));
  }
  return failures;
}

describe("under any orders of operators", () => {
  const only = Number(process.env.LONGSHORE_SIM_SEED ?? 0);
  const [first, last] = only > 0 ? [only, only] : [1, seeds];
  for (let from = first; from <= last; from += perTest) {
    const to = Math.min(from + perTest - 1, last);
    it(`a definition means the same with seeds ${from} to ${to}`, async () => {
      expect(await playAll(from, to)).toEqual([]);
    }, 120_000);
  }
});
