import { describe, expect, it } from "vitest";
import { createMetrics } from "./metrics.ts";

describe("the metrics registry", () => {
  it("writes counters and gauges as Prometheus text", () => {
    const metrics = createMetrics();
    const claims = metrics.counter("claims_total", "Claims answered.", ["lane", "outcome"]);
    claims.with("shell", "granted").add();
    claims.with("shell", "granted").add(2);
    claims.with("shell", "none").add();
    metrics.gauge("slots", "Slots in use.").with().set(4);
    expect(metrics.text()).toBe(
      [
        "# HELP claims_total Claims answered.",
        "# TYPE claims_total counter",
        'claims_total{lane="shell",outcome="granted"} 3',
        'claims_total{lane="shell",outcome="none"} 1',
        "# HELP slots Slots in use.",
        "# TYPE slots gauge",
        "slots 4",
        "",
      ].join("\n"),
    );
  });

  it("writes histograms with cumulative buckets, sum and count", () => {
    const metrics = createMetrics();
    const commits = metrics.histogram("commit_seconds", "Commit time.", [0.001, 0.01], ["store"]).with("sqlite");
    for (const value of [0.0005, 0.001, 0.005, 2]) commits.observe(value);
    expect(metrics.text().split("\n").slice(2, 7)).toEqual([
      'commit_seconds_bucket{store="sqlite",le="0.001"} 2',
      'commit_seconds_bucket{store="sqlite",le="0.01"} 3',
      'commit_seconds_bucket{store="sqlite",le="+Inf"} 4',
      'commit_seconds_sum{store="sqlite"} 2.0065',
      'commit_seconds_count{store="sqlite"} 4',
    ]);
  });

  it("reads sampled metrics only when it is read", () => {
    const metrics = createMetrics();
    let asked = 0;
    metrics.sampled("gauge", "queued", "Queued tasks.", () => ++asked);
    metrics.sampled("counter", "bytes_total", "Bytes.", () => [{ labels: ["in"], value: 7 }], ["way"]);
    expect(asked).toBe(0);
    expect(metrics.text()).toContain("queued 1\n");
    expect(metrics.text()).toContain('bytes_total{way="in"} 7\n');
  });

  it("leaves out a sampled metric that cannot be read and keeps the others", () => {
    const metrics = createMetrics();
    metrics.sampled("gauge", "broken", "Broken.", () => {
      throw new Error("closed");
    });
    metrics.sampled("gauge", "whole", "Whole.", () => 1);
    expect(metrics.text()).toBe("# HELP whole Whole.\n# TYPE whole gauge\nwhole 1\n");
  });

  it("escapes characters that would break a line", () => {
    const metrics = createMetrics();
    metrics.counter("odd_total", "A \\ and\na line.", ["name"]).with('a"b\\c\nd').add();
    expect(metrics.text()).toContain("# HELP odd_total A \\\\ and\\na line.\n");
    expect(metrics.text()).toContain('odd_total{name="a\\"b\\\\c\\nd"} 1\n');
  });

  it("returns the same family for a second request, and refuses a different family with the same name", () => {
    const metrics = createMetrics();
    const family = metrics.counter("x_total", "X.", ["a"]);
    expect(metrics.counter("x_total", "X.", ["a"])).toBe(family);
    expect(() => metrics.gauge("x_total", "X.", ["a"])).toThrow("registered already");
    expect(() => metrics.counter("x_total", "X.", ["b"])).toThrow("registered already");
    expect(() => metrics.sampled("counter", "x_total", "X.", () => 1, ["a"])).toThrow("registered already");
    expect(() => metrics.counter("Not-A-Name", "X.")).toThrow("must match");
    expect(() => family.with()).toThrow("Expected values");
  });

  it("counts as `other` when a label has too many values", () => {
    const metrics = createMetrics();
    const family = metrics.counter("ids_total", "Ids.", ["id"]);
    for (let index = 0; index < 2_100; index++) family.with(`id-${index}`).add();
    const lines = metrics.text().trim().split("\n");
    expect(lines).toHaveLength(2 + 2_000 + 1);
    expect(lines).toContain('ids_total{id="other"} 100');
  });

  it("can be drained in one process and added in another, and nothing is counted twice", () => {
    const family = (metrics: ReturnType<typeof createMetrics>) => ({
      polls: metrics.counter("polls_total", "Polls.", ["task"]),
      time: metrics.histogram("poll_seconds", "Time.", [1, 10], ["task"]),
    });
    const child = createMetrics();
    const parent = createMetrics();
    const inChild = family(child);
    family(parent).polls.with("a").add(5);
    child.counter("unknown_total", "Not there.").with().add();
    for (const seconds of [0.5, 5, 50]) inChild.time.with("a").observe(seconds);
    inChild.polls.with("a").add(2);
    parent.absorb(child.drain());
    expect(child.drain()).toEqual([]);
    parent.absorb(child.drain());
    expect(parent.text()).toContain('polls_total{task="a"} 7\n');
    expect(parent.text()).toContain('poll_seconds_bucket{task="a",le="10"} 2\n');
    expect(parent.text()).toContain('poll_seconds_sum{task="a"} 55.5\n');
    expect(parent.text()).not.toContain("unknown");
  });
});
