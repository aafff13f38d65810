// Readers in the middle of commits, loads and takeovers. Every committed state is kept. The result of a read must be a committed state, or
// a part of one. It must not be older than what was acknowledged, or seen by another reader, when the read began.

import { isDeepStrictEqual } from "node:util";
import type { TaskRow, TaskRowHead } from "../../src/engine/board/task.ts";
import type { Run } from "../../src/engine/run/run.ts";
import type { Random } from "../faults/random.ts";
import { sameTask } from "./simulation-check.ts";
import type { Stored } from "./simulation-disk.ts";
import { broken } from "./simulation-model.ts";
import type { Process } from "./simulation-process.ts";

interface State {
  readonly tasks: ReadonlyMap<string, TaskRow>;
  readonly runs: ReadonlyMap<string, Run>;
}

/** All committed states, the oldest first. */
export class CommittedStates {
  readonly #states: State[] = [{ tasks: new Map(), runs: new Map() }];

  add({ tasks, runs }: Stored): void {
    this.#states.push({ tasks: new Map(tasks), runs: new Map(runs) });
  }

  /** The number of the last one. */
  get last(): number {
    return this.#states.length - 1;
  }

  between(from: number, to: number): State[] {
    return this.#states.slice(from, to + 1);
  }
}

interface ReadersDeps {
  readonly random: Random;
  readonly states: CommittedStates;
  process(): Process;
  say(what: string): void;
  refused(): void;
}

/** More than a simulation has. */
const limit = 1_000;

export class Readers {
  readonly #deps: ReadersDeps;
  /** The newest state that a reader has seen something of. */
  #seen = 0;
  #reads = 0;

  constructor(deps: ReadersDeps) {
    this.#deps = deps;
  }

  call(): Promise<void> {
    const { random, states } = this.#deps;
    const [state] = states.between(states.last, states.last);
    const taskId = random.pick([...(state?.tasks.keys() ?? [])]) ?? "none";
    const runId = random.pick([...(state?.runs.keys() ?? [])]) ?? "none";
    const drawn = random.next();
    if (drawn < 0.3) return this.#read(`task ${taskId}`, ({ reader }) => reader.task(taskId), isTask(taskId));
    if (drawn < 0.4) return this.#read(`head of ${taskId}`, ({ reader }) => reader.taskHead(taskId), isHead(taskId));
    if (drawn < 0.6) return this.#read(`run ${runId}`, ({ reader }) => reader.run(runId), isRun(runId));
    if (drawn < 0.8) return this.#read(`steps of ${runId}`, ({ reader }) => reader.heads(runId), areSteps(runId));
    return drawn < 0.9 ? this.#listRuns() : this.#listTasks();
  }

  async #read<T>(what: string, ask: (process: Process) => Promise<T>, fits: (found: T, state: State) => boolean): Promise<void> {
    await this.#asked(what, ask, (found, states) => {
      const at = states.findIndex((state) => fits(found, state));
      if (at === -1) throw broken(`a reader of ${what} got ${JSON.stringify(found)}, which was never committed or had been overtaken`);
      return at;
    });
  }

  /** A list consists of several reads. It must contain everything that was in it all the time, and nothing that was never in it. */
  #listRuns(): Promise<void> {
    const wanted = this.#deps.random.pick(["running", "succeeded", "failed"] as const) as Run["state"];
    return this.#asked(
      `runs that are ${wanted}`,
      ({ reader }) => reader.runs({ state: wanted, limit }),
      ({ items }, states) => {
        const listed = new Set(items.map(({ id }) => id));
        for (const run of items)
          if (!states.some((state) => isRun(run.id)(run, state)))
            throw broken(`a list has ${JSON.stringify(run)}, which was never committed`);
        checkList(
          listed,
          states,
          ({ runs }, id) => runs.get(id)?.state === wanted,
          ({ runs }) => runs.keys(),
        );
        return 0;
      },
    );
  }

  #listTasks(): Promise<void> {
    return this.#asked(
      "tasks",
      ({ reader }) => reader.tasks({ limit }),
      ({ items }, states) => {
        const listed = new Set(items.map(({ id }) => id));
        for (const task of items)
          if (!states.some((state) => isTask(task.id)(task, state)))
            throw broken(`a list has ${JSON.stringify(task)}, which was never committed`);
        checkList(
          listed,
          states,
          ({ tasks }, id) => tasks.has(id),
          ({ tasks }) => tasks.keys(),
        );
        return 0;
      },
    );
  }

  /** `check` gets the states that the answer may be of, and returns the place of the first one. */
  async #asked<T>(what: string, ask: (process: Process) => Promise<T>, check: (found: T, states: State[]) => number): Promise<void> {
    const { states, say } = this.#deps;
    const process = this.#deps.process();
    const read = ++this.#reads;
    const from = Math.max(process.acknowledged, process.isDeposed ? 0 : this.#seen);
    const [wasDeposed, wasOwned] = [process.isDeposed, process.owner?.isOwned()];
    say(`?${read} ${what}`);
    let found: T;
    try {
      found = await ask(process);
    } catch (error) {
      if (!process.alive) return;
      if ((error as { code?: string }).code !== "LONGSHORE_STORE_UNAVAILABLE") throw error;
      say(`  ?${read} refused`);
      this.#deps.refused();
      return;
    }
    if (!process.alive) return;
    say(`  ?${read} answered`);
    if (wasDeposed) {
      if (!wasOwned) throw broken(`${what} was answered by an owner that had been replaced and whose trust was over`);
      return;
    }
    const seen = from + check(found, states.between(from, states.last));
    this.#seen = Math.max(this.#seen, seen);
  }
}

function checkList(
  listed: ReadonlySet<string>,
  states: readonly State[],
  isIn: (state: State, id: string) => boolean,
  idsOf: (state: State) => Iterable<string>,
): void {
  for (const id of idsOf(states[0] as State))
    if (!listed.has(id) && states.every((state) => isIn(state, id))) throw broken(`${id} belonged to a list all the time and is not in it`);
  for (const id of listed) if (!states.some((state) => isIn(state, id))) throw broken(`${id} is in a list and never belonged to it`);
}

const isTask =
  (id: string) =>
  (found: TaskRow | undefined, { tasks }: State) => {
    const task = tasks.get(id);
    return found === undefined || task === undefined ? found === task : sameTask(found, task);
  };

const isHead =
  (id: string) =>
  (found: TaskRowHead | undefined, { tasks }: State) =>
    headOf(found) === headOf(tasks.get(id));

const isRun =
  (id: string) =>
  (found: Run | undefined, { runs }: State) =>
    isDeepStrictEqual(found, runs.get(id));

/** All steps of a run are read at once, so they are of one state. */
const areSteps =
  (runId: string) =>
  (found: readonly TaskRowHead[], { tasks }: State) => {
    const steps = [...tasks.values()].filter((task) => task.runId === runId);
    return steps.length === found.length && found.every((head) => headOf(head) === headOf(tasks.get(head.id)));
  };

function headOf(task: TaskRowHead | undefined): string | undefined {
  return task === undefined ? undefined : [task.id, task.state, task.attempt, task.grant, task.holder].join(" ");
}
