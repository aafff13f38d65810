// How long tasks wait, how long attempts take, and how long runs take, by task and workflow.

import type { Histogram, Metrics } from "../core/metrics.ts";
import type { TaskRow } from "../engine/board/task.ts";
import type { TaskOrigin } from "../protocols/server-half.ts";
import type { Engine } from "./engine.ts";

/** Maximum number of series of one histogram: each has 15 lines of text, and callers choose the names of tasks and workflows. */
const tasksMax = 200;
const workflowsMax = 100;

/** Upper bounds in seconds. Times of the engine are whole milliseconds. */
const taskBounds = [0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1, 5, 10, 30, 60, 300, 1_800, 3_600];
const runBounds = [0.01, 0.1, 0.5, 1, 5, 10, 60, 300, 1_800, 3_600, 21_600, 86_400, 604_800];

export function workTimes(engine: Pick<Engine, "listen" | "listenToWork" | "originOf">, metrics: Metrics): void {
  const by = ["task", "workflow"];
  const waits = metrics.histogram(
    "longshore_task_wait_seconds",
    "How long a task could be taken before it was handed out.",
    taskBounds,
    by,
    tasksMax,
  );
  const durations = metrics.histogram(
    "longshore_task_duration_seconds",
    "How long an attempt took, from its start to its end.",
    taskBounds,
    by,
    tasksMax,
  );
  const runs = metrics.histogram(
    "longshore_run_duration_seconds",
    "How long a run took, from its start or its last retry to its end.",
    runBounds,
    ["workflow"],
    workflowsMax,
  );
  const workflows = new Workflows(engine.originOf);
  let known = 0;
  /** The series of a task, which is looked up once: a search in two maps costs a fifth of a search by all labels. */
  const seriesOf = (workflow: Workflow, task: string): TaskSeries => {
    const found = workflow.tasks.get(task);
    if (found !== undefined) return found;
    const series = { waits: waits.with(task, workflow.name), durations: durations.with(task, workflow.name) };
    if (known < tasksMax) {
      known++;
      workflow.tasks.set(task, series);
    }
    return series;
  };
  const observe = (kind: keyof TaskSeries, task: TaskRow, ms: number) => {
    const name = task.lane?.name ?? "";
    const seconds = Math.max(0, ms) / 1_000;
    const workflow = workflows.of(task);
    if (workflow instanceof Promise) {
      // The read rejects when the store is closed.
      workflow.then((found) => seriesOf(found, name)[kind].observe(seconds)).catch(() => {});
    } else seriesOf(workflow, name)[kind].observe(seconds);
  };
  engine.listen({
    run(run) {
      if (run.endedAt === null) {
        workflows.saw(run.id, run.workflow);
        return;
      }
      const begunAt = run.retries === 0 ? run.createdAt : run.countedFrom;
      runs.with(run.workflow).observe(Math.max(0, run.endedAt - begunAt) / 1_000);
    },
  });
  engine.listenToWork({
    handedOut: (task, at) => observe("waits", task, at - Math.max(task.queuedAt, task.dueAt)),
    attemptOver: (task, { endedAt }) => observe("durations", task, endedAt - (task.startedAt ?? endedAt)),
  });
}

interface TaskSeries {
  readonly waits: Histogram;
  readonly durations: Histogram;
}

interface Workflow {
  readonly name: string;
  readonly tasks: Map<string, TaskSeries>;
}

/** Maximum number of runs in each of the two halves. */
const halfMax = 10_000;

/** The workflow of each run. The rows of tasks do not have it, and the row of a run may not be in memory. */
class Workflows {
  readonly #originOf: Engine["originOf"];
  readonly #none: Workflow = { name: "", tasks: new Map() };
  readonly #byName = new Map<string, Workflow>();
  /** When the newer half is full, the older one is dropped. */
  #newer = new Map<string, Workflow>();
  #older = new Map<string, Workflow>();

  constructor(originOf: Engine["originOf"]) {
    this.#originOf = originOf;
  }

  saw(runId: string, name: string): Workflow {
    if (this.#newer.size >= halfMax) {
      this.#older = this.#newer;
      this.#newer = new Map();
    }
    const workflow = this.#named(name);
    this.#newer.set(runId, workflow);
    return workflow;
  }

  of(task: Pick<TaskRow, "runId" | "node">): Workflow | Promise<Workflow> {
    const { runId } = task;
    if (runId === null) return this.#none;
    const known = this.#newer.get(runId) ?? this.#older.get(runId);
    if (known !== undefined) return known;
    const origin = this.#originOf(task);
    const found = ({ workflow }: TaskOrigin) => (workflow === null ? this.#none : this.saw(runId, workflow));
    return origin instanceof Promise ? origin.then(found) : found(origin);
  }

  /** Callers choose the names, so names beyond the limit are not remembered. */
  #named(name: string): Workflow {
    const known = this.#byName.get(name);
    if (known !== undefined) return known;
    const workflow: Workflow = { name, tasks: new Map() };
    if (this.#byName.size < tasksMax) this.#byName.set(name, workflow);
    return workflow;
  }
}
