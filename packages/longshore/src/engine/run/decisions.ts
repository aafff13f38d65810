// Decisions about runs: the decider gets the rows it needs inside a group commit, and its changes are written in the same transaction.

import type { Clock } from "../../core/clock.ts";
import type { Json } from "../../core/json/json.ts";
import { parseExact } from "../../core/json/json-exact.ts";
import { Missing } from "../../core/missing.ts";
import type { Slices } from "../../core/slices/slices.ts";
import type { LocalBoard } from "../board/local-board.ts";
import { newTask } from "../board/new-task.ts";
import { driverCommand } from "../board/task.ts";
import type { Rows } from "../cached-rows.ts";
import type { GroupCommit } from "../commit.ts";
import { Postponed } from "../commit-errors.ts";
import { type RowStore, readAll } from "../rows.ts";
import type { LocalSignals } from "../signal/local-signals.ts";
import { joinKey } from "../tables/run.ts";
import { taskChars } from "../tables/task.ts";
import type { ReadTx, Tx } from "../tx.ts";
import type { Change, Decision, Need, RunEvent } from "./decide.ts";
import type { Definitions } from "./definitions.ts";
import { driverNode, journalKey, nextJournal } from "./driven-journal.ts";
import type { Considered } from "./foresight.ts";
import { documentKey, Loaded } from "./loaded-rows.ts";
import type { LocalDocuments } from "./local-documents.ts";
import { LongWorks } from "./local-works.ts";
import { OpenTasks } from "./open-tasks.ts";
import { forEnded } from "./orders.ts";
import type { Plan } from "./plan.ts";
import { Records } from "./records.ts";
import { RecordsAhead } from "./records-ahead.ts";
import { recordHeads } from "./records-view.ts";
import { planRestart, restartKey } from "./restart-plan.ts";
import type { NextTry } from "./retry.ts";
import { type Join, type Message, type Run, type Step, taskIdOf } from "./run.ts";
import type { Brain } from "./store.ts";
import { readCharsMax } from "./template-reads.ts";

/** Records per load for an asynchronous store: each may have megabytes. */
const rowsAtOnce = 100;
/** How long a lane counts as polled after a claim for it. */
const polledMsDefault = 60_000;

/**
 * Maximum characters of steps that are loaded before the decision checks their size: they may be too many for one template
 * (template-reads.ts).
 */
const loadedCharsMax = readCharsMax;

/** Steps of the batch's budget that a new step of a run costs in addition to its row: placing its task takes about as long as writing it. */
export const placeSteps = 32;

/** A run event without `now` and `random`, which are added here. */
export type Happening = RunEvent extends infer E ? (E extends RunEvent ? Omit<E, "now" | "random"> : never) : never;

type Decided = Exclude<Decision, { need: Need }>;

export interface DecisionsDeps {
  store: RowStore;
  commit: GroupCommit;
  clock: Clock;
  random: () => number;
  brain: Brain;
  board: LocalBoard;
  documents: LocalDocuments;
  definitions: Definitions;
  runs: Rows<Run>;
  joins: Rows<Join>;
  /** Stores a message for another run. */
  leave: (tx: Tx, message: Message) => void;
  /** Called in the operation that has changed a run with a start limit or a delay, with the run as it was. */
  counted: (tx: Tx, before: Run) => void;
  /** Called after the commit in which a run that had ended began another life, with the run as it was. */
  revived?: ((run: Run) => void) | undefined;
  /** Called when records of a run have begun to wait for signals. */
  signals: Pick<LocalSignals, "posted" | "postedLater" | "giveBack">;
  slices?: Slices;
  /** Tasks that one transaction cancels, and records that are read at once; replaced in tests. */
  sliceTasks?: number;
}

export class Decisions {
  readonly #options: DecisionsDeps;
  readonly openTasks: OpenTasks;
  readonly records: Records;
  readonly ahead: RecordsAhead;
  readonly #works: LongWorks;

  constructor(options: DecisionsDeps) {
    this.#options = options;
    this.openTasks = new OpenTasks(options);
    const { store, commit, clock, board, slices, sliceTasks } = options;
    const limits = { ...(slices === undefined ? {} : { slices }), ...(sliceTasks === undefined ? {} : { sliceTasks }) };
    this.#works = new LongWorks(clock, slices);
    this.records = new Records({ store, commit, clock, tasks: board.tasks, ...limits });
    this.ahead = new RecordsAhead({ commit, clock, tasks: board.tasks, charsMax: loadedCharsMax, ...limits });
  }

  planOf(tx: ReadTx, run: Run): Plan {
    const definition = this.#options.definitions.byId(tx, run.definitionId);
    if (definition === null) throw new Error(`Run ${run.id} has no definition ${run.definitionId}.`);
    return this.#options.definitions.plan(tx, definition);
  }

  decide(tx: Tx, run: Run, happening: Happening): NextTry | null {
    return this.#decide(tx, run, happening).next;
  }

  /** Decides about the report of a durable function. Returns the reply to a turn that continues, if the report asks for one. */
  report(tx: Tx, run: Run, turn: Happening & { kind: "turn" }): string | null {
    return this.#decide(tx, run, turn).news ?? null;
  }

  #decide(tx: Tx, run: Run, happening: Happening): Decided {
    // Another life starts only after all tasks of the last one have ended.
    const isBegin = begins.has(happening.kind) || (happening.kind === "turn" && happening.report.end?.kind === "continued");
    const written = isBegin ? this.#options.board.unwritten.written(run.id) : undefined;
    if (written !== undefined) throw new Postponed(written);
    const plan = this.planOf(tx, run);
    const event = this.#eventOf(happening);
    const loaded = new Loaded(run);
    const decision = this.#decided(tx, plan, loaded, event);
    // In a retried run, a step that starts may have a row from an earlier life.
    const again = run.retries > 0 || isBegin;
    const about: About = { run, plan, now: event.now, again, closing: event.kind === "closed" ? event.node : null, signals: [] };
    if (isBegin) this.#forget(tx, about, loaded, decision.changes);
    for (const change of decision.changes) this.#apply(tx, about, change);
    for (const change of decision.changes)
      if (change.kind === "forget-all" && change.returned.length > 0) this.#options.signals.giveBack(tx, run.id, change.returned);
    this.#takeSignals(tx, about);
    if (run.gate !== null || run.startAt !== null) this.#options.counted(tx, run);
    return decision;
  }

  /** The decision without its effect. */
  consider(tx: Tx, run: Run, happening: Happening): Considered {
    const plan = this.planOf(tx, run);
    const loaded = new Loaded(run);
    const { changes } = this.#decided(tx, plan, loaded, this.#eventOf(happening));
    return { run, plan, changes, all: loaded.all && recordHeads(loaded.all), restart: loaded.again };
  }

  /** The spread comes last: V8 takes 1.5 us to add fields to an object that was just copied, and 0.05 us to copy into a new one. */
  #eventOf(happening: Happening): RunEvent {
    return { now: this.#options.clock.now(), random: this.#options.random(), ...happening } as RunEvent;
  }

  #decided(tx: Tx, plan: Plan, loaded: Loaded, event: RunEvent): Decided {
    for (;;) {
      const decision = this.#options.brain.decide(plan, loaded, event);
      if ("changes" in decision) return decision;
      if (!this.#loadTogether(tx, loaded, decision.need, plan))
        throw new Error(`The decision about run ${loaded.run.id} needs rows again that are loaded already.`);
    }
  }

  /**
   * Returns false when it has loaded nothing new: the loop would never end. One call loads a bounded number of characters. The decision
   * then requests the rest, or finds that there are too many.
   */
  #load(tx: Tx, loaded: Loaded, need: Need, plan: Plan): boolean {
    const { id } = loaded.run;
    const before = loaded.size;
    let left = loadedCharsMax;
    const ahead = this.ahead.of(tx, id, need.records);
    for (const node of need.joins) loaded.joins.set(node, this.#options.joins.get(tx, joinKey(id, node)));
    for (const node of need.outputs) {
      if (left < 0) break;
      const task = this.#options.board.tasks.get(tx, taskIdOf(id, node));
      // A forgotten record has no valid output, although its row still has the old one.
      left -= loaded.addOutput(node, task === null || task.state === "forgotten" ? null : task.output);
    }
    for (const node of need.records) {
      if (left < 0) break;
      const task = ahead?.(node) ?? this.#options.board.tasks.get(tx, taskIdOf(id, node));
      loaded.tasks.set(node, task);
      left -= task === null ? 0 : taskChars(task);
    }
    for (const { kind, name } of need.documents) {
      const document = this.#options.documents.find(tx, kind, name);
      loaded.documents.set(documentKey(kind, name), document === null ? null : (parseExact(document.body) as Json));
    }
    for (const work of need.works) loaded.works.set(work.key, this.#works.done(id, work));
    if (need.all) loaded.all = this.records.all(tx, id, plan.driven ? loaded.run.recorded + 1 : plan.nodes.length);
    const { restart, journal } = need;
    const { all } = loaded;
    if (restart !== null && all !== undefined)
      loaded.again = this.records.worked(tx, { runId: id, key: `${loaded.run.definitionId} ${restartKey(restart)}`, all }, (records) =>
        planRestart(plan, records, restart),
      );
    if (journal !== null && all !== undefined)
      loaded.next = this.records.worked(tx, { runId: id, key: journalKey(journal, loaded.run), all, ignored: driverNode }, (records) =>
        nextJournal(records, loaded.run, journal),
      );
    return loaded.size > before;
  }

  /** Like `together` in rows.ts, without its closures: nearly every decision loads something. */
  #loadTogether(tx: Tx, loaded: Loaded, need: Need, plan: Plan): boolean {
    try {
      return this.#load(tx, loaded, need, plan);
    } catch (thrown) {
      if (thrown instanceof Missing) readAll(this.#reads(tx, loaded.run.id, need), (read) => read());
      throw thrown;
    }
  }

  /** The reads of `#load`, one by one. */
  #reads(tx: Tx, runId: string, need: Need): (() => unknown)[] {
    const { board, joins, documents } = this.#options;
    return [
      ...need.joins.map((node) => () => joins.get(tx, joinKey(runId, node))),
      ...[...need.outputs, ...need.records].slice(0, rowsAtOnce).map((node) => () => board.tasks.get(tx, taskIdOf(runId, node))),
      ...need.documents.map(
        ({ kind, name }) =>
          () =>
            documents.find(tx, kind, name),
      ),
    ];
  }

  /**
   * When records have begun to wait, signals that are kept end them, each in a separate decision. While an attempt is being closed, this is
   * postponed: the run could end before the board has ended the attempt.
   */
  #takeSignals(tx: Tx, { run, closing, signals }: About): void {
    if (signals.length === 0) return;
    if (closing === null) this.#options.signals.posted(tx, run.id, signals);
    else this.#options.signals.postedLater(tx, run.id);
  }

  /** Makes the records of an earlier life void, before any step of the next life starts. */
  #forget(tx: Tx, { run, now }: About, loaded: Loaded, changes: readonly Change[]): void {
    const steps: Step[] = [];
    for (const change of changes) {
      if (change.kind === "forget") steps.push([change.node, loaded.record(change.node)?.attempt ?? 0]);
      else if (change.kind === "forget-all") for (const step of change.steps) steps.push(step);
    }
    if (steps.length > 0) this.openTasks.forget(tx, run.id, now, steps);
  }

  #apply(tx: Tx, about: About, change: Change): void {
    const { run } = about;
    if (change.kind === "post") this.#post(tx, about, change);
    else if (change.kind === "record") this.#record(tx, about, change);
    else if (change.kind === "join") {
      const { node, left, begun, missed } = change;
      this.#options.joins.put(tx, joinKey(run.id, node), { runId: run.id, node, left, begun, missed });
    } else if (change.kind === "settle") this.#options.board.ofRuns.settle(tx, taskIdOf(run.id, change.node), change);
    else if (change.kind === "reopen") this.#options.board.ofRuns.reopen(tx, taskIdOf(run.id, change.node), change.passed);
    else if (change.kind === "run") {
      const hasGrown = change.run.definitionId !== run.definitionId;
      const more = hasGrown ? this.planOf(tx, change.run).nodes.length - about.plan.nodes.length : 0;
      const next = hasGrown ? { ...change.run, left: change.run.left + more } : change.run;
      this.#options.runs.put(tx, run.id, next, hasGrown || change.run.input !== run.input);
      if (run.endedAt !== null && change.run.endedAt === null) tx.after(() => this.#options.revived?.(run));
    } else if (change.kind === "define") this.#options.definitions.keep(tx, change.definition);
    else if (change.kind === "message") this.#options.leave(tx, change.message);
    else if (change.kind === "turn") this.#turn(tx, run, change);
    else if (change.kind === "number") this.#options.board.ofRuns.number(tx, taskIdOf(run.id, change.node), change.ordinal);
    else if (change.kind === "cancel-open")
      this.openTasks.end(tx, run.id, about.now, about.closing === null ? null : taskIdOf(run.id, about.closing));
  }

  #post(tx: Tx, { run, plan, now, again, signals }: About, change: Change & { kind: "post" }): void {
    const { placement } = change;
    tx.spend(placeSteps);
    const node = change.step === undefined ? plan.nodes[change.node] : undefined;
    const { id: step, command } = change.step ?? { id: node?.id, command: plan.driven ? driverCommand : undefined };
    if (step === undefined) throw new Error(`The plan of run ${run.id} has no node ${change.node}.`);
    const { board } = this.#options;
    const base = {
      id: taskIdOf(run.id, change.node),
      runId: run.id,
      node: change.node,
      step,
      command,
      ordinal: change.ordinal,
      input: change.input,
      policy: placement === undefined ? null : JSON.stringify(placement.retry),
      ...(placement?.timeouts ?? node?.timeouts),
    };
    const placed = placement ?? (node?.kind === "task" && !plan.driven ? node : undefined);
    if (placed === undefined || placed.lanes.length === 0) {
      const delayMs = change.wakeAt === undefined ? 0 : change.wakeAt - now;
      const { signal = node?.kind === "wait" ? node.id : undefined } = change;
      if (signal !== undefined) signals.push(signal);
      return board.ofRuns.place(tx, newTask({ ...base, lanes: [], delayMs, signal }, now, null), again, plan.keepsCounting);
    }
    const { lanes, priority, limits, delayMs, holdMs, polledMs = polledMsDefault } = placed;
    const lane = board.lanes.choose(lanes, now - polledMs);
    const task = { ...base, lanes, priority: priority + run.priority, limits, delayMs, holdMs };
    board.ofRuns.place(tx, newTask(task, now, lane), again, plan.keepsCounting);
  }

  #turn(tx: Tx, run: Run, { lanes, input, polledSince, claimMs }: Change & { kind: "turn" }): void {
    const { board } = this.#options;
    const lane = board.lanes.choose(lanes, polledSince);
    // Any worker may take it from the last lane, without a time limit.
    const waitsMs = lane === null || lane.name === lanes.at(-1)?.name ? null : claimMs;
    if (lane !== null) board.ofRuns.turn(tx, taskIdOf(run.id, 0), lane, input, waitsMs);
  }

  #record(tx: Tx, { run, plan, now, again }: About, change: Change & { kind: "record" }): void {
    const { node, ordinal, state, error } = change;
    const { id: step, command } = change.step ?? { id: plan.nodes[node]?.id ?? "", command: undefined };
    const base = { id: taskIdOf(run.id, node), runId: run.id, node, ordinal, step, command };
    const { at = now } = change;
    const task = newTask({ ...base, lanes: [], input: change.input ?? "null", policy: null }, at, null);
    const result = { state, error, output: change.output ?? null, fault: change.fault ?? null, endedAt: at };
    this.#options.board.ofRuns.place(tx, { ...task, ...result }, again, plan.keepsCounting);
  }
}

/** Events that start another life of a run. */
const begins: ReadonlySet<string> = new Set([...forEnded, "reopen"]);

/** What every change of one decision has in common. */
interface About {
  run: Run;
  plan: Plan;
  now: number;
  again: boolean;
  /** The step whose attempt is being closed. The board ends it after the decision: its permits must not be returned twice. */
  closing: number | null;
  /** Names of the signals for which this decision has posted records that wait. */
  signals: string[];
}
