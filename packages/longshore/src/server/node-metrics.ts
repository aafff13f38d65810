// The metrics of a node of a cluster: its state, and its link to the owner.

import type { LinkClient } from "../cluster/link/client.ts";
import type { LinkServerFigures } from "../cluster/link/server.ts";
import type { ClusterNode, NodeState } from "../cluster/node.ts";
import { createMetrics, type Metrics } from "../core/metrics.ts";
import type { Lease } from "../engine/store.ts";

type NodeFigures = Pick<ClusterNode, "state" | "takeovers" | "owner">;

const leaseHelp = "Seconds until the lease of this node ends, if it is not renewed; 0 when the node does not own the data.";

const states: readonly NodeState[] = ["member", "taking over", "owner", "stepping down"];

/** Figures about the data. Each function returns null while this node does not own the data. */
interface Owned {
  links(): LinkServerFigures | null;
  lease(): Lease | null;
}

export function nodeMetrics(
  metrics: Metrics,
  node: NodeFigures,
  link: Pick<LinkClient, "figures" | "owner">,
  owned: Owned,
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
  sampled(
    "gauge",
    "longshore_node_epoch",
    "The epoch of the owner that this node knows.",
    () => owned.lease()?.epoch ?? node.owner?.epoch ?? 0,
  );
  sampled("counter", "longshore_node_reads_total", "Requests that this node answered from the database itself.", () => table.reads);
  sampled("gauge", "longshore_lease_seconds", leaseHelp, () => (owned.lease()?.msLeft ?? 0) / 1_000);
  sampled("gauge", "longshore_link_up", "1 while this node is linked to an owner.", () => (link.owner === undefined ? 0 : 1));
  sampled("counter", "longshore_link_calls_total", "Requests that this node passed on to the owner.", () => link.figures.calls);
  sampled("counter", "longshore_link_resent_total", "Requests that were sent again after a link broke.", () => link.figures.resent);
  sampled("gauge", "longshore_link_unanswered", "Requests that wait for the owner.", () => link.figures.unanswered);
  sampled("counter", "longshore_link_connects_total", "Links to an owner that this node opened.", () => link.figures.connects);
  sampled(
    "counter",
    "longshore_link_bytes_total",
    "Bytes of the links to an owner.",
    () => [
      { labels: ["in"], value: link.figures.bytesIn },
      { labels: ["out"], value: link.figures.bytesOut },
    ],
    ["direction"],
  );
  sampled("gauge", "longshore_link_nodes", "Nodes that are linked to this one, while it owns the data.", () => owned.links()?.links ?? 0);
  sampled("counter", "longshore_link_performed_total", "Requests of other nodes performed here.", () => owned.links()?.calls ?? 0);
}

/**
 * What /metrics shows: this node, and the data while this node owns it. The metrics of the protocols of the idle table are left out: they count
 * nothing, and the protocols on the owned data have metrics with the same names.
 */
export function withOwned(metrics: Metrics, owned: () => Metrics | null): Metrics {
  return { ...createMetrics(), read: async () => `${await metrics.read()}${(await owned()?.read()) ?? ""}` };
}
