// Runs on SQLite: start, tell, and what a settled task means for its run. The decider is called in the middle of a group commit,
// with the rows it asks for, and its changes become part of the same transaction.

import { freshTask } from "../../board/fresh-task.ts";
import type { EndState, Task } from "../../board/task.ts";
import type { Clock } from "../../clock.ts";
import { LongshoreError } from "../../errors.ts";
import type { Json } from "../../json.ts";
import type { Change, Frontier, Need, RunEvent } from "../../run/decide.ts";
import type { Definition } from "../../run/dialect.ts";
import type { Plan } from "../../run/plan.ts";
import type { Closure, NextTry } from "../../run/retry.ts";
import { isRunOpen, type Join, type Message, type Run, type StoredMessage, taskIdOf } from "../../run/run.ts";
import type { Brain, NewRun, RunStore } from "../../run/store.ts";
import { type Follower, runDeadlinePrefix, type SqliteBoard } from "./board.ts";
import type { GroupCommit } from "./commit.ts";
import { Definitions } from "./definitions.ts";
import type { Database } from "./driver.ts";
import { Additions, type Rows } from "./rows.ts";
import { joinKey, joinRows, runRows } from "./run-rows.ts";
import { taskColumns, taskOf } from "./task-rows.ts";

/** How long a lane counts as polled after a claim asked for it. */
const polledMs = 60_000;

/** What decide's `now` and `random` are added to. */
type Happening = RunEvent extends infer E ? (E extends RunEvent ? Omit<E, "now" | "random"> : never) : never;

export interface SqliteRunsOptions {
  db: Database;
  commit: GroupCommit;
  clock: Clock;
  random: () => number;
  brain: Brain;
  board: SqliteBoard;
  changed: (run: Run) => void;
  deadline: (id: string, at: number | null) => void;
  /** There are messages to carry out. */
  left: () => void;
}

export class SqliteRuns implements RunStore, Follower {
  readonly runs: Rows<Run>;
  readonly definitions: Definitions;
  readonly #options: SqliteRunsOptions;
  readonly #joins: Rows<Join>;
  readonly #messages: Additions<{ id: number; message: Message }>;
  readonly #keys: Additions<{ workflow: string; key: string; runId: string }>;
  readonly #doneMessages: Additions<number>;
  #messageId: number;

  constructor(options: SqliteRunsOptions) {
    const { db, commit } = options;
    this.#options = options;
    this.runs = runRows(db, commit, (run) => {
      options.deadline(runDeadlinePrefix + run.id, run.endedAt === null ? run.endBy : null);
      options.changed(run);
    });
    this.definitions = new Definitions(db, commit, options.clock, options.brain);
    this.#joins = joinRows(db, commit);
    const insertMessage = db.prepare("INSERT INTO message (id, body) VALUES (?, ?)");
    this.#messages = new Additions(commit, ({ id, message }) => insertMessage.run(id, JSON.stringify(message)));
    const insertKey = db.prepare("INSERT INTO run_key (workflow, key, run_id) VALUES (?, ?, ?)");
    this.#keys = new Additions(commit, ({ workflow, key, runId }) => insertKey.run(workflow, key, runId));
    const deleteMessage = db.prepare("DELETE FROM message WHERE id = ?");
    this.#doneMessages = new Additions(commit, (id) => deleteMessage.run(id));
    this.#messageId = Number(db.prepare("SELECT max(id) AS id FROM message").get()?.id ?? 0);
    options.board.follow(this);
  }

  define(definition: Omit<Definition, "version" | "createdAt">): Promise<Definition> {
    return this.#options.commit.run(() => this.definitions.keep(definition));
  }

  definition(name: string): Promise<Definition | undefined> {
    return Promise.resolve(this.definitions.newest(name) ?? undefined);
  }

  definitionById(id: string): Promise<Definition | undefined> {
    return Promise.resolve(this.definitions.byId(id) ?? undefined);
  }

  start(wanted: NewRun): Promise<{ run: Run; created: boolean }> {
    return this.#options.commit.run(() => this.#startNow(wanted));
  }

  run(id: string): Promise<Run | undefined> {
    return Promise.resolve(this.runs.get(id) ?? undefined);
  }

  tell(runId: string, event: { kind: "cancel" } | { kind: "timeout" } | { kind: "retry" }): Promise<Run | undefined> {
    return this.#options.commit.run(() => {
      const run = this.runs.get(runId);
      if (run === null) return undefined;
      if (isRunOpen(run.state) !== (event.kind === "retry")) this.#decide(run, event);
      return this.runs.get(runId) ?? undefined;
    });
  }

  messages(): Promise<StoredMessage[]> {
    const rows = this.#options.db.prepare("SELECT id, body FROM message ORDER BY id LIMIT 1000").all();
    return Promise.resolve(rows.map((row) => ({ id: row.id as number, message: JSON.parse(row.body as string) as Message })));
  }

  deliver(stored: StoredMessage, child: { id: string; definitionId: string } | null): Promise<void> {
    return this.#options.commit.run(() => {
      this.#doneMessages.add(stored.id);
      this.#carryOut(stored.message, child);
    });
  }

  // What the board tells, inside its own operations.

  done(task: Task): void {
    this.#tellAbout(task, { kind: "done", node: task.node });
  }

  closed(task: Task, closure: Closure): NextTry {
    const next = this.#tellAbout(task, { kind: "closed", node: task.node, closure, failures: task.failures, lost: task.lost });
    // The run has ended: what is still on the board may not be tried again.
    return next ?? { again: false, error: "the run has ended", failures: task.failures, lost: task.lost };
  }

  ended(task: Task, state: EndState, error: string | null): void {
    this.#tellAbout(task, { kind: "ended", node: task.node, state, error });
  }

  abandoned(task: Task): void {
    this.#leave({ kind: "cancel-child", parentTaskId: task.id, attempt: task.attempt });
  }

  expireRun(runId: string): void {
    const run = this.runs.get(runId);
    if (run === null || !isRunOpen(run.state) || run.endBy === null) return;
    if (run.endBy <= this.#options.clock.now()) this.#decide(run, { kind: "timeout" });
    else this.#options.commit.after(() => this.#options.deadline(runDeadlinePrefix + runId, run.endBy));
  }

  recover(): void {
    const rows = this.#options.db.prepare("SELECT id, end_by FROM run WHERE ended_at IS NULL AND end_by IS NOT NULL").iterate();
    for (const row of rows) this.#options.deadline(runDeadlinePrefix + (row.id as string), row.end_by as number);
  }

  #startNow(wanted: NewRun): { run: Run; created: boolean } {
    const earlier = this.#earlier(wanted);
    if (earlier !== null) return { run: earlier, created: false };
    const definition = this.definitions.byId(wanted.definitionId);
    if (definition === null) throw new LongshoreError("LONGSHORE_NOT_FOUND", `There is no definition ${wanted.definitionId}.`);
    const { timeoutMs } = this.definitions.plan(definition);
    const now = this.#options.clock.now();
    const run: Run = {
      id: wanted.id,
      workflow: wanted.workflow,
      definitionId: wanted.definitionId,
      state: "running",
      input: wanted.input,
      output: null,
      error: null,
      createdAt: now,
      endedAt: null,
      endBy: timeoutMs === null ? null : now + timeoutMs,
      left: 0,
      failed: 0,
      retries: 0,
      alias: wanted.alias ?? null,
      parentTaskId: wanted.parentTaskId ?? null,
      parentAttempt: wanted.parentAttempt ?? 0,
    };
    this.runs.put(run.id, run, true);
    if (wanted.key) this.#keys.add({ workflow: wanted.workflow, key: wanted.key, runId: run.id });
    this.#decide(run, { kind: "start" });
    return { run: this.runs.get(run.id) as Run, created: true };
  }

  /** The run that a key, a parent or `unlessRunning` points to, in this batch or before it. */
  #earlier(wanted: NewRun): Run | null {
    const { db } = this.#options;
    if (wanted.key) {
      const pending = this.#keys.pending().find((row) => row.workflow === wanted.workflow && row.key === wanted.key)?.runId;
      const id =
        pending ??
        (db.prepare("SELECT run_id FROM run_key WHERE workflow = ? AND key = ?").get(wanted.workflow, wanted.key)?.run_id as
          | string
          | undefined);
      if (id !== undefined) return this.runs.get(id);
    }
    if (wanted.parentTaskId) {
      const child = this.#childOf(wanted.parentTaskId, wanted.parentAttempt ?? 0);
      if (child !== null) return child;
    }
    return wanted.unlessRunning ? this.openRun(wanted.workflow) : null;
  }

  /** Inside an operation: a run of this workflow that is going on. */
  openRun(workflow: string): Run | null {
    const fresh = this.runs.pending().find((run) => run.workflow === workflow && isRunOpen(run.state));
    if (fresh !== undefined) return fresh;
    for (const row of this.#options.db.prepare("SELECT id FROM run WHERE workflow = ? AND ended_at IS NULL").all(workflow)) {
      const run = this.runs.get(row.id as string);
      if (run !== null && isRunOpen(run.state)) return run;
    }
    return null;
  }

  #carryOut(message: Message, child: { id: string; definitionId: string } | null): void {
    const { board } = this.#options;
    if (message.kind === "settle-task") {
      const task = board.tasks.get(message.taskId);
      // Whatever an earlier attempt's child comes to means nothing to this one.
      if (task?.state === "queued" && task.lane === null && task.attempt === message.attempt) this.#settleRecord(task, message);
    } else if (message.kind === "cancel-child") {
      const run = this.#childOf(message.parentTaskId, message.attempt);
      if (run !== null && isRunOpen(run.state)) this.#decide(run, { kind: "cancel" });
    } else this.#startChild(message, child);
  }

  #startChild(message: Message & { kind: "start-run" }, child: { id: string; definitionId: string } | null): void {
    const parent = this.#options.board.tasks.get(message.parentTaskId);
    if (parent?.state !== "queued") return;
    if (child === null) {
      this.#settleRecord(parent, { state: "failed", output: null, error: `there is no workflow ${message.workflow}` });
      return;
    }
    const { workflow, input, parentTaskId } = message;
    this.#startNow({ ...child, workflow, input, parentTaskId, parentAttempt: parent.attempt });
  }

  #childOf(parentTaskId: string, parentAttempt: number): Run | null {
    const child = this.#options.db.prepare("SELECT id FROM run WHERE parent_task_id = ? AND parent_attempt = ?");
    const row = child.get(parentTaskId, parentAttempt);
    return row === undefined ? null : this.runs.get(row.id as string);
  }

  #settleRecord(task: Task, how: { state: EndState; output: string | null; error: string | null }): void {
    const now = this.#options.clock.now();
    this.#options.board.tasks.put(task.id, { ...task, state: how.state, output: how.output, error: how.error, endedAt: now });
    this.#tellAbout(
      task,
      how.state === "done" ? { kind: "done", node: task.node } : { kind: "ended", node: task.node, state: how.state, error: how.error },
    );
  }

  #tellAbout(task: Task, happening: Happening): NextTry | null {
    const run = task.runId === null ? null : this.runs.get(task.runId);
    // A run that ended takes no more part; the task's own row still says what became of it.
    return run === null || !isRunOpen(run.state) ? null : this.#decide(run, happening);
  }

  #decide(run: Run, happening: Happening): NextTry | null {
    const definition = this.definitions.byId(run.definitionId);
    if (definition === null) throw new Error(`Run ${run.id} has no definition ${run.definitionId}.`);
    const plan = this.definitions.plan(definition);
    const event = { ...happening, now: this.#options.clock.now(), random: this.#options.random() } as RunEvent;
    const loaded = new Loaded(run);
    for (;;) {
      const decision = this.#options.brain.decide(plan, loaded, event);
      if ("changes" in decision) {
        // In a run that is tried again, a step that starts may have left a row in its earlier life.
        const about: About = { run, plan, now: event.now, anew: run.retries > 0 || event.kind === "retry" };
        for (const change of decision.changes) this.#apply(about, change);
        return decision.next;
      }
      if (!this.#load(loaded, decision.need)) throw new Error(`The decision about run ${run.id} asks again for rows that it has seen.`);
    }
  }

  /** False when everything had been loaded before: asking on would never end. */
  #load(loaded: Loaded, need: Need): boolean {
    const { id } = loaded.run;
    const before = loaded.size;
    for (const node of need.joins) loaded.joins.set(node, this.#joins.get(joinKey(id, node)));
    for (const node of need.outputs) {
      const output = this.#options.board.tasks.get(taskIdOf(id, node))?.output ?? null;
      loaded.outputs.set(node, output === null ? null : (JSON.parse(output) as Json));
    }
    if (need.states) loaded.all = new Map(this.records(id).map((task) => [task.node, task.state]));
    return loaded.size > before;
  }

  /** Inside an operation: every record of a run, as the batch has left it. */
  records(runId: string): Task[] {
    // '.' and '/' are neighbours, so this is the range of keys that begin with '<run id>.'.
    const rows = this.#options.db.prepare(`SELECT ${taskColumns} FROM task WHERE id > ? AND id < ?`).all(`${runId}.`, `${runId}/`);
    const records = new Map(rows.map((row) => [row.id as string, taskOf(row)]));
    for (const task of this.#options.board.tasks.pending()) if (task.runId === runId) records.set(task.id, task);
    return [...records.keys()].map((id) => this.#options.board.tasks.get(id)).filter((task) => task !== null);
  }

  #apply(about: About, change: Change): void {
    const { run } = about;
    if (change.kind === "post") this.#post(about, change);
    else if (change.kind === "record") this.#record(about, change);
    else if (change.kind === "join") this.#joins.put(joinKey(run.id, change.node), { runId: run.id, node: change.node, left: change.left });
    else if (change.kind === "run") this.runs.put(run.id, change.run);
    else if (change.kind === "message") this.#leave(change.message);
    else if (change.kind === "forget") this.#options.board.forget(taskIdOf(run.id, change.node));
    else for (const { id } of this.records(run.id)) this.#options.board.cancelOne(id);
  }

  #post({ run, plan, now, anew }: About, change: Change & { kind: "post" }): void {
    const node = plan.nodes[change.node];
    if (node === undefined) throw new Error(`The plan of run ${run.id} has no node ${change.node}.`);
    const { board } = this.#options;
    const base = {
      id: taskIdOf(run.id, change.node),
      runId: run.id,
      node: change.node,
      step: node.id,
      input: change.input,
      policy: null,
      ...node.timeouts,
    };
    if (node.kind === "run") return board.place(freshTask({ ...base, lanes: [] }, now, null), anew);
    const lane = board.lanes.choose(node.lanes, now - polledMs);
    board.place(freshTask({ ...base, lanes: node.lanes, priority: node.priority, limits: node.limits }, now, lane), anew);
  }

  #record({ run, plan, now, anew }: About, change: Change & { kind: "record" }): void {
    const base = { id: taskIdOf(run.id, change.node), runId: run.id, node: change.node, step: plan.nodes[change.node]?.id ?? "" };
    const task = freshTask({ ...base, lanes: [], input: "null", policy: null }, now, null);
    this.#options.board.place({ ...task, state: change.state, error: change.error, endedAt: now }, anew);
  }

  #leave(message: Message): void {
    this.#messages.add({ id: ++this.#messageId, message });
    this.#options.commit.after(this.#options.left);
  }
}

/** What every change of one decision has in common. */
interface About {
  run: Run;
  plan: Plan;
  now: number;
  anew: boolean;
}

/** The rows a decision has seen so far. */
class Loaded implements Frontier {
  readonly run: Run;
  readonly joins = new Map<number, Join | null>();
  readonly outputs = new Map<number, Json>();
  all: ReadonlyMap<number, string> | undefined;

  constructor(run: Run) {
    this.run = run;
  }

  join(node: number): Join | null | undefined {
    return this.joins.get(node);
  }

  output(node: number): Json | undefined {
    return this.outputs.get(node);
  }

  states(): ReadonlyMap<number, string> | undefined {
    return this.all;
  }

  get size(): number {
    return this.joins.size + this.outputs.size + (this.all === undefined ? 0 : 1);
  }
}
