// Builds a plan from the nodes that a dialect has compiled: the indexes that the decider needs, and the check for cycles.

import type { DebounceSource } from "../../core/debounce.ts";
import type { EventTrigger } from "../../core/event-trigger.ts";
import type { JsonSchema } from "../../core/schema/json-schema.ts";
import { atOnce, eachInSlices, mapInSlices, type Sliced, sliceItems } from "../../core/slices/slice-work.ts";
import { type CheckedLimit, type StartLimit, withDefaults } from "../../core/start-limit.ts";
import { namedBy, type Plan, type PlanNode, type Template } from "./plan.ts";

interface PlanFields {
  dialect: string;
  nodes: readonly PlanNode[];
  output: Template;
  /**
   * Makes the plan lazy: only some nodes run. These are wanted from the start, with all that they demand; others become wanted when they
   * are chosen.
   */
  wanted?: readonly number[];
  timeoutMs?: number | null;
  outputAlways?: boolean;
  judgedByOutput?: boolean;
  successor?: boolean;
  keepsCounting?: boolean;
  reopensParent?: boolean;
  waitsTakeReports?: boolean;
  driven?: boolean;
  inputSchema?: JsonSchema | undefined;
  inputForm?: JsonSchema | undefined;
  events?: readonly EventTrigger[] | undefined;
  debounce?: DebounceSource | undefined;
  limit?: StartLimit | CheckedLimit | undefined;
  origin?: unknown;
}

export function makePlan(fields: PlanFields): Plan {
  return atOnce(makePlanInSlices(fields));
}

/** Builds a plan. `nodes` must name only existing nodes in `after`, without cycles: dialects check that with `findCycle` first. */
export function* makePlanInSlices(fields: PlanFields): Sliced<Plan> {
  const unique = yield* mapInSlices(fields.nodes, withoutRepeats);
  const nodes = fields.wanted === undefined ? unique : yield* markDemanded(unique, fields.wanted);
  const dependents: number[][] = nodes.map(() => []);
  const index = new Map<string, number>();
  yield* eachInSlices(nodes, ({ id, after }, at) => {
    index.set(id, at);
    for (const upstream of after) dependents[upstream]?.push(at);
  });
  yield;
  return {
    dialect: fields.dialect,
    nodes,
    index,
    dependents,
    onFirstPart: yield* onFirstPartOf(nodes),
    starters: yield* startersOf(nodes, dependents),
    output: fields.output,
    lazy: fields.wanted !== undefined,
    timeoutMs: fields.timeoutMs ?? null,
    outputAlways: fields.outputAlways ?? false,
    judgedByOutput: fields.judgedByOutput ?? false,
    successor: fields.successor ?? false,
    keepsCounting: fields.keepsCounting ?? false,
    reopensParent: fields.reopensParent ?? false,
    waitsTakeReports: fields.waitsTakeReports ?? false,
    driven: fields.driven ?? false,
    inputSchema: fields.inputSchema,
    inputForm: fields.inputForm ?? fields.inputSchema,
    events: fields.events,
    debounce: fields.debounce,
    limit: fields.limit && withDefaults(fields.limit),
    origin: fields.origin,
  };
}

function withoutRepeats(node: PlanNode): PlanNode {
  if (node.after.length < 2) return node;
  const after = new Set(node.after);
  return after.size === node.after.length ? node : { ...node, after: [...after] };
}

function* onFirstPartOf(nodes: readonly PlanNode[]): Sliced<Map<number, Set<number>>> {
  const found = new Map<number, Set<number>>();
  yield* eachInSlices(nodes, ({ id, after, onFirstPart, threshold = 1 }, at) => {
    if (threshold < 1 || (after.length > 0 && threshold > after.length))
      throw new Error(`Node ${id} has a threshold of ${threshold}, expected 1 to ${after.length}.`);
    if (onFirstPart === undefined) return;
    const known = new Set(after);
    for (const source of onFirstPart) {
      if (!known.has(source)) throw new Error(`Node ${id} waits for a part of node ${source}, but not for the node.`);
      const waiting = found.get(source);
      if (waiting === undefined) found.set(source, new Set([at]));
      else waiting.add(at);
    }
  });
  return found;
}

function* startersOf(nodes: readonly PlanNode[], dependents: readonly (readonly number[])[]): Sliced<Map<number, number[]>> {
  const starters = new Map<number, number[]>();
  yield* eachInSlices(nodes, (node, at) => {
    const named = namedBy(node);
    if (named.length === 0) return;
    const waiting = new Set(dependents[at]);
    for (const next of named) {
      if (waiting.has(next)) continue;
      const known = starters.get(next);
      if (known === undefined) starters.set(next, [at]);
      else known.push(at);
    }
  });
  return starters;
}

/**
 * Some nodes are wanted from the start, independent of choices. They need no counter in each run, so only the other nodes are marked as
 * demanded.
 */
function* markDemanded(nodes: readonly PlanNode[], wanted: readonly number[]): Sliced<PlanNode[]> {
  const certain = new Set(wanted);
  let walked = 0;
  // The loop also visits entries that it adds.
  for (const at of certain) {
    if (++walked % sliceItems === 0) yield;
    for (const demanded of nodes[at]?.demands ?? []) certain.add(demanded);
  }
  return yield* mapInSlices(nodes, (node, at): PlanNode => {
    const known = node.demands ?? [];
    const demands = known.filter((other) => !certain.has(other));
    if (certain.has(at) && demands.length === known.length) return node;
    return { ...node, ...(node.demands === undefined ? {} : { demands }), ...(certain.has(at) ? {} : { demanded: true }) };
  });
}

/** The ids along one cycle of `after` references, or null. It is iterative, so a long chain does not overflow the stack. */
export function findCycle(nodes: readonly { id: string; after: readonly number[] }[]): string[] | null {
  const state = new Uint8Array(nodes.length);
  for (let root = 0; root < nodes.length; root++) {
    if (state[root] !== 0) continue;
    const path: { node: number; next: number }[] = [{ node: root, next: 0 }];
    state[root] = 1;
    for (let top = path.at(-1); top !== undefined; top = path.at(-1)) {
      const upstream = nodes[top.node]?.after[top.next++];
      if (upstream === undefined) {
        state[top.node] = 2;
        path.pop();
      } else if (state[upstream] === 1) {
        const ids = path.slice(path.findIndex((entry) => entry.node === upstream)).map((entry) => nodes[entry.node]?.id ?? "");
        return [...ids, nodes[upstream]?.id ?? ""];
      } else if (state[upstream] === 0) {
        state[upstream] = 1;
        path.push({ node: upstream, next: 0 });
      }
    }
  }
  return null;
}
