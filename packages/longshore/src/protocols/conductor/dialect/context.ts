// The context document that expressions read from a run. Entries are made one by one, when they are needed. Entries that have not been
// loaded are recorded.

import { isObject, type Json, type JsonObject } from "../../../core/json/json.ts";
import { parseExact } from "../../../core/json/json-exact.ts";
import type { TaskRow } from "../../../engine/board/task.ts";
import type { Needs, Scope } from "../../../engine/run/dialect.ts";
import type { Plan, PlanNode } from "../../../engine/run/plan.ts";
import { taskIdOf } from "../../../engine/run/run.ts";
import { isGate } from "./compile.ts";
import { type Context, fillValue } from "./fill.ts";
import { attemptIdOf } from "./ids.ts";
import { itemOf, itemsOf } from "./iterate.ts";
import { inIteration, type Loop, loopsOf, type Within } from "./loops.ts";
import { quote, unquote } from "./quoting.ts";
import { definitionOf, outputOf, taskEntry, workflowStatusOf } from "./records.ts";
import { type Settings, settingsOf } from "./settings.ts";

export type Environment = (name: string) => string | null;

/** How many iterations back a name is looked for: a task may be in a branch that the last iterations did not take. */
const lookBackMax = 20;

export class RunContext implements Context {
  readonly #plan: Plan;
  readonly #scope: Scope;
  readonly #outputs = new Set<number>();
  readonly #records = new Set<number>();
  #all = false;
  #read: Settings | undefined;
  readonly environment: Environment;

  constructor(plan: Plan, scope: Scope, environment: Environment) {
    this.#plan = plan;
    this.#scope = scope;
    this.environment = environment;
  }

  get taskId(): string | null {
    const { self, run } = this.#scope;
    return self === null ? null : attemptIdOf(taskIdOf(run.id, self.node), self.attempt);
  }

  looked(values: number): void {
    this.#scope.looked?.(values);
  }

  needs(): Needs {
    return { needs: [...this.#outputs], records: [...this.#records], all: this.#all };
  }

  entry(name: string, field: string | null): Json | undefined {
    if (name === "workflow") return this.#workflow(field);
    const loop = loopsOf(this.#plan).named(name);
    const within = this.#within;
    if (loop !== undefined && within?.loop === loop && within.iteration > 0 && field === "output") return this.#progress(within);
    const at = this.#plan.index.get(name) ?? this.#newest(name);
    if (at === undefined) return undefined;
    if (at === null || isGate(this.#plan, at)) return null;
    const node = this.#plan.nodes[at] as PlanNode;
    if (field === "output" && node.kind !== "run") return this.#output(at);
    const record = this.#scope.record(at);
    if (record === undefined) {
      this.#records.add(at);
      return undefined;
    }
    if (record === null) return null;
    return field === "output" ? { output: outputOf(node, record) } : this.#task(node, record);
  }

  get #within(): Within | undefined {
    const { self } = this.#scope;
    return self === null ? undefined : loopsOf(this.#plan).of(self.node);
  }

  /** The output of a loop as tasks inside it read it: the number of the iteration, and the item. */
  #progress({ loop, iteration }: Within): Json | undefined {
    const items = loop.items === null ? { value: null } : fillValue(loop.items, this);
    if ("needs" in items) return undefined;
    const list = loop.items === null || !("value" in items) ? null : itemsOf(unquote(items.value));
    return { output: { iteration, ...itemOf(list, iteration) } };
  }

  /**
   * The newest task with this name in a loop. Inside the loop: that of this iteration, or of an earlier one. Null when there is none,
   * undefined when a record must be loaded first.
   */
  #newest(name: string): number | null | undefined {
    const loop = loopsOf(this.#plan).around(name);
    if (loop === undefined) return null;
    const within = this.#within;
    let from = loop.bodies.length;
    if (within?.loop === loop && within.iteration > 0) from = within.iteration;
    else {
      const last = this.#lastOf(loop);
      if (last === undefined) return undefined;
      from = last;
    }
    for (let iteration = from; iteration > Math.max(0, from - lookBackMax); iteration--) {
      const at = this.#plan.index.get(inIteration(name, iteration));
      if (at === undefined || at === this.#scope.self?.node) continue;
      const record = this.#scope.record(at);
      if (record === undefined) {
        this.#records.add(at);
        return undefined;
      }
      if (record !== null) return at;
    }
    return null;
  }

  /** The last iteration of a loop that has ended; 0 for one that has not. */
  #lastOf(loop: Loop): number | undefined {
    const output = this.#scope.output(loop.at);
    if (output === undefined) {
      this.#outputs.add(loop.at);
      return undefined;
    }
    const { iteration } = isObject(output) ? (output as JsonObject) : {};
    return typeof iteration === "number" ? iteration : 0;
  }

  isData(name: string, field: string | null): boolean {
    return name === "workflow" ? field === "input" && !this.#settings.quotedInput : field === "output";
  }

  /** Only the input of a step's record is quoted. */
  #task(node: PlanNode, record: TaskRow): JsonObject {
    const { input, ...data } = taskEntry(this.#scope.run, node, record);
    return { ...(quote(data) as JsonObject), input: input as JsonObject };
  }

  get #settings(): Settings {
    this.#read ??= settingsOf(this.#scope.run);
    return this.#read;
  }

  #output(at: number): Json | undefined {
    const output = this.#scope.output(at);
    if (output !== undefined) return { output };
    this.#outputs.add(at);
    return undefined;
  }

  document(): Json | undefined {
    const records = this.#scope.records();
    if (records === undefined) {
      this.#all = true;
      return undefined;
    }
    const document: JsonObject = { workflow: this.#workflow(null) };
    for (const [at, record] of records) {
      const node = this.#plan.nodes[at] as PlanNode;
      if (!isGate(this.#plan, at)) document[node.id] = this.#task(node, record);
    }
    return document;
  }

  #workflow(field: string | null): JsonObject {
    // The two most used fields. Neither needs the rest of the entry.
    if (field === "input") return { input: this.#scope.input() };
    if (field === "variables") return { variables: this.#scope.variables() };
    const { run } = this.#scope;
    const settings = this.#settings;
    const { schemaVersion, name } = definitionOf(this.#plan);
    const data: JsonObject = {
      output: run.output === null ? {} : (parseExact(run.output) as Json),
      status: workflowStatusOf(run.state),
      workflowId: run.id,
      parentWorkflowId: settings.parentWorkflowId ?? null,
      parentWorkflowTaskId: settings.parentWorkflowTaskId ?? null,
      workflowType: name,
      version: settings.version,
      correlationId: settings.correlationId ?? null,
      reasonForIncompletion: run.error,
      schemaVersion,
      createTime: run.createdAt,
      taskToDomain: { ...settings.taskToDomain },
    };
    const input = this.#scope.input();
    return {
      ...(quote(data) as JsonObject),
      input: settings.quotedInput ? input : quote(input),
      variables: this.#scope.variables(),
    };
  }
}
