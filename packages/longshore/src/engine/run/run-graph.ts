// The graph of a run for display, as columns: the nodes that people see, and the edges between them. It is made from a plan. The plan of a
// durable function has only one node, so its graph is made from the commands that it has given (function-graph.ts).

import { type Sliced, sliceItems } from "../../core/slices/slice-work.ts";
import { namedBy, type Plan, type PlanNode, requiredOf } from "./plan.ts";

/**
 * `after`: the first must end. `first-part`: its first part is enough. `threshold`: some of the nodes before are enough. `starts`: the first
 * starts the second, as a fork does. `case`: the first chooses the second.
 */
export const edgeKinds = ["after", "starts", "case", "first-part", "threshold"] as const;
export type EdgeKind = (typeof edgeKinds)[number];

/** Nodes that can be folded to one: a branch. */
export interface GraphGroup {
  /** The case that was chosen, or the first step of the branch. */
  readonly label: string;
  /** The position of the node that starts or chooses the branch; null when this node is not shown. */
  readonly of: number | null;
  /** The group around this one. */
  readonly parent: number | null;
}

/** Columns of the same length: one entry for each node, and one for each edge. Positions are those in these columns. */
export interface RunGraph {
  /** Numbers of the nodes in the run. */
  readonly nodes: readonly number[];
  readonly ids: readonly string[];
  readonly kinds: readonly PlanNode["kind"][];
  readonly lanes: readonly (string | null)[];
  /** The workflow that a node of the kind `run` starts. */
  readonly workflows: readonly (string | null)[];
  /** The innermost group of each node. */
  readonly groups: readonly (number | null)[];
  /** Kind and name of each command of a durable function. */
  readonly commands?: readonly (string | null)[];
  readonly groupList: readonly GraphGroup[];
  readonly edges: readonly (readonly [from: number, to: number])[];
  readonly edgeKinds: readonly EdgeKind[];
  readonly edgeLabels: readonly (string | null)[];
  /** True when there are more edges than `edgesMax`: the others are left out. */
  readonly isCut: boolean;
}

/**
 * More edges than this cannot be drawn. The limit also bounds the response: hidden nodes between two large layers make an edge from each
 * node of one to each node of the other.
 */
export const edgesMax = 100_000;

interface Lead {
  readonly from: number;
  readonly kind: EdgeKind;
  readonly label: string | null;
}

export function* planGraph(plan: Plan): Sliced<RunGraph> {
  const leads = yield* leadsOf(plan);
  const { groupOf, list } = yield* groupsOf(plan, leads);
  yield;
  const shown = plan.nodes.flatMap(({ hidden }, at) => (hidden ? [] : [at]));
  const positions = new Map(shown.map((node, at) => [node, at]));
  const edges: [number, number][] = [];
  const kinds: EdgeKind[] = [];
  const labels: (string | null)[] = [];
  let isCut = false;
  let worked = 0;
  for (const [to, node] of shown.entries()) {
    // Most nodes of a wide graph have no edges that lead to them.
    if (++worked % sliceItems === 0) yield;
    for (const { from, kind, label } of throughHidden(plan, leads, node)) {
      if (++worked % sliceItems === 0) yield;
      if (edges.length === edgesMax) isCut = true;
      else {
        edges.push([positions.get(from) as number, to]);
        kinds.push(kind);
        labels.push(label);
      }
    }
  }
  yield;
  const nodes = shown.map((at) => plan.nodes[at] as PlanNode);
  return {
    nodes: shown,
    ids: nodes.map(({ id }) => id),
    kinds: nodes.map(({ kind }) => kind),
    lanes: nodes.map((node) => (node.kind === "task" ? (node.lanes.at(-1)?.name ?? null) : null)),
    workflows: nodes.map((node) => (node.kind === "run" ? node.workflow : null)),
    groups: shown.map((at) => groupOf[at] ?? null),
    groupList: list.map(({ label, of, parent }) => ({ label, of: positions.get(of) ?? null, parent })),
    ...{ edges, edgeKinds: kinds, edgeLabels: labels, isCut },
  };
}

/** For each node, the edges that lead to it. */
function* leadsOf(plan: Plan): Sliced<Lead[][]> {
  const chosen = plan.nodes.map(choicesOf);
  const leads: Lead[][] = [];
  let worked = 0;
  for (const [at, node] of plan.nodes.entries()) {
    const early = new Set(node.onFirstPart);
    const isSome = requiredOf(node) < node.after.length;
    const reachable =
      node.waitsFor === "any" ? node.after.filter((from) => chosen[from]?.has(at) || !alwaysChooses(plan, from)) : node.after;
    const waits = reachable.map((from): Lead => {
      const choice = chosen[from]?.get(at);
      if (choice !== undefined) return { from, ...choice };
      if (early.has(from)) return { from, kind: "first-part", label: null };
      return isSome
        ? { from, kind: "threshold", label: `${requiredOf(node)} of ${node.after.length}` }
        : { from, kind: "after", label: null };
    });
    const starts = (plan.starters.get(at) ?? []).flatMap((from) => {
      const choice = chosen[from]?.get(at);
      // A fork starts the wait of its join, but in the graph the join follows the ends of the branches.
      const isJoined = node.kind === "join" && waits.length > 0 && !plan.nodes[from]?.hidden;
      return choice === undefined || isJoined ? [] : [{ from, ...choice }];
    });
    leads.push([...waits, ...starts]);
    worked += 1 + waits.length + starts.length;
    if (worked >= sliceItems) {
      worked = 0;
      yield;
    }
  }
  return leads;
}

/** Returns whether every case names a next node. Then this node never continues with its own dependents. */
function alwaysChooses(plan: Plan, at: number): boolean {
  const node = plan.nodes[at] as PlanNode;
  if (node.kind !== "instant" || node.choice === undefined) return false;
  const { cases, otherwise } = node.choice;
  return otherwise.length > 0 && [...cases.values()].every(({ length }) => length > 0);
}

/** How a node starts or chooses others. A node of several cases has the names of all of them. */
function choicesOf(node: PlanNode): Map<number, { kind: "starts" | "case"; label: string | null }> | undefined {
  if (node.kind !== "instant" || namedBy(node).length === 0) return undefined;
  const found = new Map<number, { kind: "starts" | "case"; label: string | null }>();
  for (const next of node.starts ?? []) found.set(next, { kind: "starts", label: null });
  const choose = (next: number, name: string) => {
    const known = found.get(next);
    found.set(next, { kind: "case", label: known?.kind === "case" ? `${known.label}, ${name}` : name });
  };
  for (const [name, nexts] of node.choice?.cases ?? []) for (const next of nexts) choose(next, name);
  for (const next of node.choice?.otherwise ?? []) choose(next, "otherwise");
  return found;
}

/** The edges that lead to a node. A hidden node is replaced by the nodes that lead to it; a choice on the way stays visible. */
function* throughHidden(plan: Plan, leads: readonly Lead[][], at: number): Generator<Lead, void> {
  const known = new Set<number>();
  const stack = [...(leads[at] ?? [])].reverse();
  for (let lead = stack.pop(); lead !== undefined; lead = stack.pop()) {
    const { from, kind, label } = lead;
    if (known.has(from)) continue;
    known.add(from);
    if (!plan.nodes[from]?.hidden) yield lead;
    else for (const further of [...(leads[from] ?? [])].reverse()) stack.push(kind === "after" ? further : { ...further, kind, label });
  }
}

interface Group {
  readonly label: string;
  readonly of: number;
  readonly parent: number | null;
  readonly depth: number;
}

/** Every branch of a node that chooses or starts is a group. A node that several branches lead to is in the group around them. */
function* groupsOf(plan: Plan, leads: readonly Lead[][]): Sliced<{ groupOf: (number | null)[]; list: Group[] }> {
  const groupOf: (number | null)[] = plan.nodes.map(() => null);
  const list: Group[] = [];
  const known = new Map<string, number>();
  const open = ({ from, kind, label }: Lead, to: number): number => {
    const text = kind === "case" ? (label ?? "") : (plan.nodes[to] as PlanNode).id;
    const key = `${from} ${text}`;
    const found = known.get(key);
    if (found !== undefined) return found;
    const parent = groupOf[from] ?? null;
    known.set(key, list.length);
    return list.push({ label: text, of: from, parent, depth: parent === null ? 0 : (list[parent] as Group).depth + 1 }) - 1;
  };
  let worked = 0;
  for (const at of inOrder(plan, leads)) {
    if (++worked % sliceItems === 0) yield;
    const isJoin = plan.nodes[at]?.kind === "join";
    let group: number | null | undefined;
    for (const lead of leads[at] ?? []) {
      const branches = !isJoin && (lead.kind === "case" || lead.kind === "starts");
      const next = branches ? open(lead, at) : (groupOf[lead.from] ?? null);
      group = group === undefined ? next : around(list, group, next);
    }
    groupOf[at] = group ?? null;
  }
  return { groupOf, list };
}

/** The innermost group around both. */
function around(list: readonly Group[], one: number | null, other: number | null): number | null {
  let [a, b] = [one, other];
  while (a !== b) {
    if (a === null || b === null) return null;
    const [first, second] = [list[a] as Group, list[b] as Group];
    if (first.depth >= second.depth) a = first.parent;
    else b = second.parent;
  }
  return a;
}

/** The nodes, each behind those that lead to it. */
function* inOrder(plan: Plan, leads: readonly Lead[][]): Generator<number, void> {
  const left = leads.map(({ length }) => length);
  const following: number[][] = plan.nodes.map(() => []);
  for (const [at, all] of leads.entries()) for (const { from } of all) following[from]?.push(at);
  const ready = left.flatMap((count, at) => (count === 0 ? [at] : []));
  // The loop also visits entries that it adds.
  for (const at of ready) {
    yield at;
    for (const next of following[at] ?? []) {
      const count = (left[next] as number) - 1;
      left[next] = count;
      if (count === 0) ready.push(next);
    }
  }
}
