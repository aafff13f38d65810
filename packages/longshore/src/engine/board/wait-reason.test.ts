import { describe, expect, it } from "vitest";
import { TestClock } from "../../testing/clock.ts";
import { Crew } from "./crews.ts";
import { Lanes, laneOf } from "./lanes.ts";
import { Limits } from "./limits.ts";
import { newTask } from "./new-task.ts";
import type { TaskRow } from "./task.ts";
import { type Carrier, whyWaiting } from "./wait-reason.ts";
import { Waiter } from "./waiters.ts";
import { Workers } from "./workers.ts";

function crewFor({ lane }: TaskRow, workers: Workers): Crew | null {
  if (lane === null) return null;
  const live = [...workers.views()].filter(({ status }) => status !== "offline");
  const crew = new Crew(lane, live.length);
  for (const worker of live) if (worker.reach === null || worker.reach.names.includes(lane.name)) crew.add(worker);
  return crew;
}

describe("why a task waits", () => {
  function setup() {
    const clock = new TestClock();
    const workers = new Workers({ clock });
    const lanes = new Lanes();
    const limits = new Limits();
    const why = (task: TaskRow) => whyWaiting(task, { lanes, limits, crew: crewFor(task, workers), now: clock.now() });
    const queued = (labels: string[] = [], more: Partial<TaskRow> = {}): TaskRow => ({
      ...newTask({ id: "T1", step: "s", lanes: [], input: "null", policy: null }, clock.now(), laneOf("command", labels)),
      ...more,
    });
    const hold = (holder: string) => workers.changed(queued([], { id: `of ${holder}`, state: "held", holder, termMs: 30_000 }));
    return { clock, workers, lanes, limits, why, queued, hold };
  }

  it("a task that is not queued does not wait", () => {
    const { why, queued } = setup();
    expect(why(queued([], { state: "held" }))).toBeNull();
    expect(why(queued([], { state: "done" }))).toBeNull();
  });

  it("its delay is not over", () => {
    const { clock, why, queued } = setup();
    const dueAt = clock.now() + 1_500;
    expect(why(queued([], { dueAt }))).toEqual({ reason: "not-due", text: "it is not due for another 2 s", at: dueAt });
  });

  it("a limit key is used up by held tasks", () => {
    const { clock, workers, limits, why, queued } = setup();
    workers.seen("w1", { reach: { names: ["command"], labels: [] } });
    const keys = [{ key: "deploy", held: 1 }];
    limits.take(keys, clock.now());
    expect(why(queued([], { limits: keys }))).toEqual({
      reason: "limit",
      text: "the limit deploy is used up until a task that counts against it ends",
      key: "deploy",
    });
  });

  it("a limit key is used up for the rest of its window", () => {
    const { clock, limits, why, queued } = setup();
    const keys = [{ key: "api", rate: { count: 1, windowMs: 10_000 } }];
    limits.take(keys, clock.now());
    expect(why(queued([], { limits: keys }))).toMatchObject({ reason: "limit", key: "api", at: clock.now() + 10_000 });
  });

  it("no worker is connected", () => {
    const { why, queued } = setup();
    expect(why(queued(["gpu"]))).toEqual({ reason: "no-worker", text: "no worker is connected", missing: ["gpu"] });
  });

  it("no live worker has a label that it needs", () => {
    const { workers, why, queued } = setup();
    workers.seen("w1", { reach: { names: ["command"], labels: ["linux"] } });
    expect(why(queued(["gpu", "linux"]))).toEqual({ reason: "no-worker", text: "no live worker has the label gpu", missing: ["gpu"] });
    expect(why(queued(["gpu", "tpu"]))).toMatchObject({ text: "no live worker has the labels gpu, tpu" });
  });

  it("the labels are there, but no worker has all of them", () => {
    const { workers, why, queued } = setup();
    workers.seen("w1", { reach: { names: ["command"], labels: ["linux"] } });
    workers.seen("w2", { reach: { names: ["command"], labels: ["gpu"] } });
    expect(why(queued(["gpu", "linux"]))).toMatchObject({ reason: "no-worker", text: "no live worker has all of the labels gpu, linux" });
  });

  it("the workers that are alive claim other lanes", () => {
    const { workers, why, queued } = setup();
    workers.seen("w1", { reach: { names: ["greet"], labels: [] } });
    expect(why(queued())).toMatchObject({ reason: "no-worker", text: "no live worker asks for command" });
  });

  it("the worker that could take it has disconnected", () => {
    const { clock, workers, why, queued } = setup();
    workers.register("w1", "p", ["gpu"]);
    expect(why(queued(["gpu"]))?.reason).toBe("next");
    clock.jump(60_000);
    expect(why(queued(["gpu"]))).toMatchObject({ reason: "no-worker", text: "no worker is connected" });
  });

  it("every worker that could take it is at work, and an idle one without the label does not count", () => {
    const { workers, why, queued, hold } = setup();
    workers.register("w1", "p", ["gpu"]);
    workers.register("w2", "p", ["linux"]);
    hold("w1");
    expect(why(queued(["gpu"]))).toEqual({ reason: "busy", text: "every worker that could take it is at work (1)", workers: ["w1"] });
  });

  it("those that could take it registered before the server started and have been silent since", () => {
    const { workers, why, queued, hold } = setup();
    workers.recall("w1", { protocol: "p", reach: { names: ["command"], labels: ["gpu"] } });
    expect(why(queued(["gpu"]))).toMatchObject({
      reason: "next",
      text: "no worker that could take it has sent a request since the server started; the server waits for those that it knew before (1)",
      workers: ["w1"],
    });
    workers.register("w2", "p", ["gpu"]);
    hold("w2");
    expect(why(queued(["gpu"]))).toMatchObject({ reason: "busy", text: "every worker that could take it is at work (1)" });
  });

  it("an idle worker takes it at its next poll", () => {
    const { workers, why, queued, hold } = setup();
    workers.register("w1", "p", ["gpu"]);
    workers.register("w2", "p", ["gpu"]);
    hold("w1");
    expect(why(queued(["gpu"]))).toMatchObject({ reason: "next", workers: ["w1", "w2"] });
  });

  it("a waiting claim takes it, even of a worker that is at work", () => {
    const { clock, workers, lanes, why, queued, hold } = setup();
    workers.register("w1", "p", []);
    hold("w1");
    const group = lanes.group({ names: ["command"], labels: [] }, clock.now());
    new Waiter({ group, holder: "w1", termMs: 1, arrival: 1, settle: () => {} });
    expect(why(queued())?.reason).toBe("next");
  });

  it("a record without a lane waits for something other than a worker", () => {
    const { why, queued } = setup();
    expect(why(queued([], { lane: null }))?.reason).toBe("record");
    expect(why(queued([], { lane: null, command: "function" }))).toEqual({ reason: "record", text: "the function waits for its steps" });
  });

  it("a record waits for a signal, by its name", () => {
    const { clock, why, queued } = setup();
    const waits = { lane: null, step: "ask", signal: "approve" };
    expect(why(queued([], waits))).toEqual({ reason: "signal", text: 'waiting for signal "approve"', signal: "approve" });
    expect(why(queued([], { ...waits, signal: 'a "b"\n' }))?.text).toBe('waiting for signal "a \\"b\\"\\n"');
    const at = clock.now() + 1_000;
    expect(why(queued([], { ...waits, dueAt: at }))).toMatchObject({ reason: "signal", text: 'waiting for signal "approve"', at });
    expect(why(queued([], { ...waits, state: "done" }))).toBeNull();
  });

  it("a record sleeps until a time, also when a signal with the name of its step could end it", () => {
    const { clock, why, queued } = setup();
    const at = clock.now() + 60_000;
    const text = `sleeping until ${new Date(at).toISOString()}`;
    expect(why(queued([], { lane: null, dueAt: at }))).toEqual({ reason: "sleeping", text, at });
    expect(why(queued([], { lane: null, step: "nap", signal: "nap", dueAt: at }))).toEqual({ reason: "sleeping", text, at, signal: "nap" });
    expect(why(queued([], { lane: null, step: "nap", signal: "nap", dueAt: clock.now() }))?.reason).toBe("signal");
  });

  describe("where the server sends tasks to workers", () => {
    function carried() {
      const world = setup();
      const { clock, workers, lanes, limits } = world;
      let since: number | null = null;
      const carrier: Carrier = {
        protocol: "bus",
        trouble: () => (since === null ? null : { what: "Kafka at broker:9092", since, error: "refused" }),
        carries: ({ id }) => id === "T1",
      };
      const why = (task: TaskRow) =>
        whyWaiting(task, { lanes, limits, crew: crewFor(task, workers), carriers: [carrier], now: clock.now() });
      const breakDown = async () => {
        since = clock.now();
        await clock.advance(4_000);
      };
      return { ...world, why, breakDown };
    }
    const away = "Kafka at broker:9092 has been out of reach for 4 s (refused)";
    const reach = { names: ["command"], labels: [] };

    it("a task was sent, or waits because its transport cannot be reached", async () => {
      const { clock, why, queued, breakDown } = carried();
      const offered = queued([], { state: "offered", claimedAt: clock.now() });
      expect(why(offered)).toEqual({ reason: "sent", text: "it was sent to the workers of command 0 s ago, and none has taken it up yet" });
      expect(why({ ...offered, id: "of another protocol" })).toBeNull();
      await breakDown();
      expect(why(offered)).toEqual({ reason: "unreachable", text: `it is sent as soon as that is possible: ${away}` });
    });

    it("an unreachable worker may be running or not", async () => {
      const { workers, why, queued, breakDown } = carried();
      await breakDown();
      expect(why(queued())).toEqual({ reason: "unreachable", text: `no worker is connected, as far as is known: ${away}` });
      expect(why(queued(["gpu"]))).toMatchObject({ reason: "no-worker", text: "no worker is connected" });
      workers.seen("w1", { protocol: "bus", reach });
      expect(why(queued())).toMatchObject({ reason: "unreachable", text: `the workers that could take it are out of reach: ${away}` });
      workers.seen("w2", { protocol: "http", reach });
      expect(why(queued())).toMatchObject({ reason: "next" });
    });
  });
});
