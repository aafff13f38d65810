// Maps: one task for each item of a list, in a child run. Its definition is made when the number of items is known. A long list is cut into
// parts, each in a separate child run. So no run has very many steps, and the cost of an item does not grow with the list.

import { createHash } from "node:crypto";
import { isObject, type Json } from "../../../core/json/json.ts";
import { mapInSlices, type Sliced } from "../../../core/slices/slice-work.ts";
import { shown } from "../../../core/text.ts";
import type { ChildDefinition, Scope, StepFailure } from "../../../engine/run/dialect.ts";
import { makePlanInSlices } from "../../../engine/run/make-plan.ts";
import type { Placement, Plan, PlanNode, TaskNode } from "../../../engine/run/plan.ts";
import type { Run } from "../../../engine/run/run.ts";
import { stepPlacement } from "../../../engine/run/step-placement.ts";
import { type ListSource, type MapSource, type Reference, references, type StepSource, type Value } from "./source.ts";
import { Computed, filled, partOf, type Reading, Unresolved } from "./template.ts";

/** The longest list of one map. */
const itemsMax = 20_000;
/** Items in one run. The run parses its list each time that it starts some of them, and reads all their outputs at its end. */
const partItems = 500;

/** The source of a child run for items, in the node that starts it. */
class ListOrigin {
  readonly step: ListSource["step"];
  readonly first: number;
  readonly isPart: boolean;

  constructor(step: ListSource["step"], first: number, isPart: boolean) {
    this.step = step;
    this.first = first;
    this.isPart = isPart;
  }
}

/** The items of a child run, and the values that all of their inputs share. */
interface ListInput {
  readonly items: Json[];
  readonly shared?: Json[];
}

/** References in the values of a map to results that exist before it starts. */
export function mapReferences({ input, map }: StepSource): Reference[] {
  return [...references(input), ...sharedOf(map)];
}

/** The fields of the node that starts the child run of a map. */
export function mapNode({ input: list, after, when, always, totalMs, ...step }: StepSource) {
  return {
    kind: "run" as const,
    workflow: null,
    resumes: true,
    input: new MapInput(list, sharedOf(step.map)),
    origin: new ListOrigin(step, 0, false),
  };
}

/** The definition of a child run that `mapNode`, or a node of `listPlan`, starts. */
export function listDefinition({ id, origin }: Pick<PlanNode, "id" | "origin">, run: Run, input: Json): ChildDefinition {
  const { step, first, isPart } = origin as ListOrigin;
  const count = (input as unknown as ListInput).items.length;
  const source = JSON.stringify({ list: { step, first, count, ...(isPart ? { isPart } : {}) } satisfies ListSource });
  const hash = createHash("sha256").update(source).digest("hex").slice(0, 32);
  return { id: `map-${hash}`, source, workflow: `${run.workflow}/${id}`, priority: run.priority };
}

export function* listPlan(list: ListSource): Sliced<Plan> {
  const { count, isPart } = list;
  const starts = Array.from({ length: Math.ceil(count / partItems) }, (_, at) => at * partItems);
  const inParts = count > partItems && !isPart;
  const nodes = inParts ? starts.map((at) => partNode(list, at)) : yield* mapInSlices(Array.from({ length: count }), itemNodes(list));
  return yield* makePlanInSlices({ dialect: "code", nodes, output: new ListOutput(inParts), origin: list });
}

function partNode({ step, count }: ListSource, at: number): PlanNode {
  const end = Math.min(at + partItems, count);
  return {
    ...{ kind: "run", id: `${at}-${end - 1}`, workflow: null, resumes: true, onFailure: "end" },
    ...{ input: new PartInput(at, end), after: [], waitsFor: "done", timeouts: {} },
    origin: new ListOrigin(step, at, true),
  };
}

/** All nodes share the fields of their step. */
function itemNodes({ step, first }: ListSource): (item: unknown, at: number) => TaskNode {
  const { task, concurrency } = step.map as MapSource;
  const common = {
    ...{ kind: "task" as const, onFailure: "end" as const, after: [], waitsFor: "done" as const, ...stepPlacement(task, step) },
    ...{ timeouts: { claimMs: step.claimMs, endMs: step.timeoutMs }, placed: concurrency !== undefined },
  };
  return (_, at) => ({ ...common, id: String(first + at), input: new ItemInput(at) });
}

/** The items of a map count together, also when they are in several runs. */
export function itemPlacement(node: TaskNode, plan: Plan, { run }: Scope): Placement {
  const { step, isPart } = plan.origin as ListSource;
  const { lanes, priority, retry, limits } = node;
  const { parentTaskId } = run;
  const whole = isPart && parentTaskId !== null ? parentTaskId.slice(0, parentTaskId.lastIndexOf(".")) : run.id;
  return { lanes, priority, retry, limits: [...limits, { key: `map ${whole}`, held: (step.map as MapSource).concurrency }] };
}

/** The error of a child run for items: its own error, or that of the part in which an item failed. Undefined for any other plan. */
export function explainItem({ origin, nodes }: Plan, { node, state, error }: StepFailure): string | undefined {
  if (!isList(origin)) return undefined;
  const { kind, id } = nodes[node] as PlanNode;
  return kind === "run" && error !== null ? error : `item ${id} ${state}${error === null ? "" : `: ${error}`}`;
}

function isList(origin: unknown): origin is ListSource {
  return isObject(origin) && "step" in origin && "count" in origin;
}

/** The list of a map, and the other values that the inputs of its tasks need. */
class MapInput extends Computed {
  readonly #list: Value;
  readonly #shared: readonly Value[];

  constructor(list: Value, shared: readonly Reference[]) {
    super();
    this.#list = list;
    this.#shared = shared.map(($ref) => ({ $ref }) as unknown as Value);
  }

  override from({ fill }: Reading): Json {
    const items = fill(this.#list);
    const shared = this.#shared.map(fill);
    if (!Array.isArray(items)) throw new Unresolved(`it maps over ${shown(items)}, expected a list`);
    if (items.length > itemsMax) throw new Unresolved(`it maps over ${items.length} items, at most ${itemsMax} are allowed`);
    return shared.length === 0 ? { items } : { items, shared };
  }
}

/** Some of the items of its run. */
class PartInput extends Computed {
  readonly #first: number;
  readonly #end: number;

  constructor(first: number, end: number) {
    super();
    this.#first = first;
    this.#end = end;
  }

  override from({ scope }: Reading): Json {
    const { items, ...rest } = scope.input() as unknown as ListInput;
    return { ...rest, items: items.slice(this.#first, this.#end) } as { [key: string]: Json };
  }
}

/** The input of the task for one item of its run. */
class ItemInput extends Computed {
  readonly #at: number;

  constructor(at: number) {
    super();
    this.#at = at;
  }

  override from({ plan, scope }: Reading): Json {
    const { step, first } = plan.origin as ListSource;
    const { each } = step.map as MapSource;
    const { items, shared = [] } = scope.input() as unknown as ListInput;
    const item = items[this.#at] as Json;
    if (each === undefined) return item;
    const keys = sharedOf(step.map).map(keyOf);
    return filled(each, (reference) => {
      if (reference.item === "index") return first + this.#at;
      if (reference.item === "value") return partOf(item, reference, `item ${first + this.#at}`);
      return shared[keys.indexOf(keyOf(reference))] as Json;
    });
  }
}

/** The outputs of all items, in the order of the list. */
class ListOutput extends Computed {
  readonly #inParts: boolean;

  constructor(inParts: boolean) {
    super();
    this.#inParts = inParts;
  }

  override from({ plan, output }: Reading): Json {
    const outputs = plan.nodes.map((_, node) => output(node));
    return this.#inParts ? outputs.flat() : outputs;
  }
}

/** The references in `each` to values that exist before the map, each once. They are resolved together with the list. */
function sharedOf(map: MapSource | undefined): Reference[] {
  const found = map?.each === undefined ? [] : references(map.each).filter(({ item }) => item === undefined);
  return [...new Map(found.map((reference) => [keyOf(reference), reference])).values()];
}

function keyOf({ step, path }: Reference): string {
  return JSON.stringify([step ?? null, ...path]);
}
