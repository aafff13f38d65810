// Runs on SQLite: start, tell, and what a settled task means for its run. The decider is called in the middle of a group commit,
// with the rows it asks for, and its changes become part of the same transaction.

import type { EndState, Task } from "../../board/task.ts";
import type { Clock } from "../../clock.ts";
import { LongshoreError } from "../../errors.ts";
import { checkName } from "../../names.ts";
import type { Definition } from "../../run/dialect.ts";
import { Families } from "../../run/families.ts";
import { freshRun } from "../../run/fresh-run.ts";
import type { RetryPolicy } from "../../run/plan.ts";
import type { Closure, NextTry } from "../../run/retry.ts";
import { isRunOpen, type Run, type StoredMessage, taskIdOf } from "../../run/run.ts";
import type { Brain, NewChild, NewRun, Order, RunStore } from "../../run/store.ts";
import { type Follower, runDeadlinePrefix, type SqliteBoard } from "./board.ts";
import type { GroupCommit } from "./commit.ts";
import { Decisions, forEnded, type Happening } from "./decisions.ts";
import { Definitions } from "./definitions.ts";
import type { SqliteDocuments } from "./documents.ts";
import type { Database } from "./driver.ts";
import { Messages } from "./messages.ts";
import { Additions, type Rows } from "./rows.ts";
import { joinRows, runRows } from "./run-rows.ts";

export interface SqliteRunsOptions {
  db: Database;
  commit: GroupCommit;
  clock: Clock;
  random: () => number;
  brain: Brain;
  board: SqliteBoard;
  documents: SqliteDocuments;
  changed: (run: Run) => void;
  deadline: (id: string, at: number | null) => void;
  /** There are messages to carry out. */
  left: () => void;
  /** Open runs below one root. */
  familyRunsMax?: number;
}

export class SqliteRuns implements RunStore, Follower {
  readonly runs: Rows<Run>;
  readonly definitions: Definitions;
  readonly #options: SqliteRunsOptions;
  readonly #sql: ReturnType<typeof prepareStatements>;
  readonly decisions: Decisions;
  readonly #messages: Messages;
  readonly #families: Families;
  readonly #keys: Additions<{ workflow: string; key: string; runId: string }>;

  constructor(options: SqliteRunsOptions) {
    const { db, commit } = options;
    this.#options = options;
    this.#sql = prepareStatements(db);
    this.runs = runRows(db, commit, (run) => {
      options.deadline(runDeadlinePrefix + run.id, run.endedAt === null ? run.endBy : null);
      this.#families.changed(run);
      options.changed(run);
    });
    this.#families = new Families(options.familyRunsMax);
    this.definitions = new Definitions(db, commit, options.clock, options.brain);
    const insertKey = db.prepare("INSERT INTO run_key (workflow, key, run_id) VALUES (?, ?, ?)");
    this.#keys = new Additions(commit, ({ workflow, key, runId }) => insertKey.run(workflow, key, runId));
    this.decisions = new Decisions({
      ...options,
      ...{ definitions: this.definitions, runs: this.runs, joins: joinRows(db, commit) },
      leave: (message) => this.#messages.leave(message),
    });
    this.#messages = new Messages({
      ...options,
      ...{ runs: this.runs, decisions: this.decisions },
      start: (child) => this.#startNow(child),
      tell: (task, happening) => this.#tellAbout(task, happening),
    });
    options.board.follow(this);
  }

  define(definition: Omit<Definition, "version" | "createdAt">): Promise<Definition> {
    return this.#options.commit.run(() => this.definitions.keep(definition));
  }

  definition(name: string): Promise<Definition | undefined> {
    return this.definitions.withPlan(this.definitions.newest(name));
  }

  definitionById(id: string): Promise<Definition | undefined> {
    return this.definitions.withPlan(this.definitions.byId(id));
  }

  start(wanted: NewRun): Promise<{ run: Run; created: boolean }> {
    return this.#options.commit.run(() => {
      checkName(wanted.id, "id");
      checkName(wanted.workflow, "workflow");
      if (wanted.key) checkName(wanted.key, "key");
      if (wanted.alias) checkName(wanted.alias, "alias");
      return this.#startNow(wanted);
    });
  }

  run(id: string): Promise<Run | undefined> {
    return Promise.resolve(this.runs.get(id) ?? undefined);
  }

  tell(runId: string, order: Order): Promise<Run | undefined> {
    return this.#options.commit.run(() => {
      const run = this.runs.get(runId);
      if (run === null) return undefined;
      if (isRunOpen(run.state) !== forEnded.has(order.kind)) this.#obey(run, order);
      return this.runs.get(runId) ?? undefined;
    });
  }

  hasten(runId: string): Promise<boolean> {
    return this.#options.commit.run(() => {
      const run = this.runs.get(runId);
      if (run === null || !isRunOpen(run.state)) return false;
      for (const { id } of this.decisions.records(runId)) this.#options.board.hasten(id);
      return true;
    });
  }

  messages(): Promise<StoredMessage[]> {
    return Promise.resolve(this.#messages.stored());
  }

  deliver(stored: StoredMessage, child: NewChild | null): Promise<void> {
    return this.#options.commit.run(() => this.#messages.deliver(stored, child));
  }

  // What the board tells, inside its own operations.

  done(task: Task): void {
    this.#tellAbout(task, { kind: "done", node: task.node });
  }

  closed(task: Task, closure: Closure): NextTry {
    const { node, failures, lost, attempt, postedAt, output } = task;
    const policy = task.policy === null ? undefined : (JSON.parse(task.policy) as RetryPolicy);
    const next = this.#tellAbout(task, { kind: "closed", node, closure, failures, lost, attempt, postedAt, output, policy });
    // The run has ended, or is paused: for now it may not be tried again.
    return next ?? { again: false, error: errorOf(closure), failures, lost };
  }

  ended(task: Task, state: EndState, error: string | null): void {
    this.#tellAbout(task, { kind: "ended", node: task.node, state, error });
  }

  abandoned(task: Task): void {
    this.#messages.abandoned(task);
  }

  /** Inside an operation: a step has given a part, and its row does not say that it has before. True when its run waits for that. */
  firstPart(task: Task): boolean {
    const run = task.runId === null ? null : this.runs.get(task.runId);
    if (run === null || !isRunOpen(run.state) || !this.decisions.planOf(run).onFirstPart.has(task.node)) return false;
    this.#tellAbout(task, { kind: "part", node: task.node });
    return true;
  }

  expireRun(runId: string): void {
    const run = this.runs.get(runId);
    if (run === null || !isRunOpen(run.state) || run.endBy === null) return;
    if (run.endBy <= this.#options.clock.now()) this.decisions.decide(run, { kind: "timeout" });
    else this.#options.commit.after(() => this.#options.deadline(runDeadlinePrefix + runId, run.endBy));
  }

  recover(): void {
    const rows = this.#options.db.prepare("SELECT id, end_by FROM run WHERE ended_at IS NULL AND end_by IS NOT NULL").iterate();
    for (const row of rows) this.#options.deadline(runDeadlinePrefix + (row.id as string), row.end_by as number);
    const families = this.#options.db.prepare("SELECT id, root_id FROM run WHERE ended_at IS NULL AND root_id IS NOT NULL").iterate();
    for (const row of families) this.#families.changed({ id: row.id as string, rootId: row.root_id as string, endedAt: null });
  }

  #startNow(wanted: NewRun): { run: Run; created: boolean } {
    const earlier = this.#earlier(wanted);
    if (earlier !== null) return { run: earlier, created: false };
    const definition = this.definitions.byId(wanted.definitionId);
    if (definition === null) throw new LongshoreError("LONGSHORE_NOT_FOUND", `There is no definition ${wanted.definitionId}.`);
    const { timeoutMs } = this.definitions.plan(definition);
    const now = this.#options.clock.now();
    const rootId = this.#rootOf(wanted);
    if (rootId !== null) this.#families.admit(rootId);
    const run = freshRun({ ...wanted, rootId }, now, timeoutMs);
    this.runs.put(run.id, run, true);
    if (wanted.key) this.#keys.add({ workflow: wanted.workflow, key: wanted.key, runId: run.id });
    this.decisions.decide(run, { kind: "start" });
    return { run: this.runs.get(run.id) as Run, created: true };
  }

  #rootOf({ rootId, parentTaskId }: NewRun): string | null {
    if (rootId !== undefined || parentTaskId == null) return rootId ?? null;
    const parentId = this.#options.board.tasks.get(parentTaskId)?.runId ?? null;
    return parentId === null ? null : (this.runs.get(parentId)?.rootId ?? parentId);
  }

  /** The run that an id, a key, a parent or `unlessRunning` points to, in this batch or before it. */
  #earlier(wanted: NewRun): Run | null {
    const same = wanted.unlessThere ? this.runs.get(wanted.id) : null;
    if (same !== null) return same;
    if (wanted.key) {
      const pending = this.#keys.pending().find((row) => row.workflow === wanted.workflow && row.key === wanted.key)?.runId;
      const id = pending ?? (this.#sql.keyed.get(wanted.workflow, wanted.key)?.run_id as string | undefined);
      if (id !== undefined) return this.runs.get(id);
    }
    if (wanted.parentTaskId) {
      const child = this.#messages.childOf(wanted.parentTaskId, wanted.parentAttempt ?? 0);
      if (child !== null) return child;
    }
    return wanted.unlessRunning ? this.openRun(wanted.workflow) : null;
  }

  /** Inside an operation: a run of this workflow that is going on. */
  openRun(workflow: string): Run | null {
    const fresh = this.runs.pending().find((run) => run.workflow === workflow && isRunOpen(run.state));
    if (fresh !== undefined) return fresh;
    for (const row of this.#sql.open.iterate(workflow)) {
      const run = this.runs.get(row.id as string);
      if (run !== null && isRunOpen(run.state)) return run;
    }
    return null;
  }

  #obey(run: Run, order: Order): void {
    if (order.kind === "restart") return this.#restart(run, order);
    this.decisions.decide(run, order);
    if (order.kind !== "resume" || run.backlog === null) return;
    for (const happening of JSON.parse(run.backlog) as Happening[]) {
      const now = this.runs.get(run.id);
      if (now === null || !isRunOpen(now.state)) return;
      const next = this.decisions.decide(now, happening);
      if (next?.again && "node" in happening) this.#options.board.tryAgain(taskIdOf(run.id, happening.node), next);
    }
  }

  #restart(run: Run, order: Order & { kind: "restart" }): void {
    const { definitionId = run.definitionId, input = run.input, settings = run.settings, alias = run.alias, variables = null } = order;
    const begun: Run = { ...run, definitionId, input, settings, alias, variables, createdAt: this.#options.clock.now() };
    this.runs.put(run.id, begun, true);
    this.decisions.decide(begun, { kind: "restart" });
  }

  #tellAbout(task: Task, what: Happening): NextTry | null {
    const happening = task.streamed ? { ...what, streamed: true } : what;
    const run = task.runId === null ? null : this.runs.get(task.runId);
    // A run that ended takes no more part; the task's own row still says what became of it.
    if (run === null || !isRunOpen(run.state)) return null;
    if (run.state !== "paused") return this.decisions.decide(run, happening);
    const backlog = run.backlog === null ? [] : (JSON.parse(run.backlog) as Happening[]);
    this.runs.put(run.id, { ...run, backlog: JSON.stringify([...backlog, happening]) });
    return null;
  }
}

/** Prepared once: preparing takes longer than most of them take to run. */
function prepareStatements(db: Database) {
  return {
    keyed: db.prepare("SELECT run_id FROM run_key WHERE workflow = ? AND key = ?"),
    open: db.prepare("SELECT id FROM run WHERE workflow = ? AND ended_at IS NULL"),
  };
}

function errorOf(closure: Closure): string {
  if (closure.kind === "failed") return closure.error;
  return closure.kind === "lost" ? "lease expired" : `timed out (${closure.which})`;
}
