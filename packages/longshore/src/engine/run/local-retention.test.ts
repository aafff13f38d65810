import { describe, expect, it } from "vitest";
import { places } from "../../../test/support/parts.ts";
import { dayMs, forever, setup } from "../../../test/support/retention.ts";
import { lingerMs } from "./retention.ts";

describe.each(places)("retention in %s", (place) => {
  it("a run is removed with its tasks, attempts, joins, keys, signals and logs, and others stay whole", async () => {
    const { parts, prune, rows, log } = await setup(place);
    await parts.define("w", ["a", "b"]);
    const signalled = async (key: string) => {
      const { id } = await parts.start("w", { key });
      await parts.runs.signals.send(id, { name: "go", value: "1" });
      for (let step = 0; step < 2; step++) await parts.complete(await parts.claim());
      return { id };
    };
    const old = await signalled("old");
    await log(`${old.id}.0`, old.id);
    parts.db.exec(`INSERT INTO node_join (run_id, node, left_count) VALUES ('${old.id}', 1, -1)`);
    parts.db.exec(
      `INSERT INTO attempt (task_id, grant_count, attempt, closed_by, queued_at, ended_at) VALUES ('${old.id}.0', 1, 0, 'fail', 0, 0)`,
    );
    parts.clock.jump(2 * dayMs);
    const kept = await signalled("kept");
    await log(`${kept.id}.0`, kept.id);
    expect(await prune({ runs: { ...forever, ageMs: dayMs } })).toEqual({ runs: 1, tasks: 0, logs: 0, blobs: 0 });
    expect(rows()).toMatchObject({ run: 1, task: 2, attempt: 0, node_join: 0, run_key: 1, log: 1, blob: 0, pruned: 0, signal: 1 });
    expect(await parts.runs.run(old.id)).toBeUndefined();
    expect((await parts.runs.run(kept.id))?.state).toBe("succeeded");
    // The key of a pruned run may be used again.
    expect((await parts.start("w", { key: "old" })).id).not.toBe(old.id);
  });

  it("a run stays until its successor, which is made from it, is started", async () => {
    const { parts, prune } = await setup(place);
    await parts.define("w", ["a"]);
    const { id: from } = await parts.finish("w");
    const message = { kind: "start-run", workflow: null, dialect: "chain", input: "null", parentTaskId: null, runId: "next", from };
    parts.db.prepare("INSERT INTO message (id, body) VALUES (1, ?)").run(JSON.stringify(message));
    await parts.runs.recoverMessages();
    parts.clock.jump(2 * dayMs);
    const old = { runs: { ...forever, ageMs: dayMs } };
    expect((await prune(old)).runs).toBe(0);
    for (const stored of await parts.runs.messages()) await parts.runs.deliver(stored, { failed: "there is none" });
    expect((await prune(old)).runs).toBe(1);
  });

  it("a run that has not ended is never pruned, at any age", async () => {
    const { parts, prune } = await setup(place);
    await parts.define("w", ["a"]);
    const open = await parts.start("w");
    parts.clock.jump(100 * dayMs);
    expect(await prune({ runs: { ageMs: dayMs, count: 0 } })).toEqual({ runs: 0, tasks: 0, logs: 0, blobs: 0 });
    await parts.complete(await parts.claim());
    // Its age counts from its end.
    expect((await prune({ runs: { ...forever, ageMs: dayMs } })).runs).toBe(0);
    expect((await parts.runs.run(open.id))?.state).toBe("succeeded");
  });

  it("above the count, the runs that ended first are removed, in any number of batches", async () => {
    const { parts, prune, rows } = await setup(place);
    await parts.define("w", ["a"]);
    const ended = [];
    for (let n = 0; n < 130; n++) {
      ended.push((await parts.finish("w")).id);
      parts.clock.jump(1);
    }
    parts.clock.jump(lingerMs);
    expect((await prune({ runs: { ...forever, count: 10 } })).runs).toBe(120);
    expect(parts.counts.endedRuns).toBe(10);
    expect(rows()).toMatchObject({ run: 10, task: 10, pruned: 0 });
    const left = parts.db.prepare("SELECT id FROM run ORDER BY id").all();
    expect(left.map((row) => row.id)).toEqual(ended.slice(120));
    expect((await prune({ runs: { ...forever, count: 10 } })).runs).toBe(0);
  });

  it("what has just ended is not pruned by count", async () => {
    const { parts, prune } = await setup(place);
    await parts.define("w", ["a"]);
    await parts.finish("w");
    expect((await prune({ runs: { ...forever, count: 0 } })).runs).toBe(0);
    parts.clock.jump(lingerMs);
    expect((await prune({ runs: { ...forever, count: 0 } })).runs).toBe(1);
  });

  it("tasks without a run are removed by age and by count, with their attempts and logs", async () => {
    const { parts, prune, rows, log, post } = await setup(place);
    for (const id of ["T1", "T2", "T3"]) {
      const task = await post(id);
      await log(id, null);
      await parts.complete(task);
      parts.clock.jump(dayMs);
    }
    const open = await post("T4");
    expect((await prune({ tasks: { ...forever, ageMs: 2.5 * dayMs } })).tasks).toBe(1);
    expect(rows()).toMatchObject({ task: 3, log: 2, pruned: 0 });
    expect((await prune({ tasks: { ...forever, count: 1 } })).tasks).toBe(1);
    expect(await parts.board.task("T3")).toBeDefined();
    expect((await parts.board.task(open.id))?.state).toBe("held");
    await parts.complete(open);
    expect(parts.counts.endedTasks).toBe(2);
  });

  it("the parts of a task without a run are removed with it, in small transactions, and those of others stay", async () => {
    const { parts, streams, prune, rows, post } = await setup(place);
    const put = async (id: string, count: number) => {
      const task = await post(id);
      const hold = { taskId: id, grant: task.grant };
      for (let at = 0; at < count; at += 100) {
        const uids = Array.from({ length: Math.min(100, count - at) }, (_, more) => `p${at + more}`);
        expect(
          await streams.put(
            hold,
            uids.map((uid) => ({ uid, value: "1" })),
          ),
        ).toBe("ok");
      }
      return task;
    };
    const [gone, open] = [await put("T1", 900), await put("T2", 3)];
    // It has read parts of the other task, too.
    await streams.finish({ taskId: "T1", grant: gone.grant }, "T2", ["p0", "p1"]);
    await parts.complete(gone);
    expect(rows()).toMatchObject({ part: 903, part_uid: 10, part_read: 1 });
    parts.clock.jump(2 * dayMs);
    const before = parts.commit.commits;
    expect((await prune({ tasks: { ...forever, ageMs: dayMs } })).tasks).toBe(1);
    expect(parts.commit.commits - before).toBeGreaterThan(4);
    expect(rows()).toMatchObject({ task: 1, part: 3, part_uid: 1, part_read: 0, pruned: 0 });
    expect((await streams.read(open.id, 0, 10)).parts).toHaveLength(3);
    expect((await streams.read("T1", 0, 10)).parts).toEqual([]);
  });

  it("pruning runs leaves tasks without a run, and the other way round", async () => {
    const { parts, prune, rows, post } = await setup(place);
    await parts.define("w", ["a"]);
    await parts.finish("w");
    await parts.complete(await post("T1"));
    parts.clock.jump(2 * dayMs);
    await prune({ tasks: { ...forever, ageMs: dayMs } });
    expect(rows()).toMatchObject({ run: 1, task: 1 });
    await prune({ runs: { ...forever, ageMs: dayMs } });
    expect(rows()).toMatchObject({ run: 0, task: 0 });
  });

  it("a large run is removed in many small transactions, and other requests are served between them", async () => {
    const { parts, prune, rows, log } = await setup(place);
    await parts.define(
      "large",
      Array.from({ length: 500 }, (_, n) => `s${n}`),
    );
    await parts.define("small", ["a"]);
    const run = await parts.finish("large");
    for (let n = 0; n < 30; n++) await log(`${run.id}.0`, run.id, n);
    parts.clock.jump(2 * dayMs);
    const before = parts.commit.commits;
    let served = 0;
    let pruning = true;
    const service = (async () => {
      for (; pruning; served++) await parts.finish("small");
    })();
    expect((await prune({ runs: { ...forever, ageMs: dayMs } })).runs).toBe(1);
    pruning = false;
    await service;
    expect(parts.commit.commits - before).toBeGreaterThanOrEqual(5);
    expect(served).toBeGreaterThan(1);
    expect(rows()).toMatchObject({ run: served, task: served, log: 0, pruned: 0 });
  });

  it("a run that is retried while it would be pruned stays, or is removed as a whole", async () => {
    const { parts, prune } = await setup(place);
    await parts.define("w", ["a"]);
    const ids = [];
    for (let n = 0; n < 6; n++) {
      const run = await parts.start("w");
      await parts.fail(await parts.claim());
      ids.push(run.id);
    }
    parts.clock.jump(2 * dayMs);
    const retries = ids.map((id) => parts.runs.tell(id, { kind: "retry" }));
    const [pruned, ...after] = await Promise.all([prune({ runs: { ...forever, ageMs: dayMs } }), ...retries]);
    expect(pruned.runs + after.filter((run) => run?.state === "running").length).toBe(6);
    for (const run of after) if (run !== undefined) await parts.complete(await parts.claim());
    for (const run of after) if (run !== undefined) expect((await parts.runs.run(run.id))?.state).toBe("succeeded");
  });

  it("logs are removed before their runs and tasks, in small transactions, and those of open ones stay", async () => {
    const { parts, prune, rows, log, post } = await setup(place);
    await parts.define("w", ["a"]);
    const old = await parts.finish("w");
    for (let n = 0; n < 50; n++) await log(`${old.id}.0`, old.id, n);
    const loose = await post("T1");
    await log("T1", null);
    await parts.complete(loose);
    const open = await parts.start("w");
    await log(`${open.id}.0`, open.id);
    parts.clock.jump(2 * dayMs);
    const fresh = await parts
      .claim()
      .then((task) => parts.complete(task))
      .then(() => parts.finish("w"));
    await log(`${fresh.id}.0`, fresh.id);
    const before = parts.commit.commits;
    const policy = { logs: { ...forever, ageMs: dayMs } };
    expect(await prune(policy)).toEqual({ runs: 0, tasks: 0, logs: 2, blobs: 0 });
    expect(parts.commit.commits - before).toBe(4);
    expect(rows()).toMatchObject({ run: 3, log: 2 });
    expect((await prune(policy)).logs).toBe(0);
    expect(parts.commit.commits - before).toBe(4);
    parts.clock.jump(2 * dayMs);
    expect((await prune(policy)).logs).toBe(2);
    expect(rows()).toMatchObject({ run: 3, log: 0 });
  });

  it("above their count, the logs of the runs that ended first are removed", async () => {
    const { parts, prune, rows, log } = await setup(place);
    await parts.define("w", ["a"]);
    for (let n = 0; n < 130; n++) {
      const run = await parts.finish("w");
      await log(`${run.id}.0`, run.id);
      parts.clock.jump(1);
    }
    const policy = { logs: { ...forever, count: 10 } };
    expect((await prune(policy)).logs).toBe(0);
    parts.clock.jump(lingerMs);
    expect((await prune(policy)).logs).toBe(120);
    expect(rows()).toMatchObject({ run: 130, log: 10 });
    expect((await prune(policy)).logs).toBe(0);
  });

  it("a run that is tried again keeps its logs until it has ended once more", async () => {
    const { parts, prune, rows, log } = await setup(place);
    await parts.define("w", ["a"]);
    const run = await parts.start("w");
    await parts.fail(await parts.claim());
    await log(`${run.id}.0`, run.id);
    parts.clock.jump(2 * dayMs);
    const policy = { logs: { ...forever, ageMs: dayMs } };
    const [pruned] = await Promise.all([prune(policy), parts.runs.tell(run.id, { kind: "retry" })]);
    expect(rows()).toMatchObject({ log: 1 - pruned.logs });
    await log(`${run.id}.0`, run.id, 1);
    expect((await prune(policy)).logs).toBe(0);
    await parts.complete(await parts.claim());
    parts.clock.jump(2 * dayMs);
    expect((await prune(policy)).logs).toBe(1);
    expect(rows()).toMatchObject({ run: 1, log: 0 });
  });

  it("a pruning that finds nothing commits nothing", async () => {
    const { parts, prune } = await setup(place);
    await parts.define("w", ["a"]);
    await parts.finish("w");
    const before = parts.commit.commits;
    await prune({});
    expect(parts.commit.commits).toBe(before);
  });

  it("an abort stops a pruning after the current transaction, and the next pruning continues", async () => {
    const { parts, prune, rows } = await setup(place);
    await parts.define(
      "large",
      Array.from({ length: 450 }, (_, n) => `s${n}`),
    );
    await parts.finish("large");
    parts.clock.jump(2 * dayMs);
    const abort = new AbortController();
    const before = parts.commit.commits;
    const pruning = prune({ runs: { ...forever, ageMs: dayMs } }, abort.signal);
    while (parts.commit.commits < before + 2) await new Promise((resolve) => setImmediate(resolve));
    abort.abort();
    await pruning;
    expect(rows()).toMatchObject({ run: 0, pruned: 1 });
    expect(rows().task).toBeGreaterThan(0);
    await prune({});
    expect(rows()).toMatchObject({ task: 0, pruned: 0 });
  });
});

describe("retention over a restart", () => {
  it("continues with what a killed process left half removed", async () => {
    const first = await setup("a file");
    await first.parts.define(
      "large",
      Array.from({ length: 450 }, (_, n) => `s${n}`),
    );
    await first.parts.finish("large");
    first.parts.clock.jump(2 * dayMs);
    const abort = new AbortController();
    const before = first.parts.commit.commits;
    const pruning = first.prune({ runs: { ...forever, ageMs: dayMs } }, abort.signal);
    while (first.parts.commit.commits < before + 2) await new Promise((resolve) => setImmediate(resolve));
    abort.abort();
    await pruning;
    await first.parts.close();
    const second = await setup("a file", first.parts);
    expect(second.rows().task).toBeGreaterThan(0);
    await second.prune({});
    expect(second.rows()).toMatchObject({ run: 0, task: 0, pruned: 0 });
  });

  it("counts what earlier processes left, and prunes by it", async () => {
    const first = await setup("a file");
    await first.parts.define("w", ["a"]);
    for (let n = 0; n < 5; n++) await first.parts.finish("w");
    await first.parts.close();
    const second = await setup("a file", first.parts);
    second.parts.clock.jump(lingerMs);
    expect((await second.prune({ runs: { ...forever, count: 2 } })).runs).toBe(3);
  });

  it("finds what to remove by index alone, for any amount of data", async () => {
    const { parts } = await setup("a file");
    const plan = (sql: string) =>
      parts.db
        .prepare(`EXPLAIN QUERY PLAN ${sql}`)
        .all()
        .map((row) => String(row.detail))
        .join("; ");
    const runs = "SELECT id FROM run WHERE ended_at IS NOT NULL AND ended_at <= 1 ORDER BY ended_at, id LIMIT 1";
    const tasks = "SELECT id FROM task WHERE ended_at IS NOT NULL AND run_id IS NULL AND ended_at <= 1 ORDER BY ended_at, id LIMIT 1";
    const open = "SELECT id FROM run WHERE ended_at IS NULL AND (workflow, id) > ('', '') ORDER BY workflow, id LIMIT 1";
    const slice = "SELECT ended_at, id FROM run WHERE ended_at IS NOT NULL AND (ended_at, id) > (1, 'x') ORDER BY ended_at, id LIMIT 1";
    expect(plan(runs)).toMatch(/^SEARCH run USING COVERING INDEX run_ended \(ended_at[^;]*$/);
    expect(plan(tasks)).toMatch(/^SEARCH task USING COVERING INDEX task_ended \(ended_at[^;]*$/);
    expect(plan(open)).toMatch(/^SEARCH run USING COVERING INDEX run_open \(\(workflow,id\)>[^;]*$/);
    expect(plan(slice)).toMatch(/^SEARCH run USING COVERING INDEX run_ended \(\(ended_at,id\)>[^;]*$/);
  });
});
