// Reads the histories of runs from rows, for the checker. It reads no payloads, so their size does not matter.

import { attemptsKeptMax } from "../board/task.ts";
import { type RowStore, readAll } from "../rows.ts";
import { definitionIdTable } from "../tables/definition.ts";
import { propertyTable } from "../tables/endings.ts";
import {
  attemptHistoryTable,
  childHistoryTable,
  partHistoryTable,
  type RunRecord,
  runHistoryTable,
  type TaskRecord,
  taskHistoryTable,
} from "../tables/history.ts";
import { runIdTable } from "../tables/run.ts";
import type { ReadRows, ReadTx } from "../tx.ts";
import { type PlannedDefinitions, planned } from "./definitions.ts";
import type { Definition } from "./dialect.ts";
import { drivenState, isCommand } from "./driven-state.ts";
import type {
  AttemptHistory,
  ChildHistory,
  HistoryReader,
  JournalCounts,
  NextPage,
  PartsHistory,
  RunHistory,
  TaskHistory,
} from "./history.ts";
import { messageTable } from "./messages.ts";
import type { Plan, PlanNode } from "./plan.ts";
import { type Keep, keepOf, keptProperty } from "./retention.ts";
import { backlogOf, type Message, taskIdOf } from "./run.ts";

export interface LocalHistoryDeps {
  readonly store: RowStore;
  /** A node of a definition. Undefined for a definition that cannot be read. */
  nodeOf(tx: ReadTx, definitionId: string, node: number): Pick<PlanNode, "kind" | "threshold"> | undefined;
  /** Also counts the parts of each task. This reads a row for each part. */
  readonly withParts: boolean;
}

export interface ServedHistoryDeps {
  readonly store: RowStore;
  readonly definitions: PlannedDefinitions;
  plan(definition: Definition): Plan;
}

/** Maximum number of messages about one run that are read. Messages are delivered at once, so few of them wait. */
const messagesMax = 100;
/** A page ends with the task that reaches this number of attempts: so it is read in less than 5 ms. */
const attemptsMax = 500;

/** The history for requests to a running server. Parts are not counted: a task may have a million, and a request must not read them all. */
export function servedHistory({ store, plan, definitions }: ServedHistoryDeps, read: ReadRows): HistoryReader {
  const nodeOf: LocalHistoryDeps["nodeOf"] = (tx, definitionId, node) => {
    const definition = definitions.byId(tx, definitionId);
    return definition === null ? undefined : plan(definition).nodes[node];
  };
  const history = new LocalHistory({ store, nodeOf, withParts: false });
  /** The plan of a large definition is compiled in slices before the read. */
  const withPlan = async <T>(definitionOf: (tx: ReadTx) => string | undefined, work: (tx: ReadTx) => T): Promise<T> => {
    await read((tx) => planned(definitions, definitions.byId(tx, definitionOf(tx) ?? "")));
    return read(work);
  };
  return {
    runIds: (after, limit) => read((tx) => history.runIds(tx, after, limit)),
    runPage: (id, tasks) =>
      withPlan(
        (tx) => history.definitionOf(tx, id),
        (tx) => history.runPage(tx, id, tasks),
      ),
    looseTasks: (after, limit) => read((tx) => history.looseTasks(tx, after, limit)),
    task: (id) =>
      withPlan(
        (tx) => history.definitionOfTask(tx, id),
        (tx) => history.task(tx, id),
      ),
    kept: () => read((tx) => history.kept(tx)),
  };
}

export class LocalHistory {
  readonly #options: LocalHistoryDeps;
  readonly #tables: ReturnType<typeof tablesOf>;

  constructor(options: LocalHistoryDeps) {
    this.#options = options;
    this.#tables = tablesOf(options.store);
  }

  kept(tx: ReadTx): Keep | undefined {
    const property = this.#tables.properties.get(tx, keptProperty);
    return property === null ? undefined : keepOf(JSON.parse(property.value) as Keep);
  }

  definitionOf(tx: ReadTx, runId: string): string | undefined {
    return this.#tables.runs.get(tx, runId)?.definitionId;
  }

  definitionOfTask(tx: ReadTx, taskId: string): string | undefined {
    const runId = this.#tables.tasks.get(tx, taskId)?.runId ?? null;
    return runId === null ? undefined : this.definitionOf(tx, runId);
  }

  runIds(tx: ReadTx, after: string, limit?: number): string[] {
    return Array.from(this.#tables.runIds.scan(tx, { by: ["id"], above: [after], limit }), ({ id }) => id);
  }

  run(tx: ReadTx, id: string): RunHistory | undefined {
    return this.#run(tx, id, this.#tasksOf(tx, id, `${id}.`, undefined));
  }

  runPage(tx: ReadTx, id: string, { after, limit }: { after: string; limit: number }): (RunHistory & NextPage) | undefined {
    const rows = limit === 0 ? [] : this.#tasksOf(tx, id, after, limit);
    const some = withFewAttempts(rows);
    const run = this.#run(tx, id, some);
    return run && { ...run, next: some.length < rows.length || rows.length === limit ? (some.at(-1)?.id ?? null) : null };
  }

  #tasksOf(tx: ReadTx, id: string, after: string, limit: number | undefined): TaskRecord[] {
    return [...this.#tables.tasks.scan(tx, { by: ["id"], above: [after], below: [`${id}/`], limit })];
  }

  #run(tx: ReadTx, id: string, rows: readonly TaskRecord[]): RunHistory | undefined {
    const run = this.#tables.runs.get(tx, id);
    if (run === null) return undefined;
    const { definitionId, backlog, settings, recorded, ...rest } = run;
    return {
      ...rest,
      journal: journalCounts(settings, recorded),
      left: backlogOf({ backlog }).filter(({ kind }) => kind !== "part").length,
      hasDefinition: this.#tables.definitions.get(tx, definitionId) !== null,
      tasks: readAll(rows, (task) => this.#task(tx, task, definitionId)),
      children: this.#children(tx, rows),
      messages: this.#messages(tx, run),
    };
  }

  looseTasks(tx: ReadTx, after: string, limit: number): { items: TaskHistory[] } & NextPage {
    const places = [...this.#tables.tasks.scan(tx, { by: ["id"], above: [after], limit })];
    const loose = places.filter(({ runId }) => runId === null);
    const some = withFewAttempts(loose);
    const end = some.length < loose.length ? some.at(-1) : places.length === limit ? places.at(-1) : undefined;
    return { items: readAll(some, (row) => this.#task(tx, row, null)), next: end?.id ?? null };
  }

  task(tx: ReadTx, id: string): TaskHistory | undefined {
    const task = this.#tables.tasks.get(tx, id);
    if (task === null) return undefined;
    const run = task.runId === null ? null : this.#tables.runs.get(tx, task.runId);
    return this.#task(tx, task, run?.definitionId ?? null);
  }

  #task(tx: ReadTx, { node, holder, claimedAt, attempt, closedBy, place, ...task }: TaskRecord, definitionId: string | null): TaskHistory {
    const { id, onLane, endedAt, grant, state, command } = task;
    const planned = onLane || definitionId === null ? undefined : this.#options.nodeOf(tx, definitionId, node);
    const current: AttemptHistory = { attempt, grant, holder, claimedAt, endedAt, closedBy: endedAt === null ? null : closedBy, state };
    const earlier = [...this.#tables.attempts.scan(tx, { by: ["task_id", "grant_count", "attempt"], equal: [id] })];
    return {
      ...task,
      place: command === null ? 0 : place,
      startsRun: planned?.kind === "run" || (!onLane && isCommand({ command }, "run")),
      // A join with a threshold also waits when too few steps have run: then a client ends it.
      joins: planned?.kind === "join" && planned.threshold === undefined,
      // When a task is forgotten, its last attempt is stored with the earlier ones, if it had one.
      attempts: [...earlier, ...(state === "forgotten" ? [] : [current])],
      parts: this.#options.withParts ? this.#parts(tx, id) : [],
    };
  }

  #parts(tx: ReadTx, taskId: string): PartsHistory[] {
    const lives: { -readonly [Field in keyof PartsHistory]: PartsHistory[Field] }[] = [];
    for (const { life, sequence, grant } of this.#tables.parts.scan(tx, { by: ["task_id", "life", "sequence"], equal: [taskId] })) {
      const newest = lives.at(-1);
      if (newest?.life !== life) lives.push({ life, count: 1, first: sequence, last: sequence, grantMax: grant });
      else {
        newest.count++;
        newest.last = sequence;
        newest.grantMax = Math.max(newest.grantMax, grant);
      }
    }
    return lives;
  }

  /** Only the child runs of the stored attempts, so a page has no more child runs than attempts. */
  #children(tx: ReadTx, rows: readonly TaskRecord[]): ChildHistory[] {
    const by = ["parent_task_id", "parent_attempt"];
    return readAll(rows, ({ id, attempt }) => [
      ...this.#tables.children.scan(tx, { by, equal: [id], above: [attempt - attemptsKeptMax - 1] }),
    ]).flat();
  }

  #messages(tx: ReadTx, { id, parentTaskId }: RunRecord): Message[] {
    const containing = (...texts: string[]) => ({ by: ["id"], containing: { column: "body", texts } });
    const [ends = [], about = [], ofParent = []] = readAll(
      [containing('"end-tasks"', id), { ...containing(id), limit: messagesMax }, { ...containing(parentTaskId ?? id), limit: messagesMax }],
      (scan) => [...this.#tables.messages.scan(tx, scan)],
    );
    const all = new Map([...ends, ...about, ...ofParent].map((stored) => [stored.id, stored.message]));
    const inOrder = [...all].sort(([one], [other]) => one - other);
    return inOrder.map(([, message]) => message).filter((message) => isAbout(message, id, parentTaskId));
  }
}

function journalCounts(settings: string | null, commands: number): JournalCounts | null {
  const state = drivenState(settings);
  return state === undefined ? null : { commands, place: state.place, sent: state.sent, waits: state.waiting };
}

function tablesOf(store: RowStore) {
  return {
    runs: store.table(runHistoryTable),
    runIds: store.table(runIdTable),
    tasks: store.table(taskHistoryTable),
    attempts: store.table(attemptHistoryTable),
    children: store.table(childHistoryTable),
    parts: store.table(partHistoryTable),
    messages: store.table(messageTable),
    definitions: store.table(definitionIdTable),
    properties: store.table(propertyTable),
  };
}

/** The first of these tasks. Together they have at most as many attempts as one page may have. */
function withFewAttempts(rows: readonly TaskRecord[]): readonly TaskRecord[] {
  let attempts = 0;
  for (const [at, { attempt }] of rows.entries()) {
    // Attempts are numbered without a gap, and only the newest are kept, so no task has more than this.
    attempts += Math.min(attempt, attemptsKeptMax);
    if (attempts >= attemptsMax) return rows.slice(0, at + 1);
  }
  return rows;
}

/** A message belongs to the run that left it, to the run that it is for, and to the parent whose task it names. */
function isAbout(message: Message, runId: string, parentTaskId: string | null): boolean {
  if (message.kind === "start-run") return message.from === runId || isTaskOf(message.parentTaskId, runId);
  if (message.kind === "take-turns") return false;
  if ("runId" in message) return message.runId === runId;
  const taskId = message.kind === "cancel-child" ? message.parentTaskId : message.taskId;
  return taskId === parentTaskId || isTaskOf(taskId, runId);
}

function isTaskOf(taskId: string | null, runId: string): boolean {
  if (taskId === null || !taskId.startsWith(`${runId}.`)) return false;
  return taskId === taskIdOf(runId, Number(taskId.slice(runId.length + 1)));
}
