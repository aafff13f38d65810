// Workflows in code in which some steps wait: a step for the handler `wait` has no worker. Its input may name a signal and a time. Workers
// may report on such steps, as in Conductor.

import type { Dialect } from "../../src/engine/run/dialect.ts";
import type { PlanNode } from "../../src/engine/run/plan.ts";
import type { StepSource, Value } from "../../src/protocols/longshore/dialect/source.ts";
import { onePieceDialect } from "./one-piece-dialect.ts";

const name = "waiting";

export const waitingDialect: Dialect = {
  ...onePieceDialect,
  name,
  compile(source) {
    const plan = onePieceDialect.compile(source);
    return { ...plan, dialect: name, nodes: plan.nodes.map(waiting), waitsTakeReports: true };
  },
};

/** A step that waits for a signal with the name of the step or another name, and for a time if one is given. */
export function wait(id: string, parts: Partial<StepSource> & { signal?: Value; until?: Value } = {}): StepSource {
  const { signal, until, ...rest } = parts;
  return { ...rest, id, task: "wait", input: { ...(signal === undefined ? {} : { signal }), until: until ?? null } };
}

function waiting(node: PlanNode): PlanNode {
  if (node.kind !== "task" || node.lanes[0]?.name !== "wait") return node;
  const { id, after, waitsFor, timeouts, retry } = node;
  const { signal, until } = node.input as { signal?: Value; until: Value };
  return { kind: "wait", id, after, waitsFor, timeouts, retry, input: null, until, ...(signal === undefined ? {} : { signal }) };
}
