// The graph of a durable function: the commands that it has given so far, in their order. Only the code knows the real dependencies, so the
// edges are derived from the records: a command follows the results that the function received after its previous commands.

import { type Sliced, sliceItems } from "../../core/slices/slice-work.ts";
import { commandOf, isCommand } from "./driven-state.ts";
import type { Plan } from "./plan.ts";
import type { RecordTimes } from "./record-times.ts";
import type { EdgeKind, RunGraph } from "./run-graph.ts";
import { taskNode } from "./task-node.ts";

/**
 * Maximum number of edges between a group of results and the commands after it. Above it, one of the commands has edges from all the
 * results, and the others only from the newest.
 */
const pairsMax = 256;

/** `records` are those of the run, in the order of their nodes. */
export function* functionGraph(plan: Plan, records: readonly RecordTimes[]): Sliced<RunGraph> {
  const shown = records.filter(({ node, state }) => node === 0 || state !== "forgotten");
  const edges: [number, number][] = [];
  const edgeKinds: EdgeKind[] = [];
  const lead = (from: number, to: number, kind: EdgeKind) => {
    edges.push([from, to]);
    edgeKinds.push(kind);
  };
  const places = new Map(shown.flatMap(({ node, ordinal }, at) => (node > 0 && ordinal > 0 ? [[ordinal, at] as const] : [])));
  const groups = new Map<number, number[]>();
  for (const [at, record] of shown.entries()) {
    if (record.node === 0) continue;
    const received = receivedBy(record);
    const members = groups.get(received);
    if (members === undefined) groups.set(received, [at]);
    else members.push(at);
  }
  let before = 0;
  let worked = 0;
  for (const [received, members] of [...groups].sort(([a], [b]) => a - b)) {
    const given: number[] = [];
    for (let place = before + 1; place <= received; place++) {
      const at = places.get(place);
      if (at !== undefined) given.push(at);
    }
    before = received;
    const isSmall = given.length * members.length <= pairsMax;
    let last: number | null = null;
    for (const [index, to] of members.entries()) {
      if (++worked % sliceItems === 0) yield;
      if (last !== null) lead(last, to, "after");
      else if (given.length === 0) lead(0, to, "starts");
      else for (const from of isSmall || index === 0 ? given : given.slice(-1)) if (from < to) lead(from, to, "after");
      // The function has the result of a side effect at once, and continues with it.
      if (isSideEffect(shown[to] as RecordTimes)) last = to;
    }
  }
  const nodes = shown.map((record) => taskNode(plan, { ...record, priority: 0, limits: [] }));
  return {
    nodes: shown.map(({ node }) => node),
    ids: shown.map(({ step }) => step),
    kinds: nodes.map((node) => node?.kind ?? "task"),
    lanes: shown.map(({ lane }) => lane?.name ?? null),
    workflows: nodes.map((node) => (node?.kind === "run" ? node.workflow : null)),
    groups: shown.map(() => null),
    commands: shown.map((record) => commandOf(record) ?? null),
    groupList: [],
    ...{ edges, edgeKinds, edgeLabels: edges.map(() => null), isCut: false },
  };
}

/** The number of the newest result that the function had received when it gave the command. */
function receivedBy({ command }: RecordTimes): number {
  return Number.parseInt(command ?? "0", 10) || 0;
}

function isSideEffect(record: RecordTimes): boolean {
  return isCommand(record, "local") || isCommand(record, "version");
}
