// Any FlowKit graph with streams, thresholds and failure handlers has the same meaning under any operator commands (orders.ts).

import { describe } from "vitest";
import type { Random } from "../../../../test/faults/random.ts";
import { type Before, earlier, type ReadStep, readingOf, waitForDone, waitForParts } from "../../../../test/support/graph-reading.ts";
import { playOrders } from "../../../../test/support/orders.ts";
import { openRunWorld } from "../../../../test/support/run-world.ts";
import { dialectName } from "./compile.ts";
import { flowkitDialect } from "./dialect.ts";

const roles = ["load", "sum"];

interface MadeNode {
  node_id: string;
  type: string;
  depends_on: string[];
  fan_in: string;
  retry_policy: object;
  routing: { on_failure: string[] };
  io: { start_when: string };
}

function makeNode(random: Random, at: number): MadeNode {
  const depends_on = earlier(random, at);
  const some = depends_on.length > 1 && random.chance(0.3);
  const fan_in = some ? (random.pick(["any", `count:${random.between(1, depends_on.length)}`]) as string) : "all";
  return {
    node_id: `s${at}`,
    type: random.pick(roles) as string,
    depends_on,
    fan_in,
    retry_policy: { max: random.between(0, 1), backoff_sec: random.pick([0, 5]), lost: random.between(0, 2) },
    routing: { on_failure: [] },
    io: { start_when: depends_on.length > 0 && random.chance(0.3) ? "first_batch" : "ready" },
  };
}

/** Some nodes follow the failure of earlier ones. */
function makeGraph(random: Random): MadeNode[] {
  const nodes = Array.from({ length: random.between(2, 8) }, (_, at) => makeNode(random, at));
  nodes.forEach((node, at) => {
    if (at === 0 || !random.chance(0.25)) return;
    nodes[at] = { ...node, fan_in: "all", io: { start_when: "ready" } };
    for (const source of nodes.slice(0, at)) if (random.chance(0.4)) source.routing.on_failure.push(node.node_id);
  });
  return nodes;
}

function read({ node_id: name, depends_on, fan_in, routing, io }: MadeNode, nodes: readonly MadeNode[]): ReadStep {
  const ends = routing.on_failure.length === 0;
  const sources = nodes.filter((other) => other.routing.on_failure.includes(name)).map(({ node_id }) => node_id);
  if (sources.length > 0) {
    const needed = depends_on.filter((step) => !sources.includes(step));
    return {
      ...{ name, ends },
      turn: ({ outcome }) => ([...needed, ...sources].some((step) => outcome(step) === "open") ? "waits" : "begins"),
      isOff: ({ outcome }) => !(sources.some((step) => outcome(step) === "failed") && needed.every((step) => outcome(step) === "done")),
    };
  }
  const count = fan_in.startsWith("count:") ? Number(fan_in.slice(6)) : undefined;
  const turn =
    io.start_when === "first_batch"
      ? (before: Before) => waitForParts(depends_on, depends_on, before, count ?? 1)
      : (before: Before) => waitForDone(depends_on, before, fan_in === "any" ? 1 : count);
  return { name, ends, turn };
}

function isRead(nodes: readonly MadeNode[], name: string): boolean {
  return nodes.some(
    ({ node_id, depends_on }) => depends_on.includes(name) && nodes.some((other) => other.routing.on_failure.includes(node_id)),
  );
}

describe("under any operator commands", () => {
  playOrders("a graph of FlowKit means the same", { seeds: 80 }, async (random) => {
    const world = await openRunWorld({ dialects: [flowkitDialect()], sliceTasks: 1 });
    const nodes = makeGraph(random);
    const source = JSON.stringify({ nodes });
    const steps = nodes.map((node) => read(node, nodes));
    return {
      world,
      told: source,
      lanes: roles.map((name) => ({ name })),
      async begin() {
        await world.runs.define({ name: "w", dialect: dialectName, source });
        for (let count = 0; count < 2; count++) await world.runs.start({ workflow: "w", input: "{}" });
      },
      faultIn: (run, records, known) => readingOf(steps, run, records, known),
      // A failure handler reads the outcome of other steps, and a step that an operator skipped has no result.
      steps: (_run, order) => nodes.filter(({ node_id }) => order === "rerun" || !isRead(nodes, node_id)).map(({ node_id }) => node_id),
      waits: () => false,
    };
  });
});
