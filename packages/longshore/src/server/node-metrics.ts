// The metrics of a node of a cluster: its part in it, and the link.

import type { LinkClient } from "../cluster/link/client.ts";
import type { LinkServerFigures } from "../cluster/link/server.ts";
import type { ClusterNode, NodeState } from "../cluster/node.ts";
import { createMetrics, type Metrics } from "../core/metrics.ts";

const states: readonly NodeState[] = ["member", "taking over", "owner", "stepping down"];

export function nodeMetrics(
  metrics: Metrics,
  node: ClusterNode,
  link: LinkClient,
  owned: { links(): LinkServerFigures | null },
  table: { readonly reads: number },
): void {
  const { sampled } = metrics;
  sampled(
    "gauge",
    "longshore_node_state",
    "1 for the state of this node in its cluster.",
    () => states.map((state) => ({ labels: [state.replace(" ", "-")], value: node.state === state ? 1 : 0 })),
    ["state"],
  );
  sampled("counter", "longshore_node_takeovers_total", "Times that this node took over the data.", () => node.takeovers);
  sampled("gauge", "longshore_node_epoch", "The epoch of the owner that this node knows.", () => node.owner?.epoch ?? 0);
  sampled("counter", "longshore_link_calls_total", "Requests that this node passed on to the owner.", () => link.figures.calls);
  sampled("counter", "longshore_node_reads_total", "Requests that this node answered from the database itself.", () => table.reads);
  sampled("counter", "longshore_link_resent_total", "Requests that were sent again after a link broke.", () => link.figures.resent);
  sampled("gauge", "longshore_link_unanswered", "Requests that wait for the owner.", () => link.figures.unanswered);
  sampled("counter", "longshore_link_connects_total", "Links to an owner that this node opened.", () => link.figures.connects);
  sampled("gauge", "longshore_link_nodes", "Nodes that are linked to this one, while it owns the data.", () => owned.links()?.links ?? 0);
  sampled("counter", "longshore_link_performed_total", "Requests of other nodes performed here.", () => owned.links()?.calls ?? 0);
}

/**
 * What /metrics shows: this node, and the data while this node owns it. What the protocols of the idle table count is left out: they count
 * nothing, and those on the owned data have families of the same names.
 */
export function withOwned(metrics: Metrics, owned: () => Metrics | null): Metrics {
  return { ...createMetrics(), read: async () => `${await metrics.read()}${(await owned()?.read()) ?? ""}` };
}
