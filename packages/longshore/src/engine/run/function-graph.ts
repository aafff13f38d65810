// The graph of a durable function: the commands that it has given so far. Only the code knows the real dependencies. So the edges come from
// the records: a command follows the results that the function received after its previous commands.

import { eachInSlices, type Sliced, sliceItems } from "../../core/slices/slice-work.ts";
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
  const shown: RecordTimes[] = [];
  const places = new Map<number, number>();
  const groups = new Map<number, number[]>();
  yield* eachInSlices(records, (record) => {
    const { node, state, ordinal } = record;
    if (node > 0 && state === "forgotten") return;
    const at = shown.push(record) - 1;
    if (node === 0) return;
    if (ordinal > 0) places.set(ordinal, at);
    const received = receivedBy(record);
    const members = groups.get(received);
    if (members === undefined) groups.set(received, [at]);
    else members.push(at);
  });
  const edges: [number, number][] = [];
  const edgeKinds: EdgeKind[] = [];
  const lead = (from: number, to: number, kind: EdgeKind) => {
    edges.push([from, to]);
    edgeKinds.push(kind);
  };
  const numbered = [...places].sort(([a], [b]) => a - b);
  let next = 0;
  let worked = 0;
  for (const [received, members] of [...groups].sort(([a], [b]) => a - b)) {
    const given: number[] = [];
    // Not a loop over numbers: a faulty worker may name results that the run does not have.
    for (let [place, at] = numbered[next] ?? []; place !== undefined && place <= received; [place, at] = numbered[++next] ?? [])
      given.push(at as number);
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
  const columns = {
    nodes: [] as number[],
    ids: [] as string[],
    kinds: [] as RunGraph["kinds"][number][],
    lanes: [] as (string | null)[],
    workflows: [] as (string | null)[],
    commands: [] as (string | null)[],
  };
  yield* eachInSlices(shown, (record) => {
    const node = taskNode(plan, { ...record, priority: 0, limits: [] });
    columns.nodes.push(record.node);
    columns.ids.push(record.step);
    columns.kinds.push(node?.kind ?? "task");
    columns.lanes.push(record.lane?.name ?? null);
    columns.workflows.push(node?.kind === "run" ? node.workflow : null);
    columns.commands.push(commandOf(record) ?? null);
  });
  const groupsOf = shown.map(() => null);
  return { ...columns, groups: groupsOf, groupList: [], ...{ edges, edgeKinds, edgeLabels: edges.map(() => null), isCut: false } };
}

/** The number of the newest result that the function had received when it gave the command. */
function receivedBy({ command }: RecordTimes): number {
  return Number.parseInt(command ?? "0", 10) || 0;
}

function isSideEffect(record: RecordTimes): boolean {
  return isCommand(record, "local") || isCommand(record, "version");
}
