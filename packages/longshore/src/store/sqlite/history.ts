// Histories of runs on SQLite, for the checker. It reads columns only, no payloads, so a run costs what its number of tasks does.

import { attemptsKeptMax, type TaskState, type Verb } from "../../engine/board/task.ts";
import type {
  AttemptHistory,
  ChildHistory,
  HistoryReader,
  NextPage,
  PartsHistory,
  RunHistory,
  TaskHistory,
} from "../../engine/run/history.ts";
import type { PlanNode } from "../../engine/run/plan.ts";
import type { Keep } from "../../engine/run/retention.ts";
import { backlogOf, type Message, type RunState, taskIdOf } from "../../engine/run/run.ts";
import type { HistoryDeps } from "../../engine/store.ts";
import type { ReadTx } from "../../engine/tx.ts";
import type { Database, SqlRow } from "./driver.ts";
import { readRetention } from "./retention-property.ts";

export interface SqliteHistoryOptions {
  db: Database;
  /** What a node of a definition is. Undefined for a definition that cannot be read. */
  kindOf(definitionId: string, node: number): PlanNode["kind"] | undefined;
  /** Also counts the parts of each task, which costs what the number of parts does. */
  withParts: boolean;
}

/** Messages about one run that are read; they are delivered at once, so that few of them wait. */
const messagesMax = 100;
/** Attempts of one page, and those that its last task has above it: what is read below 5 ms. */
const attemptsMax = 500;

const taskColumns = `id, run_id, node, step, lane IS NOT NULL AS on_lane, state, attempt, first_attempt, grant_count, holder, claimed_at, ended_at,
  closed_grant, closed_by, output IS NOT NULL AS has_output`;

/** The history of data that are served. Parts are not counted: a task may have a million, and a request must not walk them. */
export function servedHistory(db: Database, { read, kindOf }: HistoryDeps): HistoryReader {
  /** Of the read at hand, which is performed without a pause. */
  let reading: ReadTx;
  const history = new SqliteHistory({ db, kindOf: (id, node) => kindOf(reading, id, node), withParts: false });
  const within = <T>(work: () => T) =>
    read((tx) => {
      reading = tx;
      return work();
    });
  return {
    runIds: (after, limit) => within(() => history.runIds(after, limit)),
    runPage: (id, tasks) => within(() => history.runPage(id, tasks)),
    looseTasks: (after, limit) => within(() => history.looseTasks(after, limit)),
    task: (id) => within(() => history.task(id)),
    kept: () => within(() => history.kept()),
  };
}

export class SqliteHistory {
  readonly #options: SqliteHistoryOptions;
  readonly #sql: ReturnType<typeof prepareStatements>;

  constructor(options: SqliteHistoryOptions) {
    this.#options = options;
    this.#sql = prepareStatements(options.db);
  }

  kept(): Keep | undefined {
    return readRetention(this.#options.db);
  }

  runIds(after: string, limit: number): string[] {
    return this.#sql.runIds.all(after, limit).map((row) => row.id as string);
  }

  run(id: string): RunHistory | undefined {
    return this.#run(id, this.#sql.tasksOf.all(`${id}.`, `${id}/`, -1));
  }

  runPage(id: string, { after, limit }: { after: string; limit: number }): (RunHistory & NextPage) | undefined {
    const rows = this.#sql.tasksOf.all(after, `${id}/`, limit);
    const some = this.#withFewAttempts(rows);
    const run = this.#run(id, some);
    return (
      run && { ...run, next: some.length < rows.length || rows.length === limit ? ((some.at(-1)?.id as string | undefined) ?? null) : null }
    );
  }

  /** The first of these tasks, until they have as many attempts as one page may have. */
  #withFewAttempts(rows: readonly SqlRow[]): readonly SqlRow[] {
    let attempts = 0;
    for (const [at, row] of rows.entries()) {
      // Numbered without a gap, and the oldest are forgotten: no task has more.
      attempts += Math.min(row.attempt as number, attemptsKeptMax);
      if (attempts >= attemptsMax) return rows.slice(0, at + 1);
    }
    return rows;
  }

  #run(id: string, rows: readonly SqlRow[]): RunHistory | undefined {
    const row = this.#sql.run.get(id);
    if (row === undefined) return undefined;
    const definitionId = row.definition_id as string;
    return {
      id,
      workflow: row.workflow as string,
      state: row.state as RunState,
      endedAt: row.ended_at as number | null,
      active: row.active_count as number,
      left: backlogOf({ backlog: row.backlog as string | null }).filter(({ kind }) => kind !== "part").length,
      retries: row.retries as number,
      hasDefinition: this.#sql.definition.get(definitionId) !== undefined,
      parentTaskId: row.parent_task_id as string | null,
      tasks: rows.map((task) => this.#task(task, definitionId)),
      children: this.#children(rows),
      messages: this.#messages(id, row.parent_task_id as string | null),
    };
  }

  looseTasks(after: string, limit: number): { items: TaskHistory[] } & NextPage {
    const places = this.#sql.places.all(after, limit);
    const loose = places.filter((row) => row.run_id === null).map((row) => this.#sql.task.get(row.id as string) as SqlRow);
    const some = this.#withFewAttempts(loose);
    const end = some.length < loose.length ? some.at(-1) : places.length === limit ? places.at(-1) : undefined;
    return { items: some.map((row) => this.#task(row, null)), next: (end?.id as string | undefined) ?? null };
  }

  task(id: string): TaskHistory | undefined {
    const row = this.#sql.task.get(id);
    if (row === undefined) return undefined;
    const run = row.run_id === null ? undefined : this.#sql.run.get(row.run_id as string);
    return this.#task(row, (run?.definition_id as string | undefined) ?? null);
  }

  #task(row: SqlRow, definitionId: string | null): TaskHistory {
    const id = row.id as string;
    const onLane = row.on_lane === 1;
    const endedAt = row.ended_at as number | null;
    const kind = onLane || definitionId === null ? undefined : this.#options.kindOf(definitionId, row.node as number);
    const current: AttemptHistory = {
      attempt: row.attempt as number,
      grant: row.grant_count as number,
      holder: row.holder as string | null,
      claimedAt: row.claimed_at as number | null,
      endedAt,
      closedBy: endedAt === null ? null : (row.closed_by as Verb | null),
      state: row.state as TaskState,
    };
    return {
      id,
      runId: row.run_id as string | null,
      step: row.step as string,
      state: row.state as TaskState,
      onLane,
      startsRun: kind === "run",
      joins: kind === "join",
      firstAttempt: row.first_attempt as number,
      grant: current.grant,
      closedGrant: row.closed_grant as number,
      endedAt,
      hasOutput: row.has_output === 1,
      // A forgotten life has been written to the attempts, if it had one.
      attempts: [...this.#sql.attempts.all(id).map(attemptOf), ...(row.state === "forgotten" ? [] : [current])],
      parts: this.#options.withParts ? this.#sql.parts.all(id).map(partsOf) : [],
    };
  }

  /** Of the attempts that are kept, so that a page has no more of them than attempts. */
  #children(rows: readonly SqlRow[]): ChildHistory[] {
    return rows.flatMap(({ id, attempt }) => this.#sql.children.all(id as string, (attempt as number) - attemptsKeptMax).map(childOf));
  }

  #messages(runId: string, parentTaskId: string | null): Message[] {
    const rows = [...this.#sql.endTasks.all(runId, runId), ...this.#sql.messages.all(runId, parentTaskId ?? runId, messagesMax)];
    return rows.map((row) => JSON.parse(row.body as string) as Message).filter((message) => isAbout(message, runId, parentTaskId));
  }
}

function prepareStatements(db: Database) {
  return {
    runIds: db.prepare("SELECT id FROM run WHERE id > ? ORDER BY id LIMIT ?"),
    run: db.prepare(
      "SELECT workflow, definition_id, state, ended_at, active_count, backlog, retries, parent_task_id FROM run WHERE id = ?",
    ),
    definition: db.prepare("SELECT 1 FROM definition WHERE id = ?"),
    tasksOf: db.prepare(`SELECT ${taskColumns} FROM task WHERE id > ? AND id < ? ORDER BY id LIMIT ?`),
    places: db.prepare("SELECT id, run_id FROM task WHERE id > ? ORDER BY id LIMIT ?"),
    task: db.prepare(`SELECT ${taskColumns} FROM task WHERE id = ?`),
    attempts: db.prepare(
      "SELECT attempt, grant_count, holder, claimed_at, ended_at, closed_by, state FROM attempt WHERE task_id = ? ORDER BY grant_count, attempt",
    ),
    children: db.prepare(
      "SELECT id, state, parent_task_id, parent_attempt FROM run WHERE parent_task_id = ? AND parent_attempt >= ? ORDER BY parent_attempt",
    ),
    parts: db.prepare(
      "SELECT life, count(*) AS count, min(sequence) AS first, max(sequence) AS last, max(grant_count) AS grant_max FROM part WHERE task_id = ? GROUP BY life",
    ),
    endTasks: db.prepare("SELECT body FROM message WHERE instr(body, ?) > 0 AND body ->> 'kind' = 'end-tasks' AND body ->> 'runId' = ?"),
    messages: db.prepare(
      "SELECT body FROM message WHERE (instr(body, ?) > 0 OR instr(body, ?) > 0) AND body ->> 'kind' <> 'end-tasks' ORDER BY id LIMIT ?",
    ),
  };
}

/** A message belongs to the run that left it, to the run that it is for, and to the parent whose task it names. */
function isAbout(message: Message, runId: string, parentTaskId: string | null): boolean {
  if (message.kind === "start-run") return message.from === runId || isTaskOf(message.parentTaskId, runId);
  if (message.kind === "go-on" || message.kind === "end-tasks" || message.kind === "forget-tasks") return message.runId === runId;
  const taskId = message.kind === "cancel-child" ? message.parentTaskId : message.taskId;
  return taskId === parentTaskId || isTaskOf(taskId, runId);
}

function isTaskOf(taskId: string | null, runId: string): boolean {
  if (taskId === null || !taskId.startsWith(`${runId}.`)) return false;
  return taskId === taskIdOf(runId, Number(taskId.slice(runId.length + 1)));
}

function attemptOf(row: SqlRow): AttemptHistory {
  return {
    attempt: row.attempt as number,
    grant: row.grant_count as number,
    holder: row.holder as string | null,
    claimedAt: row.claimed_at as number | null,
    endedAt: row.ended_at as number,
    closedBy: row.closed_by as Verb,
    state: row.state as TaskState | null,
  };
}

function childOf(row: SqlRow): ChildHistory {
  return {
    taskId: row.parent_task_id as string,
    attempt: row.parent_attempt as number,
    runId: row.id as string,
    state: row.state as RunState,
  };
}

function partsOf(row: SqlRow): PartsHistory {
  return {
    life: row.life as number,
    count: row.count as number,
    first: row.first as number,
    last: row.last as number,
    grantMax: row.grant_max as number,
  };
}
