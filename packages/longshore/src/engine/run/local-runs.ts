// Runs, in the process that owns the data: starts, orders such as pause, and the effect of an ended task on its run. The decider is called
// inside a group commit, and its changes are written in the same transaction.

import type { Clock } from "../../core/clock.ts";
import { LongshoreError } from "../../core/errors.ts";
import type { EventTrigger } from "../../core/event-trigger.ts";
import type { Json } from "../../core/json/json.ts";
import { parseExact } from "../../core/json/json-exact.ts";
import { checkName } from "../../core/names.ts";
import { inTurns } from "../../core/slices/slice-work.ts";
import type { Slices } from "../../core/slices/slices.ts";
import { readReport } from "../../core/turn.ts";
import type { Audit } from "../audit/local-audit.ts";
import type { LocalBoard } from "../board/local-board.ts";
import { FarDeadlines, type FarSource } from "../board/local-deadlines.ts";
import { runDeadlinePrefix } from "../board/local-expiry.ts";
import type { Follower, Turned } from "../board/local-follower.ts";
import type { EndState, TaskRow } from "../board/task.ts";
import type { Rows } from "../cached-rows.ts";
import type { GroupCommit } from "../commit.ts";
import { LocalTriggers } from "../event/local-triggers.ts";
import { type Once, unmarked } from "../request-marks.ts";
import type { RowStore } from "../rows.ts";
import { LocalSignals } from "../signal/local-signals.ts";
import { joinRows, runRows } from "../tables/run.ts";
import type { ReadTx, Tx } from "../tx.ts";
import { Decisions, type Happening } from "./decisions.ts";
import { Definitions, planned } from "./definitions.ts";
import type { Definition, NewDefinition } from "./dialect.ts";
import { newsText, turnAgain } from "./driven-state.ts";
import { type Foreseen, foreseenInSlices } from "./foresight.ts";
import type { LocalDocuments } from "./local-documents.ts";
import { hasten } from "./local-hasten.ts";
import { OrderNotes } from "./local-notes.ts";
import { LocalStarts } from "./local-starts.ts";
import { Messages } from "./messages.ts";
import { appliesTo, begunBy } from "./orders.ts";
import type { Plan, RetryPolicy } from "./plan.ts";
import { type Closure, errorOf, type NextTry } from "./retry.ts";
import { hasHappenings, isRunOpen, type Message, type Run, type StoredMessage, withHappening } from "./run.ts";
import type { Brain, Life, NewChild, NewRun, Order, RunStore, Started } from "./store.ts";

export interface LocalRunsDeps {
  store: RowStore;
  commit: GroupCommit;
  /** Default: no request is tracked. */
  performed?: Once;
  /** Default: nothing is noted. */
  audit?: Audit;
  clock: Clock;
  random: () => number;
  brain: Brain;
  board: LocalBoard;
  documents: LocalDocuments;
  changed: (run: Run, before: Run | undefined) => void;
  /** Called with a run as it was before it began another life. */
  revived?: ((run: Run) => void) | undefined;
  deadline: (id: string, at: number | null) => void;
  /** Called when there are messages to carry out. */
  left: () => void;
  /** Maximum number of open runs below one root. */
  familyRunsMax?: number;
  /** Limits the work of readers in one turn of the event loop. */
  slices?: Slices;
  /** Tasks that one transaction cancels, and records that are read at once; replaced in tests. */
  sliceTasks?: number;
}

const runDeadline = { table: "run", idOf: (id: string) => runDeadlinePrefix + id } as const;
const runDeadlines: readonly FarSource[] = [
  { ...runDeadline, column: "start_at", without: "ended_at", having: "start_at" },
  { ...runDeadline, column: "end_by", without: "ended_at", having: "end_by" },
];

export class LocalRuns implements RunStore, Follower {
  readonly runs: Rows<Run>;
  readonly definitions: Definitions;
  readonly #options: LocalRunsDeps;
  readonly decisions: Decisions;
  /** Which workflows an event starts. */
  readonly triggers: LocalTriggers;
  /** Deadlines of runs. */
  readonly far: FarDeadlines;
  readonly signals: LocalSignals;
  readonly #messages: Messages;
  readonly #starts: LocalStarts;
  readonly #notes: OrderNotes;

  constructor(options: LocalRunsDeps) {
    const { store, commit, clock, random, brain, board, documents, left, slices, sliceTasks } = options;
    const limits = { ...(slices === undefined ? {} : { slices }), ...(sliceTasks === undefined ? {} : { sliceTasks }) };
    this.#options = options;
    // Created before the runs: commits write tables in the order of their creation, and a run must come after its definition.
    this.definitions = new Definitions(store, commit, clock, brain);
    this.far = new FarDeadlines({ name: "run", store, commit, clock, sources: runDeadlines, deadline: options.deadline });
    this.runs = runRows(store, commit, (run, before) => {
      this.far.changed(runDeadlinePrefix + run.id, run.endedAt === null ? (run.startAt ?? run.endBy) : null);
      this.#starts.changed(run, before);
      options.changed(run, before);
    });
    this.triggers = new LocalTriggers(documents);
    const leave = (tx: Tx, message: Message) => this.#messages.leave(tx, message);
    this.signals = new LocalSignals({
      ...{
        store,
        commit,
        performed: options.performed,
        audit: options.audit,
        clock,
        board,
        runs: this.runs,
        leave,
        slices: options.slices,
      },
      planOf: (tx, run) => this.decisions.planOf(tx, run),
    });
    const { signals } = this;
    this.decisions = new Decisions({
      ...{ store, commit, clock, random, brain, board, documents, leave, signals, ...limits },
      ...{ definitions: this.definitions, runs: this.runs, joins: joinRows(store, commit), revived: options.revived },
      counted: (tx, before) => this.#starts.counted(tx, before),
    });
    this.#messages = new Messages({
      ...{ store, commit, board, left, signals, runs: this.runs, decisions: this.decisions, ...limits },
      start: (tx, child) => this.startNow(tx, child),
      advance: (tx, gate) => this.#starts.gates.advance(tx, gate),
      tell: (tx, task, happening) => this.#tellAbout(tx, task, happening),
    });
    this.#starts = new LocalStarts({
      ...{ store, commit, clock, familyRunsMax: options.familyRunsMax, tasks: board.tasks, remains: board.remains },
      ...{ runs: this.runs, definitions: this.definitions, decisions: this.decisions, messages: this.#messages },
      cancel: (tx, runId, reason) => this.cancelNow(tx, runId, reason),
    });
    this.#notes = new OrderNotes(options.audit, (tx, run) => this.decisions.planOf(tx, run));
    board.follow(this);
  }

  async define(wanted: NewDefinition, plan?: Plan, events: readonly EventTrigger[] | undefined = plan?.events): Promise<Definition> {
    const definition = await this.#options.commit.run((tx) => {
      const isThere = this.definitions.byId(tx, wanted.id) !== null;
      const before = this.definitions.newest(tx, wanted.name);
      const kept = this.definitions.keep(tx, wanted);
      if (!isThere && kept.id === wanted.id) this.#notes.defined(tx, before, kept);
      const isNewest = kept.id === this.definitions.newest(tx, wanted.name)?.id;
      if (isNewest && (plan !== undefined || events !== undefined)) this.triggers.declare(tx, wanted.name, events ?? []);
      return kept;
    });
    const isSame = definition.dialect === wanted.dialect && definition.source === wanted.source;
    if (plan !== undefined && isSame) this.definitions.learnPlan(definition, plan);
    return definition;
  }

  definition(name: string): Promise<Definition | undefined> {
    return this.#options.commit.read((tx) => planned(this.definitions, this.definitions.newest(tx, name)));
  }

  definitionById(id: string): Promise<Definition | undefined> {
    return this.#options.commit.read((tx) => planned(this.definitions, this.definitions.byId(tx, id)));
  }

  start(wanted: NewRun): Promise<Started> {
    return this.#options.commit.run((tx) => {
      checkName(wanted.id, "id");
      checkName(wanted.workflow, "workflow");
      if (wanted.key) checkName(wanted.key, "key");
      if (wanted.alias) checkName(wanted.alias, "alias");
      const started = this.startNow(tx, wanted);
      if (started.created) this.#notes.started(tx, wanted);
      return started;
    });
  }

  run(id: string): Promise<Run | undefined> {
    return this.#options.commit.read((tx) => this.runs.get(tx, id) ?? undefined);
  }

  tell(runId: string, order: Order): Promise<Run | undefined> {
    const after = (tx: ReadTx) => this.runs.get(tx, runId) ?? undefined;
    const obey = (tx: Tx) => {
      const run = this.runs.get(tx, runId);
      if (run === null) return undefined;
      if (!appliesTo(run, order) || ("fence" in order && order.fence?.some((life) => this.#isOver(tx, life)))) return after(tx);
      this.#obey(tx, run, order);
      const obeyed = after(tx);
      this.#notes.order(tx, run, order, obeyed);
      return obeyed;
    };
    const { commit, performed = unmarked(commit) } = this.#options;
    return performed.once(`${order.kind} ${runId}`, obey, after);
  }

  /**
   * Reads in an operation, although it changes nothing. An operation can be postponed until a large plan is compiled and all records of a
   * large run are read.
   */
  async foresee(runId: string, order: Order): Promise<Foreseen | null | undefined> {
    const considered = await this.#options.commit.run((tx) => {
      const run = this.runs.get(tx, runId);
      if (run === null) return undefined;
      if (!appliesTo(run, order)) return null;
      const happening = order.kind === "restart" ? ({ kind: "restart" } as const) : order;
      return this.decisions.consider(tx, begunBy(run, order, this.#options.clock.now()), happening);
    });
    return considered && inTurns(foreseenInSlices(considered), this.#options.slices);
  }

  hasten(runId: string): Promise<boolean> {
    const { commit, performed = unmarked(commit) } = this.#options;
    const slice = (tx: Tx, after?: string) => {
      const run = this.runs.get(tx, runId);
      return run === null || !isRunOpen(run.state) ? undefined : this.decisions.openTasks.hasten(tx, runId, after);
    };
    return hasten(runId, { commit, performed, slice, note: (tx) => this.#notes.hastened(tx, runId) });
  }

  messages(after?: number): Promise<StoredMessage[]> {
    return this.#options.commit.read((tx) => this.#messages.stored(tx, after));
  }

  newestCancel(): number {
    return this.#messages.newestCancel;
  }

  deliver(stored: StoredMessage, child: NewChild | null): Promise<void> {
    return this.#options.commit.run((tx) => this.#messages.deliver(tx, stored, child));
  }

  // Called by the board, inside its own operations.

  done(tx: Tx, task: TaskRow): void {
    this.#tellAbout(tx, task, { kind: "done", node: task.node, chars: task.output?.length ?? 0 });
  }

  closed(tx: Tx, task: TaskRow, closure: Closure): NextTry {
    const { node, failures, lost, attempt, postedAt, output } = task;
    const policy = task.policy === null ? undefined : (JSON.parse(task.policy) as RetryPolicy);
    const next = this.#tellAbout(tx, task, { kind: "closed", node, closure, failures, lost, attempt, postedAt, output, policy });
    // The run has ended, or is paused: no retry for now.
    return next ?? { again: false, error: errorOf(closure), failures, lost };
  }

  ended(tx: Tx, task: TaskRow, state: EndState, error: string | null): void {
    this.#tellAbout(tx, task, { kind: "ended", node: task.node, state, error });
  }

  turned(tx: Tx, task: TaskRow, text: string, isOver: boolean): Turned {
    try {
      const report = readReport(parseExact(text) as Json);
      return { refused: null, news: this.#report(tx, task, { kind: "turn", node: task.node, report, isOver }) };
    } catch (error) {
      if (error instanceof LongshoreError && error.code === "LONGSHORE_BAD_OUTPUT") return { refused: error.message, news: null };
      throw error;
    }
  }

  turnAgain(tx: Tx, task: TaskRow): string {
    const run = task.runId === null ? null : this.runs.get(tx, task.runId);
    return run === null || task.state === "queued" ? task.input : turnAgain(run, task.input);
  }

  #report(tx: Tx, task: TaskRow, turn: Happening & { kind: "turn" }): string | null {
    const run = task.runId === null ? null : this.runs.get(tx, task.runId);
    if (run === null || !isRunOpen(run.state)) return null;
    if (isAtRest(run)) return this.decisions.report(tx, run, turn);
    this.runs.put(tx, run.id, { ...run, backlog: withHappening(run.backlog, { ...turn, isAnswered: true }) });
    const { received } = turn.report;
    return received === undefined || turn.isOver ? null : newsText({ upTo: received, now: this.#options.clock.now(), stop: true });
  }

  abandoned(tx: Tx, task: TaskRow): void {
    this.#messages.abandoned(tx, task);
  }

  takesReports(tx: Tx, { runId }: TaskRow): boolean {
    const run = runId === null ? null : this.runs.get(tx, runId);
    return run !== null && this.decisions.planOf(tx, run).waitsTakeReports;
  }

  waitsAgain(tx: Tx, { runId }: TaskRow): void {
    if (runId !== null) this.signals.postedLater(tx, runId);
  }

  /** Called when a step has produced a part and its row does not record an earlier one. Returns true when its run waits for that. */
  firstPart(tx: Tx, task: TaskRow): boolean {
    const run = task.runId === null ? null : this.runs.get(tx, task.runId);
    if (run === null || !isRunOpen(run.state) || !this.decisions.planOf(tx, run).onFirstPart.has(task.node)) return false;
    this.#tellAbout(tx, task, { kind: "part", node: task.node });
    return true;
  }

  expireRun(tx: Tx, runId: string): void {
    const run = this.runs.get(tx, runId);
    const dueAt = run?.startAt ?? run?.endBy ?? null;
    if (run === null || !isRunOpen(run.state) || dueAt === null) return;
    if (dueAt > this.#options.clock.now()) tx.after(() => this.#options.deadline(runDeadlinePrefix + runId, dueAt));
    else if (run.startAt === null) this.decisions.decide(tx, run, { kind: "timeout" });
    // A paused run begins when it is resumed: that commit sets its deadline again.
    else if (run.state === "running") this.#starts.begin(tx, run);
  }

  /** Must be called before the board recovers, which has to know which tasks have ended with their run. */
  recoverMessages(): Promise<void> {
    return this.#messages.recover();
  }

  recover(): Promise<void> {
    return this.#starts.recover();
  }

  /** Starts a run in the operation of the caller, which has checked the texts of `wanted`. */
  startNow(tx: Tx, wanted: NewRun): Started {
    return this.#starts.start(tx, wanted);
  }

  /** Cancels a run in the operation of the caller, unless it has ended. */
  cancelNow(tx: Tx, runId: string, error: string): void {
    const run = this.runs.get(tx, runId);
    if (run !== null && isRunOpen(run.state)) this.decisions.decide(tx, run, { kind: "cancel", error });
  }

  /** Returns whether the run has begun another life. False for a run that was removed. */
  #isOver(tx: Tx, { runId, life }: Life): boolean {
    const run = this.runs.get(tx, runId);
    return run !== null && run.retries !== life;
  }

  #obey(tx: Tx, run: Run, order: Order): void {
    if (order.kind === "restart") return this.#restart(tx, run, order);
    if (order.kind === "rerun") return this.#rerun(tx, run, order);
    const begun = isRunOpen(run.state) ? run : this.#starts.again(tx, run);
    if (begun !== run) this.runs.put(tx, run.id, begun, true);
    this.decisions.decide(tx, begun, order);
    if (order.kind === "resume" && run.state === "paused") this.#messages.resumed(tx, run);
  }

  #restart(tx: Tx, run: Run, order: Order & { kind: "restart" }): void {
    const begun = this.#starts.again(tx, begunBy(run, order, this.#options.clock.now()));
    this.runs.put(tx, run.id, begun, true);
    this.decisions.decide(tx, begun, { kind: "restart" });
  }

  #rerun(tx: Tx, run: Run, order: Order & { kind: "rerun" }): void {
    const { runInput: _input, settings: _settings, alias: _alias, ...rest } = order;
    const begun = this.#starts.again(tx, begunBy(run, order, this.#options.clock.now()));
    if (begun !== run) this.runs.put(tx, run.id, begun, true);
    this.decisions.decide(tx, begun, rest);
  }

  #tellAbout(tx: Tx, task: TaskRow, what: Happening): NextTry | null {
    const happening = task.streamed ? { ...what, streamed: true } : what;
    const run = task.runId === null ? null : this.runs.get(tx, task.runId);
    // A run that has ended accepts no more changes; the task's own row still records its end.
    if (run === null || !isRunOpen(run.state)) return null;
    // Queued after the events that the run has not handled since its pause. One of them may be the first part of the same step, or the
    // report that ended a join.
    if (isAtRest(run)) return this.decisions.decide(tx, run, happening);
    this.runs.put(tx, run.id, { ...run, backlog: withHappening(run.backlog, happening) });
    return null;
  }
}

/** Whether the run has handled all events before the next one. */
function isAtRest(run: Run): boolean {
  return run.state !== "paused" && !hasHappenings(run);
}
