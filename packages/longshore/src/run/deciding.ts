// What follows from what: which steps begin, are skipped, fail or end their run. draft.ts writes it down.

import type { Fault } from "../board/task.ts";
import type { Json } from "../json.ts";
import { planAgain } from "./again.ts";
import type { Decision, Frontier, Recorded } from "./decide.ts";
import type { Dialect, Resolved, Scope } from "./dialect.ts";
import { Draft, type Failing } from "./draft.ts";
import { Joins } from "./joins.ts";
import {
  type Ending,
  type InstantNode,
  type JoinNode,
  type Placement,
  type Plan,
  type PlanNode,
  requiredOf,
  type TaskNode,
  type Template,
} from "./plan.ts";
import type { NextTry } from "./retry.ts";

/** A node that has settled in this decision and whose edges are yet to be followed. */
interface Settled {
  node: number;
  succeeded: boolean;
  /** It chose who goes on; only joins hear of its end. */
  chose?: boolean;
}

export class Deciding {
  readonly #draft: Draft;
  readonly #joins: Joins;
  readonly #settled: Settled[] = [];
  /** Nodes of a lazy plan that have become wanted in this decision, in order. */
  readonly #wanted: number[] = [];
  readonly #skips: ReadonlySet<number>;
  /** Nodes whose first part was told in an earlier decision. */
  readonly #streamed = new Set<number>();
  /** Ends of the run that wait until everything that begins along with them has begun. */
  readonly #endings: number[] = [];
  /** Places among the records that were kept for them. */
  readonly #reserved = new Map<number, number>();
  #beginning = 0;

  constructor(plan: Plan, dialect: Dialect, frontier: Frontier, now: number) {
    this.#draft = new Draft(plan, dialect, frontier, now);
    this.#joins = new Joins(frontier, this.#draft.need, plan.lazy);
    this.#skips = new Set(frontier.run.skips === null ? [] : (JSON.parse(frontier.run.skips) as number[]));
  }

  answer(next: NextTry | null): Decision {
    return this.#draft.answer(this.#joins.changes(), next);
  }

  begin(): void {
    this.#draft.update({ left: this.#draft.plan.nodes.length });
    this.#draft.plan.nodes.forEach((node, at) => {
      if (node.after.length === 0 && !node.demanded) this.#activate(at);
    });
    this.#pursue();
  }

  streamed(node: number): void {
    this.#streamed.add(node);
  }

  /** Whoever waits for no more than a part of the node may begin; the others hear of its end. */
  part(node: number): void {
    for (const dependent of this.#draft.plan.onFirstPart.get(node) ?? []) this.#reach(dependent, true);
    this.#pursue();
  }

  succeed(node: number): void {
    this.#draft.leave();
    this.#settled.push({ node, succeeded: true });
    this.#pursue();
  }

  /** A node that was begun ended otherwise than by a result. */
  end(node: number, failing: Failing): void {
    this.#draft.leave();
    if (failing.state === "done") this.#settled.push({ node, succeeded: true });
    else this.#fail(node, failing);
    this.#pursue();
  }

  /** It ended, and the run ends with it, whatever the node says about failures. */
  endsRun(node: number, failing: Failing): void {
    this.#draft.leave();
    this.#endRun(node, failing);
  }

  /** Another attempt follows: what it is given is worked out anew where the plan says so, and a child run is started for it. */
  tryAgain(at: number, next: NextTry & { again: true }, attempt: number): NextTry {
    const node = this.#draft.plan.nodes[at] as PlanNode;
    const self = { node: at, attempt };
    const input = node.freshInput || node.kind === "run" ? this.#draft.resolve(node.input, self) : null;
    const until = node.kind === "wait" ? this.#draft.resolve(node.until, self) : null;
    const text = input !== null && "value" in input ? JSON.stringify(input.value) : undefined;
    if (node.kind === "run" && text !== undefined) this.#draft.startChild(at, node.workflow, text, attempt);
    const wakes = until !== null && "value" in until && typeof until.value === "number";
    // Where nobody asks for the order of attempts, one more changes nothing in the run.
    const ordinal = this.#draft.plan.keepsCounting ? { ordinal: this.#draft.nextOrdinal() } : {};
    return { ...next, ...ordinal, ...(text === undefined ? {} : { input: text }), ...(wakes ? { wakeAt: until.value as number } : {}) };
  }

  cancel(error: string | null, parent?: { error: string | null }): void {
    this.stop("cancelled", parent === undefined ? error : (this.#draft.dialect.orphaned?.(parent.error) ?? null));
  }

  timeOut(): void {
    this.stop("timed-out", this.#draft.dialect.timedOut?.(this.#draft.plan) ?? "the run took too long");
  }

  stop(state: "cancelled" | "timed-out", error: string | null): void {
    this.#draft.change({ kind: "cancel-open" });
    this.#draft.close(state, this.#draft.run.error ?? error);
  }

  unfollowed(error: string): void {
    const output = this.#draft.dialect.unfollowed?.(this.#draft.run.output, error);
    if (output !== undefined) this.#draft.update({ output });
  }

  pause(): void {
    if (this.#draft.run.state === "running") this.#draft.update({ state: "paused" });
  }

  /** What happened meanwhile is told to it afterwards, one by one. */
  resume(): void {
    if (this.#draft.run.state === "paused") this.#draft.update({ state: "running", backlog: null, ...this.#draft.counted() });
  }

  skip(node: number, input: string, output: string): void {
    this.#draft.change({ kind: "record", node, ordinal: 0, state: "skipped", error: null, input, output });
    this.#draft.update({ skips: JSON.stringify([...this.#skips, node]) });
  }

  restart(): void {
    const records = this.#draft.frontier.records();
    if (records === undefined) {
      this.#draft.need.all = true;
      return;
    }
    for (const [node, task] of records) if (task.state !== "forgotten") this.#draft.forget(node);
    this.#draft.plan.nodes.forEach((node, at) => {
      const counts = node.after.length > 1 || node.kind === "join" || (this.#draft.plan.lazy && node.demanded);
      if (counts) this.#joins.set(at, { left: requiredOf(node), begun: false, missed: 0 });
    });
    // It begins anew, which is not a retry: it counts from its beginning, however much later this is decided.
    this.#draft.revive({ skips: null, backlog: null, recorded: 0, countedFrom: this.#draft.run.createdAt });
    this.begin();
  }

  /** Tries again what did not succeed and what came after it; with `from`, that step and what came after it as well. */
  again(how: { from?: number; input?: string; reopen?: number }): void {
    const records = this.#draft.frontier.records();
    if (records === undefined) {
      this.#draft.need.all = true;
      return;
    }
    const begun = this.#begunBefore();
    if (begun === null) return;
    const again = planAgain(this.#draft.plan, records, { ...how, skips: this.#skips, begun });
    this.#draft.revive({});
    this.#draft.update({ left: again.all.size });
    for (const node of again.forget) this.#draft.forget(node);
    // The step that was named begins as if it had never been tried.
    if (how.from !== undefined && records.has(how.from) && !again.forget.includes(how.from)) this.#draft.forget(how.from);
    for (const [node, counter] of again.joins) this.#joins.set(node, counter);
    for (const node of again.reopen) this.#draft.reopen(node);
    // Only now: a step that is skipped at once reaches others, whose counters must be right by then.
    for (const node of again.start) this.#activate(node, node === how.from ? how.input : undefined);
    this.#pursue();
  }

  /** Which nodes were wanted in the run's last life; null when that has to be loaded first. */
  #begunBefore(): ReadonlySet<number> | null {
    const { plan, frontier, need } = this.#draft;
    const begun = new Set<number>();
    if (!plan.lazy) return begun;
    plan.nodes.forEach((node, at) => {
      if (!node.demanded) return;
      const join = frontier.join(at);
      if (join === undefined) need.joins.push(at);
      else if (join?.begun) begun.add(at);
    });
    return need.joins.length > 0 ? null : begun;
  }

  /** Follows the edges of what has settled, and of what settles or is wanted because of it; then sees whether the run is over. */
  #pursue(): void {
    let [settled, wanted] = [0, 0];
    while (!this.#draft.over) {
      if (settled < this.#settled.length) this.#follow(this.#settled[settled++] as Settled);
      else if (wanted < this.#wanted.length) this.#want(this.#wanted[wanted++] as number);
      else break;
    }
    this.#settled.length = 0;
    this.#wanted.length = 0;
    // While rows are missing nothing has really come to an end, and the output need not be looked at.
    if (!this.#draft.over && !this.#draft.lacks && this.#draft.run.active === 0) this.#finish();
  }

  /** The node is wanted, and so is what it cannot do without. */
  #want(at: number): void {
    const node = this.#draft.plan.nodes[at] as PlanNode;
    const next = this.#joins.want(at, node);
    if (next === "leave") return;
    for (const demanded of node.demands ?? []) this.#wanted.push(demanded);
    if (next === "start") this.#activateAll([at]);
    else if (next === "skip") this.#skipUnmet(at);
  }

  /** What it waited for did not succeed. */
  #skipUnmet(at: number): void {
    this.#record(at, { state: "skipped", error: null });
    this.#settled.push({ node: at, succeeded: false });
  }

  #follow(settled: Settled): void {
    this.#draft.update({ left: this.#draft.run.left - 1 });
    const reached = this.#streamed.has(settled.node) ? this.#draft.plan.onFirstPart.get(settled.node) : undefined;
    for (const dependent of this.#draft.plan.dependents[settled.node] ?? []) {
      if (this.#draft.over) return;
      const { kind } = this.#draft.plan.nodes[dependent] as PlanNode;
      if ((settled.chose && kind !== "join") || reached?.has(dependent)) continue;
      this.#reach(dependent, settled.succeeded);
    }
  }

  /** One of those that the node waits for has come, or never will. */
  #reach(at: number, succeeded: boolean): void {
    const node = this.#draft.plan.nodes[at] as PlanNode;
    const blocked = !succeeded && node.waitsFor === "done";
    if (!this.#joins.arrive(at, node, blocked)) return;
    if (node.kind === "join") this.#complete(at, node);
    else if (blocked) this.#skipUnmet(at);
    else this.#activate(at);
  }

  #activateAll(nodes: readonly number[]): void {
    this.#beginning++;
    for (const at of nodes) if (!this.#draft.over) this.#activate(at);
    this.#beginning--;
    if (this.#beginning > 0) return;
    for (const at of this.#endings.splice(0)) if (!this.#draft.over) this.#activate(at);
  }

  /** Starts a node whose upstreams allow it. `given` is an input that was decided elsewhere, as JSON text. */
  #activate(at: number, given?: string): void {
    const node = this.#draft.plan.nodes[at] as PlanNode;
    if (node.kind === "end" && this.#beginning > 0) {
      this.#endings.push(at);
      this.#reserved.set(at, this.#draft.nextOrdinal());
      return;
    }
    if (this.#skips.has(at)) {
      this.#settled.push({ node: at, succeeded: true });
      return;
    }
    if (node.kind === "join") return this.#wait(at, node);
    const self = this.#selfOf(at, node);
    if (self === undefined) return;
    const when: Resolved = node.when === undefined ? { value: true } : this.#draft.resolve(node.when, self);
    if ("needs" in when) return;
    if ("value" in when && when.value === false) return this.#skipUnmet(at);
    const input =
      "failed" in when ? when : given === undefined ? this.#draft.resolve(node.input, self) : { value: JSON.parse(given) as Json };
    if ("needs" in input) return;
    if ("failed" in input) this.#failAtOnce(at, input);
    else this.#begin(at, node, input.value, self?.attempt ?? 0);
  }

  /** Which attempt this will be. Only a step that lived before, and whose input or child run tells, has to be looked at. */
  #selfOf(at: number, node: PlanNode): Scope["self"] | undefined {
    const tells = node.freshInput || (node.kind === "run" && node.workflow === null);
    if (this.#draft.run.retries === 0 || !tells) return { node: at, attempt: 0 };
    const before = this.#draft.frontier.record(at);
    if (before === undefined) {
      this.#draft.need.records.push(at);
      return undefined;
    }
    return { node: at, attempt: before === null ? 0 : before.attempt + 1 };
  }

  #begin(at: number, node: Exclude<PlanNode, JoinNode>, input: Json, attempt: number): void {
    const text = JSON.stringify(input);
    if (node.kind === "instant") return this.#instant(at, node, text);
    if (node.kind === "end") return this.#endHere(at, node.ending, text);
    if (node.kind === "wait") return this.#waitUntil(at, node.until, text);
    if (node.kind === "run") {
      this.#draft.post(at, text);
      return this.#draft.startChild(at, node.workflow, text, attempt);
    }
    const placed = node.placed ? this.#place(at, node, input) : {};
    if (placed === null) return;
    const { placement, given } = placed;
    this.#draft.post(at, given === undefined ? text : JSON.stringify(given), placement === undefined ? {} : { placement });
  }

  /** Null when it cannot be placed, or not yet. */
  #place(at: number, node: TaskNode, input: Json): { placement?: Placement; given?: Json } | null {
    const placed = this.#draft.dialect.place?.(this.#draft.plan, node, input, this.#draft.scope({ node: at, attempt: 0 }));
    if (placed === undefined) throw new Error(`The dialect ${this.#draft.dialect.name} places no tasks.`);
    if ("placement" in placed) return { ...(placed.placement && { placement: placed.placement }), given: placed.given };
    if ("failed" in placed) this.#failAtOnce(at, placed);
    else this.#draft.ask(placed);
    return null;
  }

  #instant(at: number, node: InstantNode, input: string): void {
    const output = this.#resolveObject(at, node.output, input);
    const set = node.variables === undefined ? null : this.#draft.resolve(node.variables, { node: at, attempt: 0 });
    const by = node.choice === undefined ? null : this.#draft.resolve(node.choice.by, { node: at, attempt: 0 });
    for (const part of [output, set, by]) if (part !== null && "failed" in part) return this.#failAtOnce(at, part, input);
    if (!("value" in output) || (set !== null && !("value" in set)) || (by !== null && !("value" in by))) return;
    this.#record(at, { state: "done", error: output.warning ?? null, input, output: JSON.stringify(output.value) });
    if (set !== null) this.#draft.setVariables(set.value);
    const chosen = node.choice === undefined || by === null ? [] : (node.choice.cases.get(String(by.value)) ?? node.choice.otherwise);
    const started = [...chosen, ...(node.starts ?? [])];
    if (this.#draft.plan.lazy) this.#wanted.push(...started);
    else this.#activateAll(started);
    // A branch that was chosen leads on by itself.
    this.#settled.push({ node: at, succeeded: true, chose: chosen.length > 0 });
  }

  /** While its own output is worked out, a step is not recorded yet, but its input is known. */
  #resolveObject(at: number, template: Template, input: string): Resolved {
    return this.#draft.known.during(at, this.#draft.blank(at, input), () => this.#draft.resolve(template, { node: at, attempt: 0 }));
  }

  #waitUntil(at: number, until: Template, input: string): void {
    const resolved = this.#draft.resolve(until, { node: at, attempt: 0 });
    if ("needs" in resolved) return;
    if ("failed" in resolved) return this.#failAtOnce(at, resolved, input);
    if (typeof resolved.value === "number" && resolved.value <= this.#draft.now) {
      this.#record(at, { state: "done", error: null, input, output: "{}" });
      this.#settled.push({ node: at, succeeded: true });
    } else this.#draft.post(at, input, typeof resolved.value === "number" ? { wakeAt: resolved.value } : {});
  }

  /** A join begins to wait; what it waits for may have settled before. */
  #wait(at: number, node: JoinNode): void {
    const counter = this.#joins.of(at, node);
    const input = this.#draft.resolve(node.input, { node: at, attempt: 0 });
    if (counter === undefined || "needs" in input) return;
    if ("failed" in input) return this.#failAtOnce(at, input);
    const text = JSON.stringify(input.value);
    this.#draft.post(at, text);
    this.#draft.known.add(at, { ...this.#draft.blank(at, text), ordinal: this.#draft.run.recorded });
    this.#joins.set(at, { ...counter, begun: true });
    if (counter.left === 0) this.#complete(at, node);
  }

  /** Everything that a join waited for has settled. */
  #complete(at: number, node: JoinNode): void {
    const output = this.#draft.resolve(node.output, { node: at, attempt: 0 });
    if ("needs" in output) return;
    this.#draft.leave();
    const failed = "failed" in output;
    const parts = {
      state: failed ? ("failed" as const) : ("done" as const),
      error: failed ? output.failed : (output.warning ?? null),
      output: failed ? (output.output === undefined ? null : JSON.stringify(output.output)) : JSON.stringify(output.value),
    };
    this.#draft.change({ kind: "settle", node: at, ...parts, ...(failed ? { fault: output.fault ?? ("failed" as const) } : {}) });
    this.#draft.known.end(at, { ...parts, endedAt: this.#draft.now });
    if (failed) this.#fail(at, { state: "failed", error: output.failed, fault: output.fault ?? "failed", attempt: 0 });
    else this.#settled.push({ node: at, succeeded: true });
  }

  #endHere(at: number, template: Template, input: string): void {
    const resolved = this.#draft.resolve(template, { node: at, attempt: 0 });
    if ("needs" in resolved) return;
    if ("failed" in resolved) return this.#failAtOnce(at, resolved, input);
    const ending = resolved.value as unknown as Ending;
    this.#record(at, { state: "done", error: null, input, output: JSON.stringify(ending.output) });
    this.#draft.change({ kind: "cancel-open" });
    this.#draft.close(ending.state, ending.error, JSON.stringify(ending.output));
  }

  #failAtOnce(at: number, how: { failed: string; fault?: Fault; output?: Json }, input?: string): void {
    const fault = how.fault ?? "final";
    const output = how.output === undefined ? null : JSON.stringify(how.output);
    this.#record(at, { state: "failed", error: how.failed, input, fault, output });
    this.#fail(at, { state: "failed", error: how.failed, fault, attempt: 0, output });
  }

  /** What a failure means for the rest of the run. A cancelled step fails its run like a failed one does. */
  #fail(at: number, failing: Failing): void {
    const { onFailure = "skip" } = this.#draft.plan.nodes[at] as PlanNode;
    if (onFailure === "end") return this.#endRun(at, failing);
    this.#draft.noteFailed(at, failing);
    if (onFailure !== "tolerate") this.#draft.countFailure(at, failing);
    this.#settled.push({ node: at, succeeded: onFailure !== "skip" });
  }

  #endRun(at: number, failing: Failing): void {
    this.#draft.noteFailed(at, failing);
    this.#draft.countFailure(at, failing);
    this.#draft.change({ kind: "cancel-open" });
    const timedOut = failing.fault === "timed-out" || failing.fault === "lost";
    this.#draft.close(failing.state === "cancelled" ? "cancelled" : timedOut ? "timed-out" : "failed", this.#draft.run.error);
  }

  #record(node: number, parts: Recorded): void {
    this.#draft.record(node, parts, this.#reserved.get(node));
  }

  #finish(): void {
    const { run, plan } = this.#draft;
    if (run.failed > 0 && !plan.judgedByOutput) return this.#draft.close("failed", run.error);
    this.#draft.close("succeeded", null);
  }
}
