// The metrics of an engine whose clock the test moves.

import { expect, it, onTestFinished } from "vitest";
import { startOnSmallDisk } from "../../test/support/admin.ts";
import { temporaryFolder } from "../../test/support/parts.ts";
import { createMetrics } from "../core/metrics.ts";
import { task } from "../core/task.ts";
import { graph } from "../graph.ts";
import type { Ref } from "../reference.ts";
import { TestClock } from "../testing/clock.ts";
import { openEngine } from "./engine.ts";
import { programSide } from "./handle.ts";
import { engineProbe, instrument } from "./instruments.ts";

async function setup({ directory = null }: { directory?: string | null } = {}) {
  const clock = new TestClock();
  const metrics = createMetrics();
  const engine = await openEngine({ directory, clock, probe: engineProbe(metrics, { ran() {} }) });
  onTestFinished(() => engine.close());
  instrument(engine, metrics);
  const read = async () => valuesOf(await metrics.read());
  return {
    clock,
    engine,
    read,
    post: (id: string, lane = "build", options: { delayMs?: number; policy?: string } = {}) =>
      engine.board.post([{ id, step: id, lanes: [{ name: lane, labels: [] }], input: "null", policy: null, ...options }]),
    async claim(name = "build") {
      const [claimed] = await engine.board.claim({ reach: { names: [name], labels: [] }, holder: "w", termMs: 60_000 });
      if (claimed === undefined) throw new Error("There was no task to claim.");
      return { taskId: claimed.id, grant: claimed.grant };
    },
  };
}

/** The lines of a scrape, by name and labels. */
function valuesOf(text: string): Record<string, number> {
  const lines = text.split("\n").filter((line) => line !== "" && !line.startsWith("#"));
  return Object.fromEntries(lines.map((line) => [line.slice(0, line.lastIndexOf(" ")), Number(line.slice(line.lastIndexOf(" ") + 1))]));
}

it("a task's wait is measured from when it is ready until it is taken, and each attempt's duration is measured", async () => {
  const { clock, engine, read, post, claim } = await setup();
  const policy = { failures: 1, lost: 3, backoff: { kind: "fixed", delayMs: 4_000 } };
  await post("a", "build", { delayMs: 5_000, policy: JSON.stringify(policy) });
  await clock.advance(7_000);
  const first = await claim();
  await clock.advance(20_000);
  await engine.board.fail(first, { error: "no", retryable: true });
  await clock.advance(4_000);
  const second = await claim();
  await clock.advance(300);
  await engine.board.complete(second, "null");
  const values = await read();
  const of = (name: string) => values[`${name}{task="build",workflow=""}`];
  // The delays of the first and of the second attempt are not part of the wait.
  expect([of("longshore_task_wait_seconds_count"), of("longshore_task_wait_seconds_sum")]).toEqual([2, 2]);
  expect([of("longshore_task_duration_seconds_count"), of("longshore_task_duration_seconds_sum")]).toEqual([2, 20.3]);
});

it("a task that no worker took has no duration", async () => {
  const { engine, read, post } = await setup();
  await post("a");
  await engine.board.cancel("a");
  expect(Object.keys(await read()).filter((name) => name.startsWith("longshore_task_duration"))).toEqual([]);
});

it("times of steps and runs have the name of their workflow, also of a run that ended with its last step", async () => {
  const { clock, engine, read, claim } = await setup();
  const pack = task("pack", async (order: string) => order);
  const program = programSide(engine);
  await program.start(
    graph("shipping", (g, order: Ref<string>) => g.step(pack, order)),
    "one",
  );
  await clock.advance(1_000);
  const hold = await claim("pack");
  await clock.advance(2_000);
  await engine.board.complete(hold, '"one"');
  const values = await read();
  expect(values['longshore_task_wait_seconds_sum{task="pack",workflow="shipping"}']).toBe(1);
  expect(values['longshore_task_duration_seconds_sum{task="pack",workflow="shipping"}']).toBe(2);
  expect(values['longshore_run_duration_seconds_sum{workflow="shipping"}']).toBe(3);
});

it("200 task names get their own series, and the rest is counted as other", async () => {
  const { engine, read } = await setup();
  const names = Array.from({ length: 205 }, (_, at) => `lane-${at}`);
  await engine.board.post(names.map((name) => ({ id: name, step: name, lanes: [{ name, labels: [] }], input: "null", policy: null })));
  await engine.board.claim({ reach: { names, labels: [] }, holder: "w", termMs: 60_000, max: names.length });
  const counts = Object.entries(await read()).filter(([name]) => name.startsWith("longshore_task_wait_seconds_count"));
  expect(counts).toHaveLength(201);
  expect(counts.at(-1)).toEqual(['longshore_task_wait_seconds_count{task="other",workflow="other"}', 5]);
});

it("there is an age of the oldest ready task for each lane, and one for all lanes without a series", async () => {
  const { clock, engine, read, post } = await setup();
  await post("cancelled", "small");
  await clock.advance(1_000);
  await post("oldest", "small");
  await clock.advance(1_000);
  await engine.board.cancel("cancelled");
  const names = Array.from({ length: 100 }, (_, at) => `lane-${at}`);
  const tasks = names.flatMap((name) => [1, 2, 3].map((of) => ({ id: `${name}.${of}`, step: name, lanes: [{ name, labels: [] }] })));
  await engine.board.post(tasks.map((each) => ({ ...each, input: "null", policy: null })));
  await clock.advance(3_000);
  const values = await read();
  expect(values['longshore_queue_oldest_seconds{lane="lane-7",labels=""}']).toBe(3);
  expect(values['longshore_queue_oldest_seconds{lane="other",labels=""}']).toBe(4);
});

it("there are sizes of the data file and of its log, but none for a store in memory", async () => {
  const { read, post } = await setup({ directory: temporaryFolder() });
  await post("a");
  const values = await read();
  expect(values['longshore_data_bytes{part="file"}']).toBeGreaterThanOrEqual(4_096);
  expect(values['longshore_data_bytes{part="wal"}']).toBeGreaterThan(0);
  expect(Object.keys(await (await setup()).read()).filter((name) => name.startsWith("longshore_data_bytes"))).toEqual([]);
});

it("the number of commits and of their measured times is equal, also after failed commits", async () => {
  const { program, get, disk } = await startOnSmallDisk();
  const counted = async () => {
    const values = valuesOf((await get("/metrics")).text);
    expect(values.longshore_commits_total).toBe(values.longshore_commit_seconds_count);
    return values.longshore_commits_total as number;
  };
  const before = await counted();
  const pack = task("pack", async (order: string) => order);
  await program.define(graph("first", (g, order: Ref<string>) => g.step(pack, order)));
  const after = await counted();
  expect(after).toBeGreaterThan(before);
  disk.full = true;
  await expect(program.define(graph("second", (g, order: Ref<string>) => g.step(pack, order)))).rejects.toThrow(/cannot be written/);
  expect(disk.refusals).toBeGreaterThan(0);
  expect(await counted()).toBe(after);
});

it("the time of requests is measured by route, without requests that wait for an event", async () => {
  const { get, claim, clock } = await startOnSmallDisk();
  const read = async () => valuesOf((await get("/metrics")).text);
  await get("/health");
  await claim();
  const waiting = claim({ wait: 5 });
  await expect.poll(async () => (await read()).longshore_claims_waiting).toBe(1);
  await clock.advance(5_000);
  await waiting;
  const values = await read();
  const of = (group: string, method: string, route: string) =>
    values[`longshore_http_request_seconds_count{group="${group}",method="${method}",route="${route}"}`];
  expect(of("longshore", "GET", "/health")).toBe(1);
  expect(of("workflow-graph", "POST", "/api/jobs/claim")).toBe(1);
  const requests = 'longshore_http_requests_total{group="workflow-graph",method="POST",route="/api/jobs/claim",status="2xx"}';
  expect(values[requests]).toBe(2);
});

it("ticks of schedules are counted by outcome and by delay", async () => {
  const { clock, engine, read } = await setup();
  const source = { name: "w", steps: [{ id: "a", task: "a", input: null }], output: null };
  await engine.runs.define({ name: "w", dialect: "code", source: JSON.stringify(source) });
  await engine.schedules.put({ name: "s", rules: { workflow: "w", every: "1m" }, input: "null" });
  await clock.advance(3 * 60_000);
  const values = await read();
  expect(values.longshore_schedules).toBe(1);
  expect(values['longshore_schedule_ticks_total{outcome="started"}']).toBe(1);
  expect(values['longshore_schedule_ticks_total{outcome="skipped"}']).toBe(2);
  expect([values.longshore_schedule_late_seconds_count, values.longshore_schedule_late_seconds_sum]).toEqual([1, 0]);
});
