// The model of a run's graph: its nodes, with one node for each folded group, and the state of every step.

import type { RunGraph } from "../core/shapes.ts";

export interface StepState {
  readonly state: string;
  readonly attempts: number;
  readonly durationMs: number | null;
}

export interface GraphNode {
  readonly label: string;
  readonly note: string;
  readonly kind: string;
  /** The steps in this node: one, or all of a folded group. */
  readonly steps: readonly number[];
  /** The group that this node shows; null for a step. */
  readonly group: number | null;
}

export interface GraphEdge {
  readonly from: number;
  readonly to: number;
  readonly kind: string;
  readonly label: string | null;
}

export interface GraphModel {
  readonly nodes: readonly GraphNode[];
  readonly edges: readonly GraphEdge[];
  /** The node that shows a step, by its place in the columns. */
  readonly nodeOf: readonly number[];
}

/** From this number of steps on, groups are folded at first. */
const foldFrom = 300;

export function groupsOf(graph: RunGraph): ReadonlySet<number> {
  return graph.ids.length < foldFrom ? new Set() : new Set(graph.groupList.map((_group, at) => at));
}

export function modelOf(graph: RunGraph, folded: ReadonlySet<number>): GraphModel {
  const nodes: { label: string; note: string; kind: string; steps: number[]; group: number | null }[] = [];
  const nodeOfGroup = new Map<number, number>();
  const nodeOf = graph.ids.map((id, at) => {
    const group = outermostFolded(graph, graph.groups[at] ?? null, folded);
    const known = group === null ? undefined : nodeOfGroup.get(group);
    if (known !== undefined) {
      nodes[known]?.steps.push(at);
      return known;
    }
    const place = nodes.length;
    if (group === null)
      nodes.push({ label: graph.commands?.[at] ?? id, note: noteOf(graph, at), kind: graph.kinds[at] ?? "task", steps: [at], group });
    else {
      nodeOfGroup.set(group, place);
      nodes.push({ label: graph.groupList[group]?.label ?? "", note: "", kind: "group", steps: [at], group });
    }
    return place;
  });
  const seen = new Set<string>();
  const edges: GraphEdge[] = [];
  graph.edges.forEach(([from, to], at) => {
    const ends = [nodeOf[from] as number, nodeOf[to] as number] as const;
    const key = ends.join(" ");
    if (ends[0] === ends[1] || seen.has(key)) return;
    seen.add(key);
    edges.push({ from: ends[0], to: ends[1], kind: graph.edgeKinds[at] ?? "after", label: graph.edgeLabels[at] ?? null });
  });
  return { nodes, edges, nodeOf };
}

function noteOf(graph: RunGraph, at: number): string {
  const kind = graph.kinds[at];
  if (kind === "run") return `runs ${graph.workflows[at] ?? "a workflow"}`;
  if (kind === "wait") return "waits";
  if (kind === "join") return "joins";
  if (kind === "instant") return "at once";
  if (kind === "end") return "ends the run";
  const lane = graph.lanes[at] ?? null;
  return lane === null || lane === graph.ids[at] ? "" : lane;
}

function outermostFolded(graph: RunGraph, group: number | null, folded: ReadonlySet<number>): number | null {
  let found: number | null = null;
  for (let at = group; at !== null; at = graph.groupList[at]?.parent ?? null) if (folded.has(at)) found = at;
  return found;
}

const importance = ["failed", "held", "cancelling", "queued", "offered", "awaiting", "sleeping", "cancelled", "done", "skipped", "waiting"];

/** The most important state among all steps of a node. */
export function stateOf(node: GraphNode, states: ReadonlyMap<number, StepState>, numbers: readonly number[]): StepState {
  const all = node.steps.map((at) => states.get(numbers[at] ?? -1));
  if (all.length === 1) return all[0] ?? nothing;
  const ranked = all.map((one) => importance.indexOf(one?.state ?? "waiting")).filter((rank) => rank >= 0);
  const state = importance[Math.min(...ranked)] ?? "waiting";
  return { state: state === "done" && all.includes(undefined) ? "held" : state, attempts: 1, durationMs: null };
}

const nothing: StepState = { state: "waiting", attempts: 0, durationMs: null };
