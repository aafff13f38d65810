// Decides which steps start, are skipped, fail or end their run. node-start.ts starts them, draft.ts records the changes.

import { writeExact } from "../../core/json/json-exact.ts";
import { type Fault, isCancelledAlong, type TaskRow } from "../board/task.ts";
import type { Decision, Frontier } from "./decide.ts";
import { Draft, type Failing, type Rules } from "./draft.ts";
import { Joins } from "./joins.ts";
import { LazyMap } from "./lazy-map.ts";
import { type Again, NextLife } from "./next-life.ts";
import { NodeStart } from "./node-start.ts";
import type { PlanNode } from "./plan.ts";
import { recordHeads } from "./records-view.ts";
import type { NextTry } from "./retry.ts";
import type { Rest, Settled } from "./run.ts";
import { Skips } from "./skips.ts";

export class Propagation {
  readonly #draft: Draft;
  readonly #joins: Joins;
  readonly #nodeStart: NodeStart;
  readonly #settled: Settled[] = [];
  /** Nodes of a lazy plan that have become wanted in this decision, in order. */
  readonly #wanted: number[] = [];
  /** Nodes that start, or continue in place, in the next decision, because this one has reached its maximum cost. */
  readonly #later: number[] = [];
  readonly #resumedLater: number[] = [];
  readonly #skips: Skips;
  /** Nodes whose first part was announced in an earlier decision. */
  readonly #streamed = new LazyMap<number, true>();

  constructor(rules: Rules, frontier: Frontier, now: number) {
    const { plan } = rules;
    this.#draft = new Draft(rules, frontier, now);
    this.#joins = new Joins(frontier, this.#draft.need, plan.lazy);
    this.#skips = new Skips(frontier.run);
    this.#nodeStart = new NodeStart(this.#draft, this.#joins, this.#skips, {
      settled: (settled) => this.#settled.push(settled),
      wanted: (nodes) => {
        for (const node of nodes) this.#wanted.push(node);
      },
      later: (nodes) => {
        for (const node of nodes) this.#later.push(node);
      },
      failed: (node, failing) => this.#fail(node, failing),
    });
  }

  answer(next: NextTry | null): Decision {
    return this.#draft.answer(this.#joins.changes(), next);
  }

  begin(): void {
    this.#draft.update({ left: this.#draft.plan.nodes.length });
    const first: number[] = [];
    this.#draft.plan.nodes.forEach((node, at) => {
      if (node.after.length === 0 && !node.demanded) first.push(at);
    });
    this.#nodeStart.activateEach(first);
    this.#pursue();
  }

  /** Continues the rest of an earlier decision. */
  goOn({ starts, settled, wanted, resumed = [] }: Rest): void {
    this.#draft.leave();
    this.#nodeStart.activateAll(starts);
    this.#resume(resumed);
    for (const one of settled) this.#settled.push(one);
    for (const node of wanted) this.#wanted.push(node);
    this.#pursue();
  }

  streamed(node: number): void {
    this.#streamed.set(node, true);
  }

  /** Nodes that wait for the first part of this one may start; the others wait for its end. */
  part(node: number): void {
    this.#settled.push({ node, succeeded: true, part: "first" });
    this.#pursue();
  }

  succeed(node: number): void {
    if (!this.#leave(node)) return;
    this.#settled.push({ node, succeeded: true });
    this.#pursue();
  }

  /** A node that had started has ended, usually without a result. */
  end(node: number, failing: Failing): void {
    if (!this.#leave(node)) return;
    if (failing.state === "done") this.#settled.push({ node, succeeded: true });
    else this.#fail(node, failing);
    this.#pursue();
  }

  /**
   * Returns false when the node has already ended. A report may end a join. Then neither the steps that the join waits for nor a later
   * report may end it again.
   */
  #leave(at: number): boolean {
    const node = this.#draft.plan.nodes[at] as PlanNode;
    if (node.kind === "join") {
      const counter = this.#joins.of(at, node);
      if (counter === undefined || counter.left <= 0) return false;
      this.#joins.set(at, { ...counter, left: -1 });
    }
    this.#draft.leave();
    return true;
  }

  /** The node ended, and the run ends with it, independent of the node's policy for failures. */
  endsRun(node: number, failing: Failing): void {
    this.#draft.leave();
    this.#endRun(node, failing);
  }

  /** Another attempt follows: its input is evaluated again when the plan requires it, and a new child run is started for it. */
  tryAgain(at: number, next: NextTry & { again: true }, attempt: number): NextTry {
    const node = this.#draft.plan.nodes[at] as PlanNode;
    const self = { node: at, attempt };
    const input = node.freshInput || node.kind === "run" ? this.#draft.resolve(node.input, self) : null;
    const until = node.kind === "wait" ? this.#draft.resolve(node.until, self) : null;
    for (const part of [node.kind === "run" ? input : null, until])
      if (part !== null && "failed" in part) return this.#cannotTryAgain(at, next, attempt, part);
    const text = input !== null && "value" in input ? writeExact(input.value) : undefined;
    if (node.kind === "run" && input !== null && "value" in input)
      this.#draft.startChild(at, node.workflow, text as string, attempt, this.#draft.childDefinition(node, input.value));
    const wakes = until !== null && "value" in until && typeof until.value === "number";
    // When the order of attempts is not needed, another attempt changes nothing in the run.
    const ordinal = this.#draft.plan.keepsCounting ? { ordinal: this.#draft.nextOrdinal() } : {};
    return { ...next, ...ordinal, ...(text === undefined ? {} : { input: text }), ...(wakes ? { wakeAt: until.value as number } : {}) };
  }

  /** Without an input no child run starts, and without a time nothing ends a wait. The step would never end, so it fails. */
  #cannotTryAgain(at: number, { failures, lost }: NextTry, attempt: number, how: { failed: string; fault?: Fault }): NextTry {
    const { failed: error, fault = "final" } = how;
    this.end(at, { state: "failed", error, fault, attempt: attempt - 1 });
    return { again: false, error, failures, lost };
  }

  cancel(error: string | null, parent?: { error: string | null }): void {
    const why = parent === undefined ? error : (this.#draft.dialect.orphaned?.(parent.error) ?? null);
    // The error is the caller's reason, if there is one. Otherwise the run keeps the error that it has.
    this.stop("cancelled", why ?? this.#draft.run.error);
  }

  timeOut(): void {
    this.stop("timed-out", this.#draft.run.error ?? this.#draft.dialect.timedOut?.(this.#draft.plan) ?? "the run took too long");
  }

  stop(state: "cancelled" | "timed-out", error: string | null): void {
    this.#draft.change({ kind: "cancel-open" });
    this.#draft.close(state, error);
  }

  unfollowed(error: string): void {
    const output = this.#draft.dialect.unfollowed?.(this.#draft.run.output, error);
    if (output !== undefined) this.#draft.update({ output });
  }

  pause(): void {
    if (this.#draft.run.state === "running") this.#draft.update({ state: "paused" });
  }

  /** Events during the pause are applied afterwards, one by one. */
  resume(): void {
    if (this.#draft.run.state === "paused") this.#draft.update({ state: "running", ...this.#draft.counted() });
  }

  /** A step that has already started continues: its record is not replaced. */
  skip(node: number, input: string, output: string): void {
    const all = [node, ...(this.#draft.plan.nodes[node]?.skipsWith ?? [])];
    const records = new Map(all.map((at) => [at, this.#draft.frontier.record(at)]));
    this.#draft.need.records.push(...all.filter((at) => records.get(at) === undefined));
    const isFree = (at: number) => (records.get(at)?.state ?? "forgotten") === "forgotten";
    if (!isFree(node)) return;
    for (const at of all.filter(isFree)) {
      const parts = at === node ? { input, output } : { input: "{}", output: "{}" };
      this.#draft.change({ kind: "record", node: at, ordinal: 0, state: "skipped", error: null, ...parts });
      this.#skips.add(at);
    }
    this.#draft.update({ skips: this.#skips.text });
  }

  restart(): void {
    if (this.#nextLife().restart()) this.begin();
  }

  /** Retries what did not succeed and everything after it; with `from`, also that step and everything after it. */
  again(how: Again): void {
    const next = this.#nextLife().again(how);
    if (next === null) return;
    if (next === "begin") return this.begin();
    // The counters are updated first: a step that is skipped at once reaches other steps, which need them.
    if (how.reopen !== undefined) this.#resume(next.start);
    else this.#startAgain(next.start, how, next.records);
    this.#pursue();
  }

  /** Created on demand, because few events begin another life. */
  #nextLife(): NextLife {
    return new NextLife(this.#draft, this.#joins, this.#skips);
  }

  /** In a rerun, the named step and what was cancelled along with the run begin again, in the places that they had. */
  #startAgain(nodes: readonly number[], { from, input }: { from?: number; input?: string }, records: ReadonlyMap<number, TaskRow>): void {
    const heads = from !== undefined && this.#draft.plan.keepsCounting ? recordHeads(records) : null;
    for (const node of nodes) {
      const record = this.#skips.has(node) ? undefined : heads?.get(node);
      const isAgain = record !== undefined && (node === from || (isCancelledAlong(record) && !record.streamed));
      const place = isAgain ? record.ordinal : undefined;
      if (place !== undefined && node !== from) this.#draft.forget(node);
      // The named step has an input of its own, so it is started in this decision.
      if (node !== from && (this.#draft.spent || this.#draft.over)) this.#later.push(node);
      else this.#nodeStart.activate(node, node === from ? input : undefined, place);
    }
  }

  /** Nodes continue in place, because the child run of another step lives again. */
  #resume(nodes: readonly number[]): void {
    for (const node of nodes) {
      if (this.#draft.spent || this.#draft.over) this.#resumedLater.push(node);
      else this.#nodeStart.resume(node);
    }
  }

  /**
   * The run has already continued with the steps after this one. Those that have started continue, and nodes that wait for several steps
   * wait for this one again.
   */
  waitAgain(at: number): void {
    this.#draft.update({ left: this.#draft.run.left + 1 });
    this.#draft.reopen(at, true);
    for (const next of this.#draft.plan.dependents[at] ?? []) {
      const node = this.#draft.plan.nodes[next] as PlanNode;
      const counter = node.kind === "join" ? this.#joins.of(next, node) : undefined;
      if (counter !== undefined && !(counter.begun && counter.left <= 0)) this.#joins.set(next, { ...counter, left: counter.left + 1 });
    }
  }

  /**
   * Follows the edges of settled nodes, and of nodes that settle or become wanted because of them. What is too much for one decision is
   * left for the next. Then checks whether the run has ended.
   */
  #pursue(): void {
    let [settled, wanted] = [0, 0];
    while (!this.#draft.over && !this.#draft.spent) {
      if (settled < this.#settled.length) {
        const next = this.#follow(this.#settled[settled] as Settled);
        if (next === null) settled++;
        else this.#settled[settled] = next;
      } else if (wanted < this.#wanted.length) this.#want(this.#wanted[wanted++] as number);
      else break;
    }
    const resumed = this.#resumedLater.splice(0);
    const isRest = this.#later.length + resumed.length > 0 || settled < this.#settled.length || wanted < this.#wanted.length;
    if (isRest) {
      const marked = this.#settled.slice(settled).map(this.#marked);
      const starts = { starts: [...this.#later], ...(resumed.length > 0 ? { resumed } : {}) };
      this.#draft.goOnLater({ ...starts, settled: marked, wanted: this.#wanted.slice(wanted) });
    }
    this.#later.length = 0;
    this.#settled.length = 0;
    this.#wanted.length = 0;
    // While rows are missing, nothing has really ended, and the output is not evaluated.
    if (!this.#draft.over && !this.#draft.lacks && this.#draft.run.active === 0) this.#finish();
  }

  /** Marks the node as wanted, and also what it demands. */
  #want(at: number): void {
    this.#draft.spend(1);
    const node = this.#draft.plan.nodes[at] as PlanNode;
    const next = this.#joins.want(at, node);
    if (next === "leave") return;
    for (const demanded of node.demands ?? []) this.#wanted.push(demanded);
    if (next === "start") this.#nodeStart.activateAll([at]);
    else if (next === "skip") this.#nodeStart.skip(at);
  }

  /** The next decision does not know which first parts were already announced, so it is recorded here. */
  readonly #marked = (settled: Settled): Settled => {
    return settled.part === undefined && this.#streamed.has(settled.node) ? { ...settled, part: "before" } : settled;
  };

  /** Returns null when all edges were followed, else the rest. */
  #follow(settled: Settled): Settled | null {
    const { node, from = 0, part = this.#streamed.has(node) ? "before" : undefined } = settled;
    if (from === 0 && part !== "first") this.#draft.settleOne();
    const reached = part === undefined ? undefined : this.#draft.plan.onFirstPart.get(node);
    // A child run has no parts: its earlier end already reached all of its dependents.
    const passed = this.#draft.plan.nodes[node]?.kind === "run";
    const dependents = part === "first" ? [...(reached ?? [])] : (this.#draft.plan.dependents[node] ?? []);
    for (let edge = from; edge < dependents.length; edge++) {
      if (this.#draft.spent || this.#draft.over) return { ...settled, ...(part === undefined ? {} : { part }), from: edge };
      const dependent = dependents[edge] as number;
      const { kind } = this.#draft.plan.nodes[dependent] as PlanNode;
      if ((settled.chose && kind !== "join") || (part === "before" && (reached?.has(dependent) || (passed && kind !== "join")))) continue;
      this.#reach(dependent, settled.succeeded);
    }
    return null;
  }

  /** One upstream of the node has settled: it succeeded, or never will. */
  #reach(at: number, succeeded: boolean): void {
    this.#draft.spend(1);
    const node = this.#draft.plan.nodes[at] as PlanNode;
    const blocked = !succeeded && node.waitsFor === "done";
    if (!this.#joins.arrive(at, node, blocked)) return;
    if (node.kind === "join") this.#nodeStart.complete(at, node);
    else if (blocked) this.#nodeStart.skip(at);
    else this.#nodeStart.activate(at);
  }

  /** What a failure means for the rest of the run. A step that was cancelled alone counts as a failure. */
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

  #finish(): void {
    const { run, plan } = this.#draft;
    if (run.failed > 0 && !plan.judgedByOutput) return this.#draft.close("failed", run.error);
    this.#draft.close("succeeded", null);
  }
}
