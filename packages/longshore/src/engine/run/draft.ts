// The state of one decision so far: changes to rows, the new run, and missing rows. propagation.ts decides what follows; this file records
// it.

import { toError } from "../../core/errors.ts";
import { isObject, type Json } from "../../core/json/json.ts";
import { parseExact, writeExact } from "../../core/json/json-exact.ts";
import { Missing } from "../../core/missing.ts";
import { newTask } from "../board/new-task.ts";
import { keptError } from "../board/report-texts.ts";
import type { ReservedLanes } from "../board/reserved-lanes.ts";
import type { Deadline, EndState, Fault, TaskRow } from "../board/task.ts";
import type { Change, Decision, Frontier, Need, Recorded } from "./decide.ts";
import type { Dialect, Needs, Resolved, Scope, Unplaced } from "./dialect.ts";
import { grownIdOf } from "./grown-ids.ts";
import type { Grown, Placement, Plan, RunNode, Template } from "./plan.ts";
import type { NextTry } from "./retry.ts";
import {
  childIdOf,
  hasBegun,
  isRunOpen,
  type Message,
  type Rest,
  type Run,
  type RunState,
  type StartRun,
  type Step,
  successorIdOf,
  taskIdOf,
  withHappening,
} from "./run.ts";
import { StepStates } from "./step-states.ts";
import { TemplateReads } from "./template-reads.ts";

/**
 * Maximum cost of one decision: it starts or reaches its nodes in some milliseconds. The rest is decided in a later transaction, after
 * other requests have had their turn.
 */
export const stepsMax = 600;
/** The cost of starting a node, which fills its input and writes a row or two, up to 150 us in all; reaching a node only changes a counter. */
export const startSteps = 8;
/** This many visited records cost as much as one reached node. */
const recordsPerStep = 8;
/** This many characters of an input count as one more step: writing them takes about as long. */
const stepChars = 4_096;

/** This many values that a template visits count as one more step: each takes up to 0.3 us. */
const stepValues = 80;

/** How a step ended without a result. */
export interface Failing {
  state: EndState;
  error: string | null;
  fault: Fault | null;
  /** The deadline that passed, when the fault is a timeout. */
  overdue?: Deadline | null;
  attempt: number;
  /** JSON text of its output although it failed; absent when its row has it already. */
  output?: string | null;
}

/** `ordinal`: its place among the run's records, when that is not the next one. */
interface PostFields {
  placement?: Placement;
  wakeAt?: number;
  signal?: string;
  ordinal?: number | undefined;
}

/** The things that a decision uses, other than the state of the run. */
export interface Rules {
  readonly plan: Plan;
  readonly dialect: Dialect;
  readonly reserved: ReservedLanes;
  /** The quota of a durable function. */
  readonly functionChars?: number | undefined;
}

export class Draft {
  readonly plan: Plan;
  readonly dialect: Dialect;
  readonly reserved: ReservedLanes;
  readonly frontier: Frontier;
  readonly now: number;
  readonly known: StepStates;
  readonly need: Need = { joins: [], outputs: [], records: [], all: false, restart: null, journal: null, documents: [], works: [] };
  /** The run has ended in this decision. */
  over = false;
  /** The new run; copied at the first change. */
  run: Run;
  readonly #changes: Change[] = [];
  readonly #messages: Message[] = [];
  #steps = 0;
  #input: Json | undefined;
  #variables: { [name: string]: Json } | undefined;

  constructor({ plan, dialect, reserved }: Rules, frontier: Frontier, now: number) {
    this.plan = plan;
    this.dialect = dialect;
    this.reserved = reserved;
    this.frontier = frontier;
    this.now = now;
    this.known = new StepStates(frontier);
    this.run = frontier.run;
  }

  answer(joins: readonly Change[], next: NextTry | null): Decision {
    if (this.lacks) return { need: this.need };
    this.#changes.push(...joins);
    if (this.run !== this.frontier.run) this.#changes.push({ kind: "run", run: this.run });
    // Messages for other runs are added last, because their meaning may depend on the new state of this run.
    for (const message of this.#messages) this.#changes.push({ kind: "message", message });
    return { changes: this.#changes, next };
  }

  /** True when rows must be loaded before anything is decided. */
  get lacks(): boolean {
    const { joins, outputs, records, documents, works, all, restart, journal } = this.need;
    const lists = joins.length + outputs.length + records.length + documents.length + works.length;
    return all || restart !== null || journal !== null || lists > 0;
  }

  update(fields: Partial<Run>): void {
    Object.assign(this.#own(), fields);
  }

  #own(): { -readonly [Field in keyof Run]: Run[Field] } {
    if (this.run === this.frontier.run) this.run = { ...this.run };
    return this.run;
  }

  /** Adds to the cost of this decision. */
  spend(steps: number): void {
    this.#steps += steps;
  }

  /**
   * Adds the cost of visiting all these records for another life: the more records there are, the fewer steps start in the same decision.
   */
  spendOnRecords(count: number): void {
    this.spend(Math.min(Math.floor(count / recordsPerStep), stepsMax / 2));
  }

  /** True when this decision has reached its maximum cost. */
  get spent(): boolean {
    return this.#steps >= stepsMax;
  }

  /** Leaves the rest for the next decision; the run does not end before it. If the run has ended, the rest is left for its next life. */
  goOnLater(rest: Rest): void {
    this.update({ backlog: withHappening(this.run.backlog, { kind: "go-on", rest }) });
    if (this.over) return;
    this.enter();
    this.tell({ kind: "go-on", runId: this.run.id });
  }

  change(change: Change): void {
    this.#changes.push(change);
  }

  tell(message: Message): void {
    this.#messages.push(message);
  }

  /** Counts something that has started and must end. `leave` counts the end. */
  enter(): void {
    this.#own().active++;
  }

  leave(): void {
    this.#own().active--;
  }

  /** Counts a node that has settled. */
  settleOne(): void {
    this.#own().left--;
  }

  /** Returns the next place among the run's records. */
  nextOrdinal(): number {
    return ++this.#own().recorded;
  }

  #placeOf(node: number): number {
    return this.plan.nodes[node]?.placeless ? 0 : this.nextOrdinal();
  }

  post(node: number, input: string, { ordinal = this.#placeOf(node), ...fields }: PostFields = {}): void {
    this.change({ kind: "post", node, ordinal, input, ...fields });
    this.spend(Math.floor(input.length / stepChars));
    this.enter();
  }

  record(node: number, fields: Recorded, ordinal: number = this.nextOrdinal()): void {
    const { input = "null", output = null } = fields;
    this.change({ kind: "record", node, ordinal, ...fields });
    const record = { ...this.blank(node, input), ...fields, ordinal, input, output };
    this.known.add(node, { ...record, fault: fields.fault ?? null, endedAt: this.now });
  }

  forget(node: number): void {
    this.change({ kind: "forget", node });
    this.known.forget(node);
  }

  /** The same for very many steps of a run that reads no other step. The signals that the steps `returned` took are kept again. */
  forgetAll(steps: readonly Step[], returned: readonly number[] = []): void {
    this.change({ kind: "forget-all", steps, returned });
  }

  reopen(node: number, passed = false): void {
    this.change({ kind: "reopen", node, passed });
    this.enter();
  }

  /** A step that has just started, as templates read it. */
  blank(node: number, input: string): TaskRow {
    const step = this.plan.nodes[node]?.id ?? "";
    const { id: runId } = this.run;
    return newTask({ id: taskIdOf(runId, node), runId, node, step, lanes: [], input, policy: null }, this.now, null);
  }

  /** The run continues with this definition. No node may start any more in this decision, because its plan is the one before. */
  grow(grown: Grown): void {
    const { dialect } = this.plan;
    const { source } = grown;
    const id = grownIdOf(this.run, grown);
    this.change({ kind: "define", definition: { id, name: `.${id}`, dialect, source } });
    this.update({ definitionId: id });
    this.#steps = stepsMax;
  }

  startChild(
    at: number,
    workflow: string | null,
    input: string,
    attempt: number,
    more: Pick<StartRun, "resumes" | "definition" | "defines"> = {},
  ): void {
    const { id } = this.run;
    const { dialect } = this.plan;
    const named = workflow === null ? { runId: childIdOf(id, at, attempt) } : {};
    this.tell({ kind: "start-run", workflow, dialect, input, parentTaskId: taskIdOf(id, at), attempt, from: id, ...named, ...more });
  }

  /** The definition that the dialect makes for the child run of a step, if it makes one. */
  childDefinition(node: RunNode, input: Json): Pick<StartRun, "definition"> {
    const definition = node.workflow === null ? this.dialect.child?.(this.plan, node, this.run, input) : undefined;
    return definition === undefined ? {} : { definition };
  }

  resolve(template: Template, self: Scope["self"]): Resolved {
    const reads = new TemplateReads();
    const resolved = this.attempt(() => this.dialect.resolve(this.plan, template, this.scope(self, reads)));
    const refusal = reads.refusal("value" in resolved ? resolved.value : "failed" in resolved ? resolved.output : undefined);
    if (refusal !== undefined) return "failed" in resolved ? { ...resolved, output: undefined } : { failed: refusal };
    if ("needs" in resolved) this.ask(resolved);
    return resolved;
  }

  /**
   * When a dialect throws on unexpected data, the step fails. Otherwise the error would undo every report that contains the data, and the
   * run would never end. Missing rows are not the dialect's error.
   */
  attempt<Result>(work: () => Result): Result | Unplaced {
    try {
      return work();
    } catch (error) {
      if (error instanceof Missing) throw error;
      return { failed: `its values cannot be worked out by the dialect ${this.dialect.name}: ${toError(error).message}` };
    }
  }

  ask(needs: Needs): void {
    this.need.outputs.push(...needs.needs);
    this.need.records.push(...(needs.records ?? []));
    this.need.documents.push(...(needs.documents ?? []));
    if (needs.work !== undefined) this.need.works.push(needs.work);
    if (needs.all) this.need.all = true;
  }

  scope(self: Scope["self"], reads: TemplateReads = new TemplateReads()): Scope {
    const { frontier, known } = this;
    return {
      run: this.run,
      self,
      now: this.now,
      looked: (values) => this.spend(Math.floor(values / stepValues)),
      input: () => {
        this.#input ??= parseExact(frontier.run.input) as Json;
        return reads.given(this.#input);
      },
      variables: () => reads.given(this.#readVariables()),
      output: (node) => {
        const output = known.output(node);
        reads.step(node, frontier.chars(node));
        return output === undefined ? undefined : reads.given(output);
      },
      record: (node) => {
        const record = known.record(node);
        if (record) reads.step(node, record.input.length + (record.output?.length ?? 0));
        return record;
      },
      records: () => known.records(),
      document: (kind, name) => frontier.document(kind, name),
      made: (key) => frontier.made(key),
    };
  }

  /** Merges an object into the run's variables, and returns all of them. */
  setVariables(value: Json): { readonly [name: string]: Json } {
    if (!isObject(value)) return this.#readVariables();
    this.#variables = { ...this.#readVariables(), ...(value as { [name: string]: Json }) };
    this.update({ variables: writeExact(this.#variables) });
    return this.#variables;
  }

  #readVariables(): { [name: string]: Json } {
    const { variables } = this.run;
    this.#variables ??= variables === null ? {} : (parseExact(variables) as { [name: string]: Json });
    return this.#variables;
  }

  /** Starts another life of the run. */
  revive(fields: Partial<Run>): void {
    const { parentTaskId: taskId, parentAttempt: attempt, state } = this.run;
    if (taskId !== null && this.plan.reopensParent && !isRunOpen(state)) this.tell({ kind: "reopen-task", taskId, attempt });
    const life = { state: "running" as const, error: null, output: null, endedAt: null, failed: 0, active: 0 };
    this.update({ ...life, retries: this.run.retries + 1, ...this.counted(), ...fields });
  }

  /** Restarts the run's timeout, if the run has begun. */
  counted(): Pick<Run, "countedFrom" | "endBy"> {
    const { timeoutMs } = this.plan;
    return { countedFrom: this.now, endBy: timeoutMs === null || !hasBegun(this.run) ? null : this.now + timeoutMs };
  }

  /** Templates that are evaluated from here on can read how the step ended. */
  noteFailed(at: number, { state, error, fault, overdue = null, output }: Failing): void {
    const kept = error === null ? null : keptError(error);
    this.known.end(at, { state, error: kept, fault, overdue, endedAt: this.now, ...(output === undefined ? {} : { output }) });
  }

  countFailure(at: number, failing: Failing): void {
    const failure = { ...failing, node: at, taskId: taskIdOf(this.run.id, at) };
    const { error: before } = this.run;
    const first = `step ${this.plan.nodes[at]?.id ?? ""} ${failing.state}${failing.error ? `: ${failing.error}` : ""}`;
    const error = this.dialect.explain?.(this.plan, failure, before) ?? before ?? first;
    this.update({ failed: this.run.failed + 1, error: keptError(error) });
  }

  /** Ends the run. `output` is JSON text; evaluated from the plan when absent. */
  close(state: RunState, error: string | null, output?: string): void {
    this.over = true;
    this.update({ state, error: error === null ? null : keptError(error) });
    if (state === "succeeded" || this.plan.outputAlways) {
      const worked: Resolved = output === undefined ? this.resolve(this.plan.output, null) : { value: null };
      if ("needs" in worked) return;
      if ("failed" in worked && state === "succeeded") return this.#closeWithout(worked);
      this.update({ output: output ?? ("value" in worked ? writeExact(worked.value) : null) });
    }
    this.update({ endedAt: this.now, startAt: null, turn: null, active: 0, ...(state === "succeeded" ? { left: 0 } : {}) });
    this.#tellOthers(output !== undefined);
  }

  /** Ends a run whose output could not be evaluated. It may have another output to show instead. */
  #closeWithout({ failed, output }: { failed: string; output?: Json }): void {
    const error = this.dialect.outputFailed?.(this.plan, failed) ?? `the output could not be worked out: ${failed}`;
    const text = output === undefined ? null : writeExact(output);
    this.update({ output: text });
    this.close("failed", error, text ?? "null");
  }

  /** Leaves messages: a child's end settles a step of its parent; a failed run may start a successor. */
  #tellOthers(ended: boolean): void {
    const { id: from, retries: life, state, output, error, parentTaskId: taskId, parentAttempt: attempt } = this.run;
    const failed = state === "failed" || state === "timed-out" || (ended && state === "cancelled");
    if (failed && this.plan.successor) {
      const { dialect } = this.plan;
      const runId = successorIdOf(this.run);
      this.tell({ kind: "start-run", workflow: null, dialect, input: "null", parentTaskId: null, runId, from });
    }
    if (taskId === null) return;
    const ending: EndState = state === "succeeded" ? "done" : state === "cancelled" ? "cancelled" : "failed";
    const fault = ending === "failed" ? (state === "timed-out" ? "timed-out" : "failed") : null;
    this.tell({ kind: "settle-task", taskId, attempt, from, life, state: ending, fault, output, error });
  }
}
