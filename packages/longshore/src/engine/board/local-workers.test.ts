import { describe, expect, it } from "vitest";
import { openParts, type Parts, places } from "../../../test/support/parts.ts";
import { LocalWorkers } from "./local-workers.ts";

const rows = (parts: Parts) =>
  parts.db
    .prepare("SELECT id, labels FROM worker ORDER BY id")
    .all()
    .map((row) => `${row.id} ${row.labels}`);

describe.each(places)("registrations in %s", (place) => {
  async function setup() {
    const parts = await openParts(place);
    const registry = new LocalWorkers(parts);
    return { parts, registry, workers: registry.workers };
  }

  it("are written within a second, all of them in one commit", async () => {
    const { parts, workers } = await setup();
    for (const id of ["w1", "w2", "w3"]) workers.register(id, "p", ["linux"]);
    const before = parts.commit.commits;
    await parts.clock.advance(999);
    expect(parts.commit.commits).toBe(before);
    await parts.clock.advance(1);
    await parts.commit.run(() => {});
    expect(parts.commit.commits).toBe(before + 1);
    expect(rows(parts)).toEqual(['w1 ["linux"]', 'w2 ["linux"]', 'w3 ["linux"]']);
    expect(parts.clock.pending).toBe(0);
  });

  it("are written with the next commit", async () => {
    const { parts, workers } = await setup();
    workers.register("w1", "p", []);
    const before = parts.commit.commits;
    await parts.define("w", ["a"]);
    expect(rows(parts)).toEqual(["w1 []"]);
    await parts.clock.advance(5_000);
    expect(parts.commit.commits).toBe(before + 1);
  });

  it("cost no commit for each poll", async () => {
    const { parts, workers } = await setup();
    workers.register("w1", "p", []);
    await parts.clock.advance(1_000);
    await parts.commit.run(() => {});
    const before = parts.commit.commits;
    for (let poll = 0; poll < 50; poll++) {
      workers.seen("w1", { reach: { names: ["work"], labels: [] } });
      await parts.clock.advance(1_000);
    }
    expect(parts.commit.commits).toBe(before);
  });

  it("stay pending when they could not be written, and go with the next commit", async () => {
    const { parts, workers } = await setup();
    parts.db.exec("CREATE TRIGGER refuse BEFORE INSERT ON worker BEGIN SELECT raise(FAIL, 'no room'); END");
    workers.register("w1", "p", []);
    await parts.clock.advance(1_000);
    await parts.commit.run(() => {});
    expect(rows(parts)).toEqual([]);
    parts.db.exec("DROP TRIGGER refuse");
    await parts.define("w", ["a"]);
    expect(rows(parts)).toEqual(["w1 []"]);
  });

  it("are removed from the rows when the worker is forgotten", async () => {
    const { parts, registry, workers } = await setup();
    workers.register("w1", "p", []);
    await parts.define("w", ["a"]);
    parts.clock.jump(86_400_001);
    expect([...workers.views()]).toEqual([]);
    registry.close();
    await parts.commit.run(() => {});
    expect(rows(parts)).toEqual([]);
  });

  it("show the holder of a task as busy from the commit of its claim to that of its report", async () => {
    const { parts, workers } = await setup();
    parts.onTask.add((task) => workers.changed(task));
    await parts.define("w", ["a"]);
    await parts.start("w");
    workers.register("w1", "p", []);
    const task = await parts.claim("w1");
    expect(workers.get("w1")).toMatchObject({ status: "busy", tasks: [{ taskId: task.id, step: "a" }] });
    await parts.complete(task);
    expect(workers.get("w1")).toMatchObject({ status: "idle", tasks: [] });
  });
});

it("registrations outlast a restart", async () => {
  const first = await openParts("a file");
  const registry = new LocalWorkers(first);
  registry.workers.register("w1", "workflow-graph", ["linux"]);
  registry.workers.seen("passing", { reach: { names: ["work"], labels: [] } });
  const registeredAt = first.clock.now();
  registry.close();
  await first.close();
  const second = await openParts("a file", first);
  const again = new LocalWorkers(second);
  await again.recover();
  const { workers } = again;
  expect(workers.known("w1")).toBe(true);
  expect([...workers.views()]).toMatchObject([{ id: "w1", protocol: "workflow-graph", labels: ["linux"], registeredAt, registered: true }]);
});
