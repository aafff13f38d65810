import { describe, expect, it } from "vitest";
import { TestClock } from "../../testing/clock.ts";
import { newTask } from "./new-task.ts";
import type { TaskRow } from "./task.ts";
import { Workers } from "./workers.ts";

const reach = { names: ["command"], labels: ["linux"] };

describe("the registry of workers", () => {
  function setup() {
    const clock = new TestClock();
    let asked = 0;
    const workers = new Workers({
      clock,
      changed: () => {
        asked++;
      },
    });
    const status = (id: string) => workers.get(id)?.status;
    return { clock, workers, status, asked: () => asked };
  }

  function held(id: string, holder: string, more: Partial<TaskRow> = {}): TaskRow {
    const task = newTask({ id, step: `step of ${id}`, lanes: [], input: "null", policy: null }, 0, { name: "command", labels: [] });
    return { ...task, state: "held", grant: 1, holder, termMs: 30_000, claimedAt: 0, ...more };
  }

  it("a worker that registers is known and idle", () => {
    const { clock, workers } = setup();
    workers.register("w1", "workflow-graph", ["linux", "docker"]);
    expect(workers.known("w1")).toBe(true);
    expect([...workers.views()]).toEqual([
      {
        id: "w1",
        protocol: "workflow-graph",
        labels: ["linux", "docker"],
        registeredAt: clock.now(),
        seenAt: clock.now(),
        registered: true,
        reach: null,
        does: [],
        status: "idle",
        ...{ agent: null, slots: null, version: null },
        tasks: [],
      },
    ]);
  });

  it("a worker that only claims is listed, but not known as registered", () => {
    const { workers } = setup();
    workers.seen("w1", { protocol: "workflow-graph", reach });
    expect(workers.known("w1")).toBe(false);
    expect([...workers.views()]).toMatchObject([{ id: "w1", registered: false, labels: ["linux"], reach }]);
  });

  it("a worker that claims one kind after the other reaches all kinds it has claimed lately", () => {
    const { clock, workers } = setup();
    const ask = (...names: string[]) => workers.seen("w1", { protocol: "conductor", reach: { names, labels: [] } });
    for (const name of ["pack", "ship", "pack", "bill"]) {
      ask(name);
      clock.jump(1_000);
    }
    expect(workers.get("w1")).toMatchObject({ reach: { names: ["bill", "pack", "ship"] }, does: ["bill", "pack", "ship"] });
    for (let poll = 0; poll < 30; poll++) {
      clock.jump(1_000);
      ask(poll % 2 === 0 ? "pack" : "bill");
    }
    expect(workers.get("w1")?.does).toEqual(["bill", "pack"]);
    workers.register("w1", "conductor", []);
    expect(workers.get("w1")).toMatchObject({ reach: null, does: [] });
  });

  it("a worker whose claims do not name what it does may report it in another way", () => {
    const { workers } = setup();
    workers.seen("w1", { protocol: "stepflow", reach: { names: ["stepflow:python"], labels: [] } });
    expect(workers.get("w1")?.does).toEqual(["stepflow:python"]);
    workers.seen("w1", { does: ["/echo", "/core/{*path}"] });
    workers.seen("w1", { reach: { names: ["stepflow:python"], labels: [] } });
    expect(workers.get("w1")).toMatchObject({ reach: { names: ["stepflow:python"] }, does: ["/echo", "/core/{*path}"] });
  });

  it("a thousand earlier names are remembered of a worker that claims a new name each time", () => {
    const { workers } = setup();
    for (let n = 0; n < 1_500; n++) workers.seen("w1", { reach: { names: [`t${n}`], labels: [] } });
    const { does = [] } = workers.get("w1") ?? {};
    expect([does.length, does[0], does.at(-1)]).toEqual([1_001, "t1499", "t499"]);
  });

  it("registering again replaces the labels", () => {
    const { clock, workers } = setup();
    workers.register("w1", "p", ["a"]);
    clock.jump(5);
    workers.register("w1", "p", ["b"]);
    expect([...workers.views()]).toMatchObject([{ labels: ["b"], registeredAt: clock.now() }]);
  });

  it("[G51] a worker is busy while it holds a task and idle after its report", () => {
    const { workers, status } = setup();
    workers.register("w1", "p", []);
    workers.changed(held("T1", "w1"));
    expect(status("w1")).toBe("busy");
    workers.changed(held("T1", "w1", { state: "done", endedAt: 1 }));
    expect(status("w1")).toBe("idle");
    expect(workers.get("w1")?.tasks).toEqual([]);
  });

  it("[G51] a worker turns idle when its lease is lost, and the next holder busy", () => {
    const { workers, status } = setup();
    workers.register("w1", "p", []);
    workers.register("w2", "p", []);
    workers.changed(held("T1", "w1"));
    workers.changed(held("T1", "w1", { state: "queued", holder: null, grant: 2 }));
    expect([status("w1"), status("w2")]).toEqual(["idle", "idle"]);
    workers.changed(held("T1", "w2", { grant: 3 }));
    expect([status("w1"), status("w2")]).toEqual(["idle", "busy"]);
  });

  it("a task that changes hands within one commit is shown with its new holder only", () => {
    const { workers, status } = setup();
    workers.changed(held("T1", "w1"));
    workers.changed(held("T1", "w2", { grant: 3 }));
    expect([status("w1"), status("w2")]).toEqual(["idle", "busy"]);
  });

  it("[G51] a worker with several leases shows all of its jobs", () => {
    const { workers } = setup();
    workers.changed(held("R.0", "w1", { runId: "R", claimedAt: 1 }));
    workers.changed(held("R.1", "w1", { runId: "R", claimedAt: 2, state: "cancelling" }));
    expect(workers.get("w1")?.tasks).toEqual([
      { taskId: "R.0", runId: "R", step: "step of R.0", claimedAt: 1, lane: "command" },
      { taskId: "R.1", runId: "R", step: "step of R.1", claimedAt: 2, lane: "command" },
    ]);
    workers.changed(held("R.0", "w1", { state: "done", endedAt: 1 }));
    expect(workers.get("w1")).toMatchObject({ status: "busy", tasks: [{ taskId: "R.1" }] });
  });

  it("[G51] a worker is offline after three silent intervals, and any request brings it back", () => {
    const { clock, workers, status } = setup();
    workers.register("w1", "p", []);
    clock.jump(29_999);
    expect(status("w1")).toBe("idle");
    clock.jump(1);
    expect(status("w1")).toBe("offline");
    workers.seen("w1");
    expect(status("w1")).toBe("idle");
  });

  it("[G51] the heartbeat of a lease counts as a request of its worker", () => {
    const { clock, workers, status } = setup();
    workers.register("w1", "p", []);
    workers.changed(held("T1", "w1"));
    for (let beat = 0; beat < 10; beat++) {
      clock.jump(20_000);
      workers.seen("w1");
      expect(status("w1")).toBe("busy");
    }
  });

  it("a worker of an earlier process is unheard until its first request, and offline when there is none", () => {
    const { clock } = setup();
    const row = { protocol: "p", labels: [], registeredAt: 0, seenAt: clock.now() - 5_000 };
    const ids = ["seen", "registers", "reports", "silent"];
    const workers = new Workers({ clock });
    for (const id of ids) workers.restore({ id, ...row });
    for (const id of ids) workers.changed(held(`T of ${id}`, id, { termMs: 0 }));
    expect([...workers.views()].map(({ status }) => status)).toEqual(ids.map(() => "unheard"));
    workers.seen("seen");
    workers.register("registers", "p", []);
    workers.changed(held("T of reports", "reports", { state: "done", endedAt: 1, closedBy: "complete" }));
    expect(ids.map((id) => workers.get(id)?.status)).toEqual(["busy", "busy", "idle", "unheard"]);
    clock.jump(25_000);
    expect(workers.get("silent")?.status).toBe("offline");
  });

  it("a worker that is recalled is unheard for three intervals from then on, unless it has sent a request since", () => {
    const { clock } = setup();
    clock.jump(200_000_000);
    const workers = new Workers({ clock });
    workers.restore({ id: "w1", protocol: "p", labels: [], registeredAt: 0, seenAt: 7 });
    workers.recall("w1", { protocol: "flowkit", reach, everyMs: 60_000 });
    expect([...workers.views()]).toMatchObject([{ id: "w1", protocol: "flowkit", status: "unheard", seenAt: 7, does: ["command"] }]);
    clock.jump(179_999);
    expect(workers.get("w1")?.status).toBe("unheard");
    clock.jump(1);
    expect(workers.get("w1")?.status).toBe("offline");
    workers.seen("w1");
    workers.recall("w1", { protocol: "flowkit", reach, everyMs: 60_000 });
    expect(workers.get("w1")?.status).toBe("idle");
  });

  it("a worker that signs off is offline at once, and any request brings it back", () => {
    const { workers, status } = setup();
    workers.register("w1", "conductor", []);
    workers.left("w1");
    expect(status("w1")).toBe("offline");
    workers.seen("w1");
    expect(status("w1")).toBe("idle");
    workers.left("w1");
    workers.register("w1", "conductor", []);
    expect(status("w1")).toBe("idle");
    workers.left("nobody");
    expect(workers.get("nobody")).toBeUndefined();
  });

  it("a holder may be silent for its whole term before it counts as offline", () => {
    const { clock, workers, status } = setup();
    workers.seen("w1");
    workers.changed(held("T1", "w1", { termMs: 60_000 }));
    clock.jump(59_999);
    expect(status("w1")).toBe("busy");
    clock.jump(1);
    expect(status("w1")).toBe("offline");
  });

  it("a worker with a long poll is offline after three times the duration of the poll", () => {
    const { clock, workers, status } = setup();
    workers.seen("w1", { reach, everyMs: 30_000 });
    clock.jump(89_999);
    expect(status("w1")).toBe("idle");
    clock.jump(1);
    expect(status("w1")).toBe("offline");
  });

  it("[G51] a worker is forgotten after a day of silence, unless it holds something", () => {
    const { clock, workers } = setup();
    workers.register("silent", "p", []);
    workers.register("holder", "p", []);
    workers.changed(held("T1", "holder"));
    workers.written(workers.unwritten());
    clock.jump(86_400_001);
    workers.register("new", "p", []);
    expect([...workers.views()].map((worker) => worker.id)).toEqual(["holder", "new"]);
    expect(workers.known("silent")).toBe(false);
    expect(workers.unwritten().forgotten).toEqual(["silent"]);
  });

  it("ten thousand workers are remembered; above that, those silent for longest are removed", () => {
    const { clock, workers } = setup();
    workers.register("first", "p", []);
    workers.changed(held("T1", "first"));
    for (let n = 0; n < 10_500; n++) {
      clock.jump(1);
      workers.seen(`w${n}`);
    }
    const ids = [...workers.views()].map((worker) => worker.id);
    expect(ids.length).toBeLessThanOrEqual(10_000);
    expect(ids).toContain("first");
    expect(ids).not.toContain("w0");
    expect(ids).toContain("w10499");
  });

  it("what changes while it is being written has to be written again", () => {
    const clock = new TestClock();
    const workers = new Workers({ clock });
    workers.register("w1", "p", ["a"]);
    const writing = workers.unwritten();
    workers.register("w1", "p", ["b"]);
    workers.written(writing);
    expect(workers.unwritten().registrations).toMatchObject([{ id: "w1", labels: ["b"] }]);
    workers.written(workers.unwritten());
    expect(workers.unwritten()).toEqual({ registrations: [], forgotten: [] });
  });

  it("a registration is written once, the time of its last request only now and then", () => {
    const { clock, workers, asked } = setup();
    workers.register("w1", "p", ["a"]);
    workers.register("w2", "p", []);
    expect(asked()).toBe(1);
    expect(workers.unwritten().registrations.map((row) => row.id)).toEqual(["w1", "w2"]);
    workers.written(workers.unwritten());
    for (let poll = 0; poll < 59; poll++) {
      clock.jump(1_000);
      workers.seen("w1", { reach });
    }
    expect(asked()).toBe(1);
    clock.jump(1_000);
    workers.seen("w1", { reach });
    expect(asked()).toBe(2);
    expect(workers.unwritten().registrations).toMatchObject([{ id: "w1", labels: ["a"], seenAt: clock.now() }]);
  });

  it("workers that never registered are never written", () => {
    const { clock, workers, asked } = setup();
    workers.seen("w1", { reach });
    clock.jump(3_600_000);
    workers.seen("w1", { reach });
    expect(asked()).toBe(0);
  });
});
