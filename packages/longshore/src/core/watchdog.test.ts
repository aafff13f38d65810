import { describe, expect, it } from "vitest";
import { createLogger } from "./logger.ts";
import { createMetrics } from "./metrics.ts";
import { createWatchdog } from "./watchdog.ts";

function setup() {
  const log: string[] = [];
  const metrics = createMetrics();
  const logger = createLogger({ format: "text", write: (line) => log.push(line), clock: { now: () => 0 } });
  let time = 0;
  let tick = () => {};
  const every = (ms: number, call: () => void) => {
    expect(ms).toBe(20);
    tick = call;
    return () => {};
  };
  const watch = createWatchdog({ metrics, logger, now: () => time, every });
  // A slow start does not count as a stall.
  time = 5_000;
  watch.begin();
  /** The timer fires this long after its last time. */
  const after = (ms: number) => {
    time += ms;
    tick();
  };
  return { log, metrics, watch, after };
}

describe("the watchdog", () => {
  it("measures how late the event loop is and does not log small delays", () => {
    const { log, metrics, after } = setup();
    after(20);
    after(60);
    after(119);
    expect(log).toEqual([]);
    expect(metrics.text()).toContain('longshore_event_loop_delay_seconds_bucket{le="0.001"} 1\n');
    expect(metrics.text()).toContain('longshore_event_loop_delay_seconds_bucket{le="0.05"} 2\n');
    expect(metrics.text()).toContain("longshore_event_loop_delay_seconds_count 3\n");
    expect(metrics.text()).toContain("longshore_event_loop_stalls_total 0\n");
  });

  it("names the route that ran the longest when the loop was blocked", () => {
    const { log, metrics, watch, after } = setup();
    watch.ran("GET /quick", 3);
    watch.ran("GET /slow", 280);
    watch.ran("GET /quick", 4);
    after(320);
    expect(log).toHaveLength(1);
    expect(log[0]).toContain('The event loop was blocked, and every request waited ms=300 route="GET /slow" routeMs=280 times=1');
    expect(metrics.text()).toContain("longshore_event_loop_stalls_total 1\n");
  });

  it("does not name a route that ran only for a small part of the time", () => {
    const { log, watch, after } = setup();
    watch.ran("GET /quick", 30);
    after(520);
    expect(log[0]).toContain("ms=500 times=1");
    expect(log[0]).not.toContain("quick");
  });

  it("logs one line every ten seconds, with the number of stalls", () => {
    const { log, after } = setup();
    for (let at = 0; at < 5; at++) after(220);
    expect(log).toHaveLength(1);
    after(10_020);
    after(220);
    expect(log[1]).toContain("times=5");
  });
});
