// Starts a node whose turn has come: it is queued for a worker, waits, or ends at once.

import { isScalar, type Json } from "../../core/json/json.ts";
import { parseExact, writeExact } from "../../core/json/json-exact.ts";
import { shown } from "../../core/text.ts";
import { type Fault, isCancelled, isCancelledAlong, type TaskRow } from "../board/task.ts";
import { isSignalName, signalNameMax } from "../signal/signal.ts";
import type { Recorded } from "./decide.ts";
import type { Resolved, Scope } from "./dialect.ts";
import { type Draft, type Failing, startSteps, stepsMax } from "./draft.ts";
import type { Joins } from "./joins.ts";
import { LazyMap } from "./lazy-map.ts";
import {
  type Ending,
  type EndNode,
  type Grown,
  type InstantNode,
  type JoinNode,
  type Placement,
  type PlanNode,
  type RunNode,
  requiredOf,
  type TaskNode,
  type Template,
  type WaitNode,
} from "./plan.ts";
import { tryOnce } from "./retry.ts";
import type { Settled, StartRun } from "./run.ts";
import type { Skips } from "./skips.ts";

/** What a task is in this run: work in a lane, or another kind of node. */
type PlacedTask = { placement?: Placement; given?: Json } | { becomes: InstantNode | WaitNode | EndNode };

/** How the run continues after a start. Edges are followed only after the start is complete. */
export interface Onward {
  settled(settled: Settled): void;
  /** Nodes of a lazy plan that have become wanted. */
  wanted(nodes: readonly number[]): void;
  failed(node: number, failing: Failing): void;
  /** Nodes that must start, but do not fit into this decision. */
  later(nodes: readonly number[]): void;
}

export class NodeStart {
  readonly #draft: Draft;
  readonly #joins: Joins;
  /** Steps that a caller ordered to be skipped. */
  readonly #skips: Skips;
  readonly #onward: Onward;
  /** End nodes that wait until all nodes that start together with them have started. */
  readonly #endings: number[] = [];
  /** Places among the records, reserved for these end nodes, and for nodes that start again in their old place. */
  readonly #reserved = new LazyMap<number, number>();
  #beginning = 0;

  constructor(draft: Draft, joins: Joins, skips: Skips, onward: Onward) {
    this.#draft = draft;
    this.#joins = joins;
    this.#skips = skips;
    this.#onward = onward;
  }

  /** Starts nodes together; an end node among them comes last. */
  activateAll(nodes: readonly number[]): void {
    this.#beginning++;
    this.activateEach(nodes);
    this.#beginning--;
    if (this.#beginning === 0) this.activateEach(this.#endings.splice(0));
  }

  /** Starts nodes one after the other; those for which the decision has no room are left for the next. */
  activateEach(nodes: readonly number[]): void {
    let begun = 0;
    while (begun < nodes.length && !this.#draft.spent) this.activate(nodes[begun++] as number);
    if (begun < nodes.length) this.#onward.later(nodes.slice(begun));
  }

  /**
   * Starts a node whose upstreams allow it, if the run has not ended. `given` is an input that was decided elsewhere, as JSON text; `place`
   * is the place among the records that it had before.
   */
  activate(at: number, given?: string, place?: number): void {
    if (this.#draft.over) return this.#onward.later([at]);
    if (place !== undefined) this.#reserved.set(at, place);
    this.#draft.spend(startSteps);
    const node = this.#draft.plan.nodes[at] as PlanNode;
    if (node.kind === "end" && this.#beginning > 0) {
      // The first end node usually ends the run. A place that was reserved for a second one would stay empty.
      if (this.#endings.length === 0) this.#reserved.set(at, this.#draft.nextOrdinal());
      this.#endings.push(at);
      return;
    }
    if (this.#skips.has(at)) {
      this.#skips.reach(at);
      this.#draft.update({ skips: this.#skips.text });
      this.#onward.settled({ node: at, succeeded: true });
      const started = node.kind === "instant" ? (node.starts ?? []) : [];
      return this.activateAll(started.filter((next) => node.skipsWith?.includes(next) && this.#skips.has(next)));
    }
    if (node.kind === "join") return this.#wait(at, node);
    const self = this.#selfOf(at, node);
    if (self === undefined || (node.kind === "instant" && node.grows !== undefined && this.#grows(at, node.grows, self))) return;
    const when: Resolved = node.when === undefined ? { value: true } : this.#draft.resolve(node.when, self);
    if ("needs" in when) return;
    if ("value" in when && when.value === false) return this.skip(at);
    const input =
      "failed" in when ? when : given === undefined ? this.#draft.resolve(node.input, self) : { value: parseExact(given) as Json };
    if ("needs" in input) return;
    if ("failed" in input) this.#failAtOnce(at, input);
    else this.#begin(at, node, input.value, self?.attempt ?? 0);
  }

  /**
   * Starts a node of a run that lives again because the child run of another step does. What was cancelled along with the run continues in
   * its place: a step waits for its child run again, which is retried; any other step gets another attempt.
   */
  resume(at: number): void {
    const record = this.#draft.known.record(at);
    if (record === undefined) {
      this.#draft.need.records.push(at);
      return;
    }
    if (record === null || !isCancelledAlong(record) || this.#skips.has(at)) return this.activate(at);
    const node = this.#draft.plan.nodes[at] as PlanNode;
    if (node.kind === "run") this.#resumeChild(at, node, record);
    else this.activate(at, undefined, record.ordinal);
  }

  /** The input stays: the child run has it already. */
  #resumeChild(at: number, node: RunNode, { attempt, input, streamed }: TaskRow): void {
    this.#draft.spend(startSteps);
    this.#draft.reopen(at, streamed);
    const definition = this.#draft.childDefinition(node, parseExact(input) as Json);
    this.#draft.startChild(at, node.workflow, input, attempt, { ...definition, resumes: attempt });
  }

  /** Skips a node, because the nodes that it waited for did not succeed. */
  skip(at: number): void {
    this.#record(at, { state: "skipped", error: null });
    this.#onward.settled({ node: at, succeeded: false });
  }

  /** The number of this attempt. Loads the record only for a step of an earlier life whose input or child run depends on the number. */
  #selfOf(at: number, node: PlanNode): Scope["self"] | undefined {
    const tells = node.freshInput || node.kind === "run";
    if (this.#draft.run.retries === 0 || !tells) return { node: at, attempt: 0 };
    const before = this.#draft.frontier.record(at);
    if (before === undefined) {
      this.#draft.need.records.push(at);
      return undefined;
    }
    return { node: at, attempt: before === null ? 0 : before.attempt + 1 };
  }

  /** The attempt of an earlier life that ended without a result. A step that a caller named starts as if it had never been tried. */
  #resumedBy(at: number, { resumes }: RunNode): Pick<StartRun, "resumes"> {
    const before = resumes && this.#draft.run.retries > 0 ? this.#draft.known.record(at) : null;
    return before && (before.state === "failed" || isCancelled(before)) ? { resumes: before.attempt } : {};
  }

  #begin(at: number, node: Exclude<PlanNode, JoinNode>, input: Json, attempt: number): void {
    const text = writeExact(input);
    if (node.kind === "instant") return this.#instant(at, node, text);
    if (node.kind === "end") return this.#endHere(at, node.ending, text);
    if (node.kind === "wait") return this.#waitUntil(at, node, text);
    if (node.kind === "run") {
      this.#post(at, text);
      const more = { ...this.#draft.childDefinition(node, input), ...this.#resumedBy(at, node) };
      return this.#draft.startChild(at, node.workflow, text, attempt, more);
    }
    const placed = node.placed ? this.#place(at, node, input) : {};
    if (placed === null) return;
    if ("becomes" in placed) return this.#begin(at, placed.becomes, input, attempt);
    const { placement, given } = placed;
    const refused = this.#draft.reserved.refusedPost(placement ?? node, this.#draft.dialect.name);
    if (refused !== undefined) return this.#failAtOnce(at, { failed: refused }, text);
    this.#post(at, given === undefined ? text : writeExact(given), placement === undefined ? {} : { placement });
  }

  /** Null when the task cannot be placed, or rows are missing. */
  #place(at: number, node: TaskNode, input: Json): PlacedTask | null {
    const { dialect, plan } = this.#draft;
    const placed = this.#draft.attempt(() => dialect.place?.(plan, node, input, this.#draft.scope({ node: at, attempt: 0 })));
    if (placed === undefined) throw new Error(`The dialect ${dialect.name} places no tasks.`);
    if ("becomes" in placed) return placed;
    if ("placement" in placed) return { ...(placed.placement && { placement: placed.placement }), given: placed.given };
    if ("failed" in placed) this.#failAtOnce(at, placed);
    else this.#draft.ask(placed);
    return null;
  }

  /** Returns true when the node starts later, with the plan of a longer definition, or not at all. */
  #grows(at: number, template: Template, self: Scope["self"]): boolean {
    const grown = this.#draft.resolve(template, self);
    if ("failed" in grown) this.#failAtOnce(at, grown);
    if (!("value" in grown)) return true;
    if (grown.value === null) return false;
    this.#draft.grow(grown.value as unknown as Grown);
    this.#onward.later([at]);
    return true;
  }

  #instant(at: number, node: InstantNode, input: string): void {
    const output = this.#resolveObject(at, node.output, input);
    const set = node.variables === undefined ? null : this.#draft.resolve(node.variables, { node: at, attempt: 0 });
    const by = node.choice === undefined ? null : this.#draft.resolve(node.choice.by, { node: at, attempt: 0 });
    for (const made of [output, set, by]) if (made !== null && "failed" in made) return this.#failAtOnce(at, made, input);
    if (!("value" in output) || (set !== null && !("value" in set)) || (by !== null && !("value" in by))) return;
    this.#record(at, { state: "done", error: output.warning ?? null, input, output: writeExact(output.value) });
    if (set !== null) this.#draft.setVariables(set.value);
    const chosen = node.choice === undefined || by === null ? [] : chosenBy(node.choice, by.value);
    const started = [...chosen, ...(node.starts ?? [])];
    if (node.grows !== undefined) {
      this.#countAnew(started);
      // What comes with the data of the run may be large: the nodes that it brings start in the next decision.
      if (started.length > 1) this.#draft.spend(stepsMax);
    }
    if (this.#draft.plan.lazy) this.#onward.wanted(started);
    else this.activateAll(started);
    // The chosen branch is itself an edge to the following nodes.
    this.#onward.settled({ node: at, succeeded: true, chose: chosen.length > 0 });
  }

  /** What these joins wait for has come with this node. A counter that exists already is from an earlier life of the run, and is wrong. */
  #countAnew(started: readonly number[]): void {
    for (const at of started) {
      const node = this.#draft.plan.nodes[at] as PlanNode;
      if (node.kind === "join") this.#joins.set(at, { left: requiredOf(node), begun: false, missed: 0 });
    }
  }

  /** While the output of a step is evaluated, the step is not recorded yet, but its input is known. */
  #resolveObject(at: number, template: Template, input: string): Resolved {
    return this.#draft.known.during(at, this.#draft.blank(at, input), () => this.#draft.resolve(template, { node: at, attempt: 0 }));
  }

  #waitUntil(at: number, node: WaitNode, input: string): void {
    const self = { node: at, attempt: 0 };
    const until = this.#draft.resolve(node.until, self);
    const name: Resolved = node.signal === undefined ? { value: null } : this.#draft.resolve(node.signal, self);
    for (const made of [until, name]) if ("failed" in made) return this.#failAtOnce(at, made, input);
    if (!("value" in until) || !("value" in name)) return;
    if (typeof until.value === "number" && until.value <= this.#draft.now) {
      this.#record(at, { state: "done", error: null, input, output: "{}" });
      this.#onward.settled({ node: at, succeeded: true });
      return;
    }
    const refused = name.value === null ? undefined : refusedName(name.value);
    if (refused !== undefined) return this.#failAtOnce(at, { failed: refused }, input);
    const wakes = typeof until.value === "number" ? { wakeAt: until.value } : {};
    const signal = name.value === null ? {} : { signal: name.value as string };
    this.#post(at, input, { ...this.#withoutLane(at, node), ...wakes, ...signal });
  }

  /** A task for workers that has become a wait in this run is in no lane. */
  #withoutLane(at: number, { id, retry = tryOnce, timeouts }: WaitNode): { placement?: Placement; signal?: string } {
    if (this.#draft.plan.nodes[at]?.kind !== "task") return {};
    return { placement: { lanes: [], priority: 0, limits: [], retry, timeouts }, signal: id };
  }

  /** A join starts to wait; its upstreams may already have settled. */
  #wait(at: number, node: JoinNode): void {
    const counter = this.#joins.of(at, node);
    const input = this.#draft.resolve(node.input, { node: at, attempt: 0 });
    if (counter === undefined || "needs" in input) return;
    if ("failed" in input) return this.#failAtOnce(at, input);
    const text = writeExact(input.value);
    this.#draft.post(at, text);
    this.#draft.known.add(at, { ...this.#draft.blank(at, text), ordinal: this.#draft.run.recorded });
    this.#joins.set(at, { ...counter, begun: true });
    if (counter.left === 0) this.complete(at, node);
  }

  /** Everything that a join waited for has settled. */
  complete(at: number, node: JoinNode): void {
    const output = this.#draft.resolve(node.output, { node: at, attempt: 0 });
    if ("needs" in output) return;
    this.#draft.leave();
    const failed = "failed" in output;
    const fields = {
      state: failed ? ("failed" as const) : ("done" as const),
      error: failed ? output.failed : (output.warning ?? null),
      output: failed ? (output.output === undefined ? null : writeExact(output.output)) : writeExact(output.value),
    };
    this.#draft.change({ kind: "settle", node: at, ...fields, ...(failed ? { fault: output.fault ?? ("failed" as const) } : {}) });
    this.#draft.known.end(at, { ...fields, endedAt: this.#draft.now });
    if (failed) this.#onward.failed(at, { state: "failed", error: output.failed, fault: output.fault ?? "failed", attempt: 0 });
    else this.#onward.settled({ node: at, succeeded: true });
  }

  #endHere(at: number, template: Template, input: string): void {
    const resolved = this.#draft.resolve(template, { node: at, attempt: 0 });
    if ("needs" in resolved) return;
    if ("failed" in resolved) return this.#failAtOnce(at, resolved, input);
    const ending = resolved.value as unknown as Ending;
    this.#record(at, { state: "done", error: null, input, output: writeExact(ending.output) });
    this.#draft.change({ kind: "cancel-open" });
    this.#draft.close(ending.state, ending.error, writeExact(ending.output));
  }

  #failAtOnce(at: number, how: { failed: string; fault?: Fault; output?: Json }, input?: string): void {
    const fault = how.fault ?? "final";
    const output = how.output === undefined ? null : writeExact(how.output);
    this.#record(at, { state: "failed", error: how.failed, input, fault, output });
    this.#onward.failed(at, { state: "failed", error: how.failed, fault, attempt: 0, output });
  }

  #post(node: number, input: string, fields: { placement?: Placement; wakeAt?: number; signal?: string } = {}): void {
    this.#draft.post(node, input, { ...fields, ordinal: this.#reserved.get(node) });
  }

  #record(node: number, fields: Recorded): void {
    const place = this.#draft.plan.nodes[node]?.placeless ? 0 : this.#reserved.get(node);
    this.#draft.record(node, fields, place);
  }
}

/** Why a value cannot be the name of a signal; undefined when it can. */
function refusedName(name: Json): string | undefined {
  const expected = `expected text of 1 to ${signalNameMax} characters`;
  return isSignalName(name) ? undefined : `the name of its signal is ${shown(name)}, ${expected}`;
}

/** An object or a list matches no case, and may have no text form. */
function chosenBy({ cases, otherwise }: NonNullable<InstantNode["choice"]>, value: Json): readonly number[] {
  return (isScalar(value) ? cases.get(String(value)) : undefined) ?? otherwise;
}
