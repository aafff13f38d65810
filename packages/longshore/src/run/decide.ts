// What follows from what happened in a run. Pure: no clock, no randomness, no I/O; `now` and `random` come with the event.
// The answer is a list of changes to rows, or `need`: rows it has to see first, after which it is called again with the same
// event. It looks only at the nodes that an event touches, so the ten-thousandth step costs what the tenth does.

import type { EndState } from "../board/task.ts";
import type { Json } from "../json.ts";
import type { Dialect, Resolved, Scope } from "./dialect.ts";
import type { Plan, PlanNode, Template } from "./plan.ts";
import { type Closure, type NextTry, nextTry, noRetry } from "./retry.ts";
import { type Join, type Message, type Run, taskIdOf } from "./run.ts";

export type RunEvent = { now: number; random: number } & (
  | { kind: "start" }
  /** A step has its result. */
  | { kind: "done"; node: number }
  /** An attempt of a step closed without a result. */
  | { kind: "closed"; node: number; closure: Closure; failures: number; lost: number }
  /** A step ended otherwise: its child run did not succeed, or somebody cancelled the step alone. */
  | { kind: "ended"; node: number; state: EndState; error: string | null }
  | { kind: "cancel" }
  | { kind: "timeout" }
  /** Try again what did not succeed and what came after it; keep the rest. */
  | { kind: "retry" }
);

/** What the store has loaded so far. `undefined` means not looked at yet; `null` means there is no such row. */
export interface Frontier {
  readonly run: Run;
  join(node: number): Join | null | undefined;
  output(node: number): Json | undefined;
  /** How each recorded node stands; only loaded when asked for. */
  states(): ReadonlyMap<number, string> | undefined;
}

export interface Need {
  joins: number[];
  outputs: number[];
  states: boolean;
}

export type Change =
  /** Put a step's work on the board, or a record that waits for something else when the node has no lane. */
  | { kind: "post"; node: number; input: string }
  /** A step that ended without ever being on the board. */
  | { kind: "record"; node: number; state: EndState; error: string | null }
  | { kind: "join"; node: number; left: number }
  | { kind: "run"; run: Run }
  | { kind: "message"; message: Message }
  /** What was recorded about a step is void: it will be started anew. */
  | { kind: "forget"; node: number }
  /** Cancel whatever is still open on the board. */
  | { kind: "cancel-open" };

/** Joins asked for at once at least, when a cascade of skips runs into one that has not been loaded. */
const aheadMin = 16;

export type Decision = { need: Need } | { changes: Change[]; next: NextTry | null };

export function decide(plan: Plan, dialect: Dialect, frontier: Frontier, event: RunEvent): Decision {
  const deciding = new Deciding(plan, dialect, frontier, event.now);
  const next = react(deciding, plan, event);
  return deciding.answer(next);
}

function react(deciding: Deciding, plan: Plan, event: RunEvent): NextTry | null {
  switch (event.kind) {
    case "start":
      deciding.begin();
      return null;
    case "done":
      deciding.settle(event.node, true);
      return null;
    case "ended":
      deciding.end(event.node, event.state, event.error);
      return null;
    case "closed": {
      const node = plan.nodes[event.node] as PlanNode;
      const next = nextTry(node.kind === "task" ? node.retry : noRetry, event, event.closure, event.now, event.random);
      if (!next.again) deciding.end(event.node, "failed", next.error);
      return next;
    }
    case "cancel":
      deciding.stop("cancelled", null);
      return null;
    case "timeout":
      deciding.stop("timed-out", "the run took too long");
      return null;
    case "retry":
      deciding.retry();
      return null;
  }
}

/** One decision in the making: gathers changes, and what is missing. */
class Deciding {
  readonly #plan: Plan;
  readonly #dialect: Dialect;
  readonly #frontier: Frontier;
  readonly #now: number;
  readonly #scope: Scope;
  readonly #need: Need = { joins: [], outputs: [], states: false };
  readonly #changes: Change[] = [];
  readonly #joins = new Map<number, number>();
  /** Nodes that this decision ends without a result. */
  readonly #ended = new Set<number>();
  /** Joins that have been looked at, which is how far this decision has come. */
  #seen = 0;
  #run: Run;

  constructor(plan: Plan, dialect: Dialect, frontier: Frontier, now: number) {
    this.#plan = plan;
    this.#dialect = dialect;
    this.#frontier = frontier;
    this.#now = now;
    this.#run = frontier.run;
    let input: Json | undefined;
    this.#scope = {
      input: () => {
        input ??= JSON.parse(frontier.run.input) as Json;
        return input;
      },
      // What its row says, if it has one, is from an earlier life of the run.
      output: (node) => (this.#ended.has(node) ? null : frontier.output(node)),
    };
  }

  answer(next: NextTry | null): Decision {
    const need = this.#need;
    if (need.joins.length > 0 || need.outputs.length > 0 || need.states) return { need };
    for (const [node, left] of this.#joins) this.#changes.push({ kind: "join", node, left });
    if (this.#run !== this.#frontier.run) this.#changes.push({ kind: "run", run: this.#run });
    return { changes: this.#changes, next };
  }

  begin(): void {
    this.#run = { ...this.#run, left: this.#plan.nodes.length };
    this.#plan.nodes.forEach((node, at) => {
      if (node.after.length === 0) this.#start(at);
    });
    this.#finishWhenSettled();
  }

  /** A node ended otherwise than by a result. A cancelled step fails its run like a failed one does: its dependents cannot start. */
  end(node: number, state: EndState, error: string | null): void {
    if (state === "done") return this.settle(node, true);
    this.#countFailure(this.#plan.nodes[node]?.id ?? "", state, error);
    this.settle(node, false);
  }

  /** Follows the edges of a settled node, and of those that are skipped because of it. */
  settle(node: number, succeeded: boolean): void {
    this.#follow(node, succeeded);
    this.#finishWhenSettled();
  }

  stop(state: "cancelled" | "timed-out", error: string | null): void {
    this.#changes.push({ kind: "cancel-open" });
    this.#close({ ...this.#run, state, error: this.#run.error ?? error });
  }

  retry(): void {
    const states = this.#frontier.states();
    if (states === undefined) {
      this.#need.states = true;
      return;
    }
    const { nodes, timeoutMs } = this.#plan;
    const again = this.#toBeTriedAgain(states);
    this.#run = {
      ...this.#run,
      state: "running",
      error: null,
      output: null,
      endedAt: null,
      failed: 0,
      retries: this.#run.retries + 1,
      left: again.size,
      endBy: timeoutMs === null ? null : this.#now + timeoutMs,
    };
    const first: number[] = [];
    for (const at of again) {
      const upstreams = (nodes[at] as PlanNode).after;
      const left = upstreams.filter((upstream) => again.has(upstream)).length;
      if (left > 0 && states.has(at)) this.#changes.push({ kind: "forget", node: at });
      if (upstreams.length > 1) this.#joins.set(at, left === 0 ? -1 : left);
      if (left === 0) first.push(at);
    }
    // Only now: a step that is skipped at once reaches others, whose counters must be right by then.
    for (const at of first) this.#start(at);
    this.#finishWhenSettled();
  }

  /** Steps without a result, and all that come after them: what they were given may change. */
  #toBeTriedAgain(states: ReadonlyMap<number, string>): Set<number> {
    const again = new Set<number>();
    this.#plan.nodes.forEach((_, at) => {
      if (states.get(at) !== "done") again.add(at);
    });
    // What is added on the way is walked over as well.
    for (const at of again) for (const dependent of this.#plan.dependents[at] ?? []) again.add(dependent);
    return again;
  }

  #start(at: number): void {
    if (!this.#activate(at)) this.#follow(at, false);
  }

  #follow(first: number, succeeded: boolean): void {
    const settled: { node: number; succeeded: boolean }[] = [{ node: first, succeeded }];
    for (let top = settled.pop(); top !== undefined; top = settled.pop()) {
      this.#run = { ...this.#run, left: this.#run.left - 1 };
      for (const dependent of this.#plan.dependents[top.node] ?? []) {
        const node = this.#plan.nodes[dependent] as PlanNode;
        const blocked = !top.succeeded && node.waitsFor === "done";
        if (!this.#arrive(dependent, blocked)) continue;
        if (blocked) {
          this.#record(dependent, "skipped", null);
          settled.push({ node: dependent, succeeded: false });
        } else if (!this.#activate(dependent)) settled.push({ node: dependent, succeeded: false });
      }
    }
  }

  /** Counts one upstream of `node` as settled. True when the node is to start now, or to be skipped because it is blocked. */
  #arrive(node: number, blocked: boolean): boolean {
    const upstreams = (this.#plan.nodes[node] as PlanNode).after.length;
    if (upstreams === 1) return true;
    const row = this.#joins.has(node) ? undefined : this.#frontier.join(node);
    const left = this.#joins.get(node) ?? (row === null ? upstreams : row?.left);
    if (left === undefined) {
      this.#need.joins.push(node);
      this.#joins.set(node, -1);
      // Asks ahead along a cascade of skips, as far again as it has come: a long one takes few rounds, a short one asks for little too much.
      return blocked && this.#need.joins.length < Math.max(aheadMin, this.#seen);
    }
    this.#seen++;
    if (left === -1) return false;
    const starts = blocked || left === 1;
    this.#joins.set(node, starts ? -1 : left - 1);
    return starts;
  }

  /** Starts a node whose upstreams allow it: works out its condition and input, then posts it. False when it has ended at once. */
  #activate(at: number): boolean {
    const node = this.#plan.nodes[at] as PlanNode;
    const when: Resolved = node.when === undefined ? { value: true } : this.#resolve(node.when);
    if ("needs" in when) return true;
    if ("value" in when && when.value === false) {
      this.#record(at, "skipped", null);
      return false;
    }
    const input = "failed" in when ? when : this.#resolve(node.input);
    if ("needs" in input) return true;
    if ("failed" in input) {
      this.#record(at, "failed", input.failed);
      this.#countFailure(node.id, "failed", input.failed);
      return false;
    }
    const text = JSON.stringify(input.value);
    this.#changes.push({ kind: "post", node: at, input: text });
    if (node.kind === "run") {
      const parentTaskId = taskIdOf(this.#run.id, at);
      this.#changes.push({ kind: "message", message: { kind: "start-run", workflow: node.workflow, input: text, parentTaskId } });
    }
    return true;
  }

  #record(node: number, state: EndState, error: string | null): void {
    this.#ended.add(node);
    this.#changes.push({ kind: "record", node, state, error });
  }

  #countFailure(step: string, state: EndState, error: string | null): void {
    const first = `step ${step} ${state}${error ? `: ${error}` : ""}`;
    this.#run = { ...this.#run, failed: this.#run.failed + 1, error: this.#run.error ?? first };
  }

  #resolve(template: Template): Resolved {
    const resolved = this.#dialect.resolve(this.#plan, template, this.#scope);
    if ("needs" in resolved) this.#need.outputs.push(...resolved.needs);
    return resolved;
  }

  #finishWhenSettled(): void {
    if (this.#run.left !== 0) return;
    if (this.#run.failed > 0) return this.#close({ ...this.#run, state: "failed" });
    const output = this.#resolve(this.#plan.output);
    if ("needs" in output) return;
    if ("failed" in output)
      return this.#close({ ...this.#run, state: "failed", error: `the output could not be worked out: ${output.failed}` });
    this.#close({ ...this.#run, state: "succeeded", output: JSON.stringify(output.value) });
  }

  #close(run: Run): void {
    this.#run = { ...run, endedAt: this.#now };
    if (run.parentTaskId === null) return;
    const state: EndState = run.state === "succeeded" ? "done" : run.state === "cancelled" ? "cancelled" : "failed";
    const { parentTaskId: taskId, parentAttempt: attempt, output, error } = run;
    const message: Message = { kind: "settle-task", taskId, attempt, state, output, error };
    this.#changes.push({ kind: "message", message });
  }
}
