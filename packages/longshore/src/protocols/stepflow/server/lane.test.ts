import { describe, expect, it, onTestFinished } from "vitest";
import { temporaryFolder } from "../../../../test/support/parts.ts";
import type { Json } from "../../../core/json/json.ts";
import { NotBegun } from "../../../engine/board/lane-worker.ts";
import type { TaskRow } from "../../../engine/board/task.ts";
import { openEngine } from "../../../server/engine.ts";
import { TestClock } from "../../../testing/clock.ts";
import { type ComponentLaneOptions, type ComponentWork, componentLane, StepFailure } from "./lane.ts";

/** One piece of work that runs until the test ends it. */
interface Pending {
  readonly work: ComponentWork;
  done(output: Json): void;
  fail(error: unknown): void;
}

async function setup(options: Partial<ComponentLaneOptions> & { directory?: string } = {}) {
  const clock = new TestClock();
  const engine = await openEngine({ directory: options.directory ?? null, clock });
  const begun: Pending[] = [];
  const watchers = new Set<() => void>();
  const changedTask = () => {
    for (const watcher of [...watchers]) watcher();
  };
  const troubles: string[] = [];
  const lane = componentLane({
    board: engine.board,
    workers: engine.workers,
    clock,
    lane: "somewhere",
    holder: "here",
    protocol: "test",
    slots: 2,
    perform: (work) =>
      new Promise((resolve, reject) => {
        begun.push({ work, done: resolve, fail: reject });
        work.signal.addEventListener("abort", () => reject(new Error("given up")));
        changedTask();
      }),
    failed: (what) => troubles.push(what),
    ...options,
  });
  engine.listen({ task: changedTask });
  onTestFinished(async () => {
    await lane.close(0);
    await engine.close();
  });
  const until = async (condition: () => unknown): Promise<void> => {
    while (!condition()) await new Promise<void>((resolve) => watchers.add(resolve));
  };
  return {
    clock,
    engine,
    lane,
    begun,
    troubles,
    until,
    post: (...ids: string[]) =>
      engine.board.post(
        ids.map((id) => ({
          id,
          step: id,
          lanes: [{ name: "somewhere", labels: [] }],
          input: JSON.stringify({ component: `/${id}`, input: { n: 1 } }),
          policy: JSON.stringify({ failures: 0, lost: 5, backoff: { kind: "fixed", delayMs: 0 } }),
        })),
      ),
    task: async (id: string) => (await engine.board.task(id)) as TaskRow,
    ended: async (id: string) => (await engine.board.result(id)) as TaskRow,
  };
}

describe("a lane whose tasks the server itself performs", () => {
  it("performs its tasks and reports their outputs", async () => {
    const { lane, post, begun, until, ended } = await setup();
    lane.resume();
    await post("a");
    await until(() => begun.length === 1);
    expect(begun[0]?.work).toMatchObject({ component: "/a", input: { n: 1 } });
    begun[0]?.done({ ok: true });
    expect(await ended("a")).toMatchObject({ state: "done", output: '{"ok":true}', holder: "here" });
  });

  it("reports the error of a step, and its own errors as internal errors", async () => {
    const { lane, post, begun, until, ended } = await setup();
    lane.resume();
    await post("a", "b");
    await until(() => begun.length === 2);
    const by = (component: string) => begun.find(({ work }) => work.component === component);
    by("/a")?.fail(new StepFailure({ code: "INVALID_INPUT", message: "no name", data: { field: "name" } }));
    by("/b")?.fail(new TypeError("x is not a function"));
    const a = await ended("a");
    expect(a).toMatchObject({ state: "failed", error: "no name", fault: "final" });
    expect(JSON.parse(a.output as string)).toEqual({
      outcome: "failed",
      error: { code: "INVALID_INPUT", message: "no name", data: { field: "name" } },
    });
    expect(JSON.parse((await ended("b")).output as string)).toMatchObject({
      error: { code: "ORCHESTRATOR_ERROR", message: "x is not a function" },
    });
  });

  it("retries a step that was lost in transport, except when the failure is final", async () => {
    const { lane, post, begun, until, ended } = await setup();
    lane.resume();
    await post("a");
    await until(() => begun.length === 1);
    begun[0]?.fail(new StepFailure({ code: "UNREACHABLE", message: "gone" }));
    await until(() => begun.length === 2);
    expect(begun[1]?.work.task.attempt).toBe(1);
    begun[1]?.fail(new StepFailure({ code: "UNREACHABLE", message: "gone" }, { final: true }));
    expect(await ended("a")).toMatchObject({ state: "failed", attempt: 1 });
  });

  it("performs as many tasks at the same time as it has slots, and one more for each lent slot", async () => {
    const { lane, post, begun, until } = await setup();
    lane.resume();
    await post("a", "b", "c", "d");
    await until(() => begun.length === 2);
    expect(lane.open).toBe(2);
    let wake = () => {};
    const lent = begun[0]?.work.lend(() => new Promise<void>((resolve) => (wake = resolve)));
    await until(() => begun.length === 3);
    wake();
    await lent;
    begun[1]?.done(null);
    begun[2]?.done(null);
    await until(() => begun.length === 4);
  });

  it("renews its holds as long as the work runs", async () => {
    const { lane, post, begun, until, clock, task, ended } = await setup();
    lane.resume();
    await post("a");
    await until(() => begun.length === 1);
    await clock.advance(600_000);
    expect(await task("a")).toMatchObject({ state: "held", grant: 1 });
    begun[0]?.done(1);
    expect(await ended("a")).toMatchObject({ state: "done", lost: 0 });
  });

  it("ends the work of a cancelled step at once when it is notified, else at the next heartbeat", async () => {
    const { lane, post, begun, until, clock, engine, ended } = await setup();
    lane.resume();
    await post("a", "b");
    await until(() => begun.length === 2);
    await engine.board.cancel("a");
    await clock.advance(5_000);
    expect(await ended("a")).toMatchObject({ state: "cancelled" });
    engine.listen({ task: (task) => lane.changed(task) });
    await engine.board.cancel("b");
    expect(await ended("b")).toMatchObject({ state: "cancelled" });
  });

  it("reports nothing for a hold that it has lost", async () => {
    const { lane, post, begun, until, clock, task } = await setup();
    lane.resume();
    await post("a");
    await until(() => begun.length === 1);
    // The same as if this process had been blocked.
    clock.jump(20_000);
    await clock.advance(0);
    await until(() => begun.length === 2);
    expect(begun[0]?.work.signal.aborted).toBe(true);
    expect(await task("a")).toMatchObject({ state: "held", attempt: 1, lost: 1 });
  });

  it("gives back tasks that it did not begin, as if no worker had taken them", async () => {
    const { lane, post, begun, until, task, engine } = await setup();
    lane.resume();
    await post("a");
    await until(() => begun.length === 1);
    lane.rest();
    const back = new Promise<void>((resolve) => void engine.listen({ task: ({ state }) => state === "queued" && resolve() }));
    begun[0]?.fail(new NotBegun("it has just gone"));
    await back;
    expect(await task("a")).toMatchObject({ state: "queued", attempt: 0, lost: 0, failures: 0 });
  });

  it("takes no task while it is paused", async () => {
    const { lane, post, begun, until, clock, task } = await setup();
    lane.resume();
    lane.rest();
    await post("a");
    await clock.advance(1_000);
    expect(await task("a")).toMatchObject({ state: "queued" });
    lane.resume();
    await until(() => begun.length === 1);
  });

  it("is closed when the running work has ended, and gives back work that takes too long", async () => {
    const { lane, post, begun, until, clock, task } = await setup();
    lane.resume();
    await post("a", "b");
    await until(() => begun.length === 2);
    const closed = lane.close(10_000);
    begun.find(({ work }) => work.component === "/a")?.done("in time");
    await clock.advance(10_000);
    await closed;
    expect(await task("a")).toMatchObject({ state: "done" });
    expect(await task("b")).toMatchObject({ state: "queued", failures: 0, lost: 0 });
  });

  it("continues when the store could not be written", async () => {
    const { lane, clock, engine, troubles, post, begun, until } = await setup({});
    const { claim } = engine.board;
    let broken = true;
    engine.board.claim = (...given) => (broken ? Promise.reject(new Error("disk full")) : claim.apply(engine.board, given));
    lane.resume();
    await clock.armed(500);
    expect(troubles.slice(0, 1)).toEqual(["claim"]);
    broken = false;
    await clock.advance(500);
    await post("a");
    await until(() => begun.length === 1);
  });

  it("refuses to lend a slot when too many are lent", async () => {
    const { lane, post, begun, until, ended } = await setup({ lentMax: 1 });
    lane.resume();
    await post("a", "b");
    await until(() => begun.length === 2);
    let wake = () => {};
    const lent = begun[0]?.work.lend(() => new Promise<void>((resolve) => (wake = resolve)));
    await expect(begun[1]?.work.lend(async () => {})).rejects.toThrow("1 steps wait for others already");
    begun[1]?.fail(new StepFailure({ code: "RESOURCE_UNAVAILABLE", message: "too many" }, { final: true }));
    wake();
    await lent;
    begun[0]?.done(1);
    expect((await ended(begun[0]?.work.task.id as string)).state).toBe("done");
  });

  it("stops what a cancelled step has started before it reports the end", async () => {
    const abandoned: string[] = [];
    const world = await setup({
      abandon: async ({ id }) => {
        abandoned.push(`${id} ${(await world.task(id)).state}`);
      },
    });
    world.engine.listen({ task: (task) => world.lane.changed(task) });
    world.lane.resume();
    await world.post("a");
    await world.until(() => world.begun.length === 1);
    await world.engine.board.cancel("a");
    expect(await world.ended("a")).toMatchObject({ state: "cancelled" });
    expect(abandoned).toEqual(["a cancelling"]);
  });
});

describe("a lane whose work ends with this process", () => {
  it("has holds without an end, which need no renewal", async () => {
    const { lane, post, begun, until, clock, task, ended } = await setup({ own: true });
    lane.resume();
    await post("a");
    await until(() => begun.length === 1);
    clock.jump(86_400_000);
    await clock.advance(0);
    expect(await task("a")).toMatchObject({ state: "held", holdUntil: null, grant: 1 });
    begun[0]?.done(1);
    expect(await ended("a")).toMatchObject({ state: "done", lost: 0 });
  });

  it("queues the tasks again that the last process held, and ends those that it had to stop", async () => {
    const directory = temporaryFolder();
    const first = await setup({ own: true, directory });
    first.lane.resume();
    await first.post("a", "b");
    await first.until(() => first.begun.length === 2);
    await first.engine.board.cancel("b");
    // The same as if the process had been killed: it gives back nothing and reports nothing.
    await first.engine.close();
    const abandoned: string[] = [];
    const second = await setup({
      own: true,
      directory,
      abandon: async ({ id }) => {
        abandoned.push(id);
      },
    });
    expect((await second.task("a")).state).toBe("held");
    await second.lane.recover(second.engine.reader);
    expect(abandoned).toEqual(["b"]);
    expect((await second.task("b")).state).toBe("cancelled");
    second.lane.resume();
    await second.until(() => second.begun.length === 1);
    expect(second.begun[0]?.work.task).toMatchObject({ id: "a", attempt: 0, failures: 0, lost: 0 });
    second.begun[0]?.done(1);
    expect((await second.ended("a")).state).toBe("done");
  });
});
