// The metrics of FlowKit's coordinator. Its counters are read only when /metrics is read.

import type { Metrics, Sample } from "../../../core/metrics.ts";
import type { Flowkit } from "./lead.ts";

export function instrumentFlowkit({ coordinator, outbox, isReachable }: Flowkit, metrics: Metrics): void {
  const { counts } = coordinator;
  const total = (name: string, help: string, read: () => number) =>
    metrics.sampled("counter", `longshore_flowkit_${name}_total`, help, read);
  const totals = (name: string, help: string, label: string, read: () => { readonly [value: string]: number }) =>
    metrics.sampled("counter", `longshore_flowkit_${name}_total`, help, () => samplesOf(read()), [label]);
  total("events", "Events of FlowKit's workers that were read.", () => counts.events);
  totals("ignored", "Records that were read and not counted: they were unreadable, or their attempts were over.", "why", () => ({
    stale: counts.stale,
    malformed: counts.malformed,
  }));
  totals("batches", "Batches of FlowKit's workers, by how they ended.", "how", () => ({
    done: counts.batches,
    failed: counts.batchesFailed,
  }));
  totals("commands", "Commands to FlowKit's workers: sent, and not claimed in time.", "how", () => ({
    started: counts.started,
    lapsed: counts.lapsed,
  }));
  total("signals", "Signals to FlowKit's workers to stop.", () => counts.signals);
  metrics.sampled("gauge", "longshore_flowkit_bus_reachable", "1 when the bus could be reached at the last try.", () =>
    isReachable() ? 1 : 0,
  );
  if (outbox === null) return;
  metrics.sampled("gauge", "longshore_flowkit_outbox_pending", "Messages in memory that wait to be sent.", () => outbox.pending);
  total("outbox_failed", "Messages that were given up.", () => outbox.failed);
}

function samplesOf(values: { readonly [value: string]: number }): Sample[] {
  return Object.entries(values).map(([label, value]) => ({ labels: [label], value }));
}
