// The decider on a ledger: the smallest object that can load the rows that it needs and apply its changes. It counts both.

import assert from "node:assert/strict";
import type { Json } from "../../src/core/json/json.ts";
import { atOnce } from "../../src/core/slices/slice-work.ts";
import { newTask } from "../../src/engine/board/new-task.ts";
import { ReservedLanes } from "../../src/engine/board/reserved-lanes.ts";
import type { EndState, TaskRow } from "../../src/engine/board/task.ts";
import { type Change, decide, type Frontier, type Need, type RunEvent } from "../../src/engine/run/decide.ts";
import type { Dialect, Resolved } from "../../src/engine/run/dialect.ts";
import { makePlan } from "../../src/engine/run/make-plan.ts";
import { newRun } from "../../src/engine/run/new-run.ts";
import type { Plan, PlanNode, TaskNode, Template } from "../../src/engine/run/plan.ts";
import { planRestart } from "../../src/engine/run/restart-plan.ts";
import type { Closure, NextTry } from "../../src/engine/run/retry.ts";
import { backlogOf, type Join, type Message, type Rest, type Run } from "../../src/engine/run/run.ts";

/** Templates are functions of the outputs that they may read. `of` lists the steps whose outputs are requested first. */
export interface Reads {
  of: number[];
  make(outputs: Json[], input: Json): Resolved;
}
export const value = (constant: Json): Reads => ({ of: [], make: () => ({ value: constant }) });
export const outputsOf = (...of: number[]): Reads => ({ of, make: (outputs) => ({ value: outputs }) });

const dialect: Dialect = {
  name: "test",
  compile: () => {
    throw new Error("Plans are made by hand here.");
  },
  resolve(_, template, scope) {
    const { of, make } = template as Reads;
    const outputs = of.map((node) => scope.output(node));
    const needs = of.filter((_node, at) => outputs[at] === undefined);
    return needs.length > 0 ? { needs } : make(outputs as Json[], scope.input());
  },
};

/** `runs`: the step runs another workflow. Otherwise it ends at once with the output `gives`, and chooses one of `cases` by its number. */
export type Step = Partial<Omit<TaskNode, "kind">> & { runs?: string; gives?: Json; chooses?: { by: Reads; cases: number[][] } };

interface PlanParts {
  output?: Template;
  timeoutMs?: number;
  wanted?: number[];
  judgedByOutput?: boolean;
}

export function planOf(steps: Step[], parts: PlanParts = {}): Plan {
  const nodes = steps.map(({ runs, gives, chooses, ...step }, at): PlanNode => {
    const base = { id: `s${at}`, input: value(at), after: [], waitsFor: "done" as const, timeouts: {}, ...step };
    if (runs !== undefined) return { ...base, kind: "run", workflow: runs };
    if (gives !== undefined || chooses !== undefined) {
      const choice = chooses && {
        by: chooses.by,
        cases: new Map(chooses.cases.map((nodes, number) => [String(number), nodes])),
        otherwise: [],
      };
      return { ...base, kind: "instant", output: value(gives ?? null), ...(choice && { choice }) };
    }
    return {
      lanes: [],
      priority: 0,
      retry: { failures: 0, lost: 0, backoff: { kind: "fixed", delayMs: 10 } },
      limits: [],
      ...base,
      kind: "task",
    };
  });
  return makePlan({ dialect: "test", nodes, output: value("out"), ...parts });
}

/** The rows that a decision has read. */
interface Seen {
  readonly joins: Map<number, Join | null>;
  readonly outputs: Map<number, Json>;
  readonly records: Map<number, TaskRow | null>;
  all: ReadonlyMap<number, TaskRow> | undefined;
}

/** The state of a node: `open` while it is on the board. */
type State = "open" | EndState;

export class Ledger {
  readonly plan: Plan;
  readonly #dialect: Dialect;
  run: Run;
  now = 0;
  readonly joins = new Map<number, Join>();
  readonly states = new Map<number, State>();
  readonly outputs = new Map<number, Json>();
  readonly inputs = new Map<number, string>();
  /** Steps whose first part was reported. */
  readonly streamed = new Set<number>();
  readonly messages: Message[] = [];
  /** Every start of a step, in order. */
  readonly started: number[] = [];
  /** How many rows each event requested and changed, and how often the decider was called. */
  costs: { asked: number; changed: number; calls: number }[] = [];
  /** The same for the rest that a decision left, which is decided at once. */
  rests: { asked: number; changed: number; calls: number }[] = [];
  cancelledOpen = 0;
  /** Every record that became void, in order. */
  readonly forgotten: number[] = [];
  /** The rest of a decision stays in the run. */
  holdsRests = false;

  constructor(plan: Plan, parts: Partial<Run> = {}, spoken: Dialect = dialect) {
    this.plan = plan;
    this.#dialect = spoken;
    this.run = { ...newRun({ id: "r", workflow: "w", definitionId: "d", input: '{"go":true}' }, 0, null), ...parts };
  }

  start(): this {
    this.tell({ kind: "start" });
    return this;
  }

  /** Only what a step waits for is reported, and once. */
  part(node: number): void {
    if (this.streamed.has(node) || !this.plan.onFirstPart.has(node)) return;
    this.streamed.add(node);
    this.tell({ kind: "part", node });
  }

  done(node: number, output: Json = node): void {
    this.states.set(node, "done");
    this.outputs.set(node, output);
    this.tell({ kind: "done", node, ...this.#told(node) });
  }

  fail(
    node: number,
    closure: Closure = { kind: "failed", error: "boom", retryable: true },
    counts = { failures: 0, lost: 0 },
  ): NextTry | null {
    const next = this.tell({ kind: "closed", node, closure, ...counts, ...this.#told(node) });
    if (next?.again === false) this.states.set(node, "failed");
    return next;
  }

  end(node: number, state: EndState, error: string | null = null): void {
    this.states.set(node, state);
    this.tell({ kind: "ended", node, state, error, ...this.#told(node) });
  }

  tell(happening: { kind: RunEvent["kind"] } & Record<string, unknown>): NextTry | null {
    const next = this.#decide(happening, this.costs);
    this.goOn();
    return next;
  }

  /** Decides the rest, like the store for messages of the kind `go-on`. */
  goOn(): void {
    for (let [first, ...others] = this.#left(); first !== undefined; [first, ...others] = this.#left()) {
      this.run = { ...this.run, backlog: others.length === 0 ? null : JSON.stringify(others) };
      this.#decide({ kind: "go-on", rest: first.rest }, this.rests);
    }
  }

  #left(): { rest?: Rest }[] {
    return this.run.state === "running" && !this.holdsRests ? backlogOf(this.run) : [];
  }

  #decide(happening: { kind: RunEvent["kind"] } & Record<string, unknown>, costs: Ledger["costs"]): NextTry | null {
    const event = { ...happening, now: this.now, random: 0.5 } as unknown as RunEvent;
    const seen: Seen = {
      joins: new Map<number, Join | null>(),
      outputs: new Map<number, Json>(),
      records: new Map<number, TaskRow | null>(),
      all: undefined,
    };
    const frontier: Frontier = {
      run: this.run,
      join: (node) => seen.joins.get(node),
      output: (node) => seen.outputs.get(node),
      record: (node) => seen.records.get(node),
      records: () => seen.all,
      restart: (options) => atOnce(planRestart(this.plan, seen.all ?? new Map(), options)),
      journal: () => undefined,
      document: () => null,
      made: () => undefined,
      chars: () => 0,
    };
    const cost = { asked: 0, changed: 0, calls: 0 };
    for (;;) {
      cost.calls++;
      const decision = decide({ plan: this.plan, dialect: this.#dialect, reserved: new ReservedLanes([]) }, frontier, event);
      if ("changes" in decision) {
        cost.changed = decision.changes.length;
        costs.push(cost);
        for (const change of decision.changes) this.#apply(change);
        return decision.next;
      }
      cost.asked += decision.need.joins.length + decision.need.outputs.length + decision.need.records.length;
      this.#answer(decision.need, seen);
    }
  }

  get open(): number[] {
    return [...this.states].filter(([, state]) => state === "open").map(([node]) => node);
  }

  stateOf(...nodes: number[]): (State | undefined)[] {
    return nodes.map((node) => this.states.get(node));
  }

  #told(node: number): { streamed?: true } {
    return this.streamed.has(node) ? { streamed: true } : {};
  }

  #answer(need: Need, seen: Seen): void {
    assert.equal(new Set(need.joins).size, need.joins.length);
    for (const node of need.joins) {
      assert(!seen.joins.has(node));
      seen.joins.set(node, this.joins.get(node) ?? null);
    }
    for (const node of need.outputs) seen.outputs.set(node, this.outputs.get(node) ?? null);
    for (const node of need.records) seen.records.set(node, this.states.has(node) ? this.#taskOf(node) : null);
    if (need.all) seen.all = new Map([...this.states.keys()].map((node) => [node, this.#taskOf(node)]));
  }

  #taskOf(node: number): TaskRow {
    const state = this.states.get(node) ?? "open";
    const task = newTask({ id: `r.${node}`, runId: "r", node, step: `s${node}`, lanes: [], input: "null", policy: null }, 0, null);
    return { ...task, state: state === "open" ? "queued" : state, output: JSON.stringify(this.outputs.get(node) ?? null) };
  }

  #apply(change: Change): void {
    if (change.kind === "post") {
      assert.notEqual(this.states.get(change.node), "open");
      this.states.set(change.node, "open");
      this.inputs.set(change.node, change.input);
      this.outputs.delete(change.node);
      this.started.push(change.node);
      this.streamed.delete(change.node);
    } else if (change.kind === "record" || change.kind === "settle") {
      this.states.set(change.node, change.state);
      this.outputs.delete(change.node);
      if (change.output) this.outputs.set(change.node, JSON.parse(change.output) as Json);
    } else if (change.kind === "join") this.joins.set(change.node, { runId: this.run.id, ...change });
    else if (change.kind === "run") this.run = change.run;
    else if (change.kind === "message") this.messages.push(change.message);
    else if (change.kind === "reopen") this.states.set(change.node, "open");
    else if (change.kind === "forget") {
      this.forgotten.push(change.node);
      this.states.set(change.node, "forgotten");
      this.streamed.delete(change.node);
      this.outputs.delete(change.node);
    } else {
      this.cancelledOpen++;
      for (const node of this.open) this.states.set(node, "cancelled");
    }
  }
}
