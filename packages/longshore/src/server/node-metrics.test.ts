import { expect, it } from "vitest";
import { createMetrics } from "../core/metrics.ts";
import { withOwned } from "./node-metrics.ts";

it("a protocol's metric family is shown once, with the values of the owner", async () => {
  const [node, owned] = [createMetrics(), createMetrics()];
  node.counter("requests_total", "Of this node.").with().add();
  const shown = withOwned(node, () => owned);
  shown.counter("events_total", "Of the idle table.").with().add(0);
  owned.counter("events_total", "Of the data.").with().add(3);
  const lines = (await shown.read()).split("\n").filter((line) => line !== "" && !line.startsWith("#"));
  expect(lines).toEqual(["requests_total 1", "events_total 3"]);
});
