import { describe, expect, it } from "vitest";
import { openParts, places } from "../../../test/support/parts.ts";
import { Slices } from "../../core/slices/slices.ts";
import { LocalReader } from "./local-reader.ts";
import { type Page, pageMax } from "./reader.ts";

async function collected<T>(items: AsyncIterable<T>): Promise<T[]> {
  const all: T[] = [];
  for await (const item of items) all.push(item);
  return all;
}

describe.each(places)("reading from %s", (place) => {
  async function setup() {
    const parts = await openParts(place);
    const { tasks, lanes } = parts.board;
    const { runs, definitions } = parts.runs;
    const reader = new LocalReader({
      ...parts,
      read: (work) => parts.commit.read(work),
      tasks,
      runs,
      definitions,
      lanes,
      slices: new Slices(),
    });
    await parts.define("w", ["a", "b"]);
    await parts.define("other", ["x"]);
    return { parts, reader };
  }

  async function allPages<T>(next: (before: string | undefined) => Promise<Page<T>>): Promise<T[]> {
    const all: T[] = [];
    for (let before: string | undefined; ; ) {
      const page = await next(before);
      all.push(...page.items);
      if (page.next === null) return all;
      before = page.next;
    }
  }

  it("a run is found by id, by alias and as the newest of its workflow", async () => {
    const { parts, reader } = await setup();
    const first = await parts.start("w", { alias: "ci-1" });
    const second = await parts.start("w", { alias: "ci-1" });
    expect((await reader.run(first.id))?.id).toBe(first.id);
    expect(await reader.run("nobody")).toBeUndefined();
    expect((await reader.runByAlias("ci-1"))?.id).toBe(second.id);
    expect(await reader.runByAlias("ci-2")).toBeUndefined();
    expect((await reader.newestRun("w"))?.id).toBe(second.id);
    expect(await reader.newestRun("other")).toBeUndefined();
  });

  it("an open run is read from memory, and one that has ended from the file", async () => {
    const { parts, reader } = await setup();
    const { id } = await parts.start("w");
    const open = await reader.run(id);
    expect(await reader.run(id)).toBe(open);
    await parts.runs.tell(id, { kind: "cancel" });
    expect(await reader.run(id)).toMatchObject({ id, state: "cancelled" });
    expect(await reader.run(id)).not.toBe(await reader.run(id));
  });

  it("runs are found by a pattern, and by words anywhere in their texts, in any case", async () => {
    const { parts, reader } = await setup();
    const first = await parts.start("w", { alias: "Build_1" });
    const second = await parts.start("other", { alias: "build%2" });
    const found = async (search: object) => {
      const ids: string[] = [];
      for await (const { id } of (await reader.search({ offset: 0, limit: 10, ...search })).runs) ids.push(id);
      return ids;
    };
    expect(await found({ like: { alias: "build*" } })).toEqual([second.id, first.id]);
    expect(await found({ like: { alias: "*D_1" } })).toEqual([first.id]);
    expect(await found({ like: { alias: "*%*" }, workflows: ["other"] })).toEqual([second.id]);
    expect(await found({ like: { workflow: "oth*r", id: `${second.id}*` } })).toEqual([second.id]);
    expect(await found({ text: "BUILD_" })).toEqual([first.id]);
    expect(await found({ text: "nowhere" })).toEqual([]);
  });

  it("definitions whose names begin with a dot are in no list, and are found by their names", async () => {
    const { parts, reader } = await setup();
    await parts.define(".hidden", ["a"]);
    expect((await reader.definitions({ limit: 10 })).map(({ name }) => name)).toEqual(["other", "w"]);
    expect((await reader.definition(".hidden"))?.name).toBe(".hidden");
  });

  it("runs that were named together are read in the order of their ids, and counted by state", async () => {
    const { parts, reader } = await setup();
    for (const id of ["b", "b-1", "b-2", "b-3", "b.4", "c-1"]) await parts.start("w", { id });
    await parts.runs.tell("b-2", { kind: "cancel" });
    expect((await collected(reader.runsUnder("b-"))).map(({ id }) => id)).toEqual(["b-1", "b-2", "b-3"]);
    expect(await reader.statesUnder("b-")).toEqual(
      new Map([
        ["running", 2],
        ["cancelled", 1],
      ]),
    );
    expect(await reader.statesUnder("d-")).toEqual(new Map());
  });

  it("tasks that no worker has are counted by their lane, and no others", async () => {
    const { parts, reader } = await setup();
    expect(await reader.queued()).toEqual(new Map());
    await parts.start("w");
    await parts.start("w");
    const cancelled = await parts.start("other");
    expect(await reader.queued()).toEqual(new Map([["work", 3]]));
    await parts.runs.tell(cancelled.id, { kind: "cancel" });
    await parts.claim();
    expect(await reader.queued()).toEqual(new Map([["work", 1]]));
  });

  it("pages of runs give each run once, newest first, for any filter", async () => {
    const { parts, reader } = await setup();
    const ids: { [state: string]: string[] } = { succeeded: [], failed: [], cancelled: [], running: [] };
    for (let n = 0; n < 3; n++) {
      ids.succeeded!.unshift((await parts.finish("other")).id);
      const failed = await parts.start("other");
      await parts.fail(await parts.claim());
      ids.failed!.unshift(failed.id);
      const cancelled = await parts.start("w");
      await parts.runs.tell(cancelled.id, { kind: "cancel" });
      ids.cancelled!.unshift(cancelled.id);
    }
    for (let n = 0; n < 3; n++) ids.running!.unshift((await parts.start("w")).id);
    const every = Object.values(ids).flat().sort().reverse();
    const listed = async (query: { workflow?: string; state?: "succeeded" | "failed" | "cancelled" | "running" }, limit: number) =>
      (await allPages((before) => reader.runs({ ...query, before, limit }))).map((run) => run.id);
    for (const limit of [1, 2, 100]) {
      expect(await listed({}, limit)).toEqual(every);
      for (const state of ["succeeded", "failed", "cancelled", "running"] as const)
        expect(await listed({ state }, limit)).toEqual(ids[state]);
      expect(await listed({ workflow: "other", state: "failed" }, limit)).toEqual(ids.failed);
      expect(await listed({ workflow: "w" }, limit)).toEqual([...ids.cancelled!, ...ids.running!].sort().reverse());
      expect(await listed({ workflow: "nobody" }, limit)).toEqual([]);
    }
    expect((await reader.openRuns("w")).map((run) => run.id)).toEqual(ids.running);
    expect(await reader.openRuns("other")).toEqual([]);
  });

  it("a rare match among many rows is found over several short pages", async () => {
    const { parts, reader } = await setup();
    const rare = await parts.finish("other");
    const definition = (await reader.definition("w"))!;
    parts.db.exec(`
      WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 12000)
      INSERT INTO run (id, workflow, definition_id, state, input, created_at, ended_at, left_count, failed_count, retries, parent_attempt)
      SELECT 'Z' || i, 'w', '${definition.id}', 'failed', 'null', 0, 1, 0, 1, 0, 0 FROM n`);
    const first = await reader.runs({ state: "succeeded", limit: 10 });
    expect(first.items).toEqual([]);
    expect(first.next).not.toBeNull();
    const all = await allPages((before) => reader.runs({ state: "succeeded", before, limit: 10 }));
    expect(all.map((run) => run.id)).toEqual([rare.id]);
  });

  it("a page is never larger than the limit of pages", async () => {
    const { parts, reader } = await setup();
    const posts = Array.from({ length: pageMax + 5 }, (_, n) => ({
      id: `T${10_000 + n}`,
      step: "s",
      lanes: [{ name: "work", labels: [] }],
      input: "null",
      policy: null,
    }));
    await parts.board.post(posts);
    const page = await reader.tasks({ limit: 1_000_000 });
    expect(page.items).toHaveLength(pageMax);
    expect((await reader.tasks({ before: page.next!, limit: 1_000_000 })).items).toHaveLength(5);
    expect(await reader.tasks({ limit: 0 })).toEqual({ items: [], next: null });
  });

  it("the records of a run are listed in the order of its steps, also above ten", async () => {
    const { parts, reader } = await setup();
    const steps = Array.from({ length: 12 }, (_, n) => `s${n}`);
    await parts.define("long", steps);
    const run = await parts.finish("long");
    await parts.finish("w");
    expect((await collected(reader.records(run.id))).map((task) => task.step)).toEqual(steps);
    expect((await reader.heads(run.id)).map((task) => task.step)).toEqual(steps);
    expect(await collected(reader.records("nobody"))).toEqual([]);
  });

  it("tasks are listed by state, lane and run", async () => {
    const { parts, reader } = await setup();
    const run = await parts.finish("w");
    await parts.board.post([{ id: "000", step: "s", lanes: [{ name: "elsewhere", labels: ["gpu"] }], input: "null", policy: null }]);
    const open = await parts.start("other");
    const held = await parts.claim();
    const ids = async (query: Parameters<typeof reader.tasks>[0]) => (await reader.tasks(query)).items.map((task) => task.id);
    expect(await ids({ state: "held", limit: 10 })).toEqual([held.id]);
    expect(await ids({ state: "queued", limit: 10 })).toEqual(["000"]);
    expect(await ids({ lane: "elsewhere", limit: 10 })).toEqual(["000"]);
    expect(await ids({ state: "done", limit: 10 })).toEqual([`${run.id}.1`, `${run.id}.0`]);
    expect(await ids({ runId: run.id, limit: 10 })).toEqual([`${run.id}.1`, `${run.id}.0`]);
    expect(await ids({ runId: run.id, state: "held", limit: 10 })).toEqual([]);
    expect(await ids({ runId: run.id, before: `${run.id}.1`, limit: 10 })).toEqual([`${run.id}.0`]);
    expect(await ids({ limit: 10 })).toEqual([`${open.id}.0`, `${run.id}.1`, `${run.id}.0`, "000"]);
  });

  it("a hold that was renewed only in memory is shown with its new end", async () => {
    const { parts, reader } = await setup();
    const run = await parts.start("other");
    const task = await parts.claim();
    parts.clock.jump(5_000);
    const { holdUntil } = await parts.board.extend({ taskId: task.id, grant: task.grant });
    expect(holdUntil).toBe(parts.clock.now() + 30_000);
    expect((await reader.task(task.id))?.holdUntil).toBe(holdUntil);
    expect((await reader.heads(run.id))[0]?.holdUntil).toBe(holdUntil);
  });

  it("the attempts of a task are listed oldest first, with who had them and how they ended", async () => {
    const { parts, reader } = await setup();
    const policy = JSON.stringify({ failures: 5, lost: 1, backoff: { kind: "fixed", delayMs: 0 } });
    await parts.board.post([{ id: "T1", step: "s", lanes: [{ name: "work", labels: [] }], input: "null", policy }]);
    expect((await reader.attempts("T1")).map(({ attempt, endedAt }) => [attempt, endedAt])).toEqual([[0, null]]);
    await parts.fail(await parts.claim("w1"), true);
    await parts.fail(await parts.claim("w2"), true);
    const third = await parts.claim("w3");
    const shown = async () =>
      (await reader.attempts("T1")).map(({ attempt, holder, closedBy, error }) => [attempt, holder, closedBy, error]);
    const closed = [
      [0, "w1", "fail", "it broke"],
      [1, "w2", "fail", "it broke"],
    ];
    expect(await shown()).toEqual([...closed, [2, "w3", null, null]]);
    await parts.complete(third);
    expect(await shown()).toEqual([...closed, [2, "w3", "complete", null]]);
    expect(await reader.attempts("nobody")).toEqual([]);
  });

  it("definitions are listed in the order of their first versions, each in its newest version", async () => {
    const { parts, reader } = await setup();
    parts.clock.jump(1_000);
    await parts.define("aaa", ["z"]);
    await parts.define("w", ["a", "b", "c"]);
    const names = async (page: { limit: number; offset?: number; dialect?: string }) =>
      (await reader.definitions(page)).map(({ name, version }) => `${name} ${version}`);
    expect(await names({ limit: 10 })).toEqual(["other 1", "w 2", "aaa 1"]);
    expect(await names({ limit: 1, offset: 1 })).toEqual(["w 2"]);
    expect(await names({ limit: 0 })).toEqual([]);
    expect(await names({ limit: 10, dialect: "chain" })).toHaveLength(3);
    expect(await names({ limit: 10, dialect: "none" })).toEqual([]);
    expect((await reader.definition("w"))?.version).toBe(2);
    expect(await reader.definition("nobody")).toBeUndefined();
  });

  it("names of lanes are those that have had tasks, and queued tasks are counted by them", async () => {
    const { parts, reader } = await setup();
    await parts.start("w");
    await parts.start("other");
    expect([...(await reader.laneNames())]).toEqual(["work"]);
    expect([...(await reader.queued())]).toEqual([["work", 2]]);
    await parts.claim();
    expect([...(await reader.queued())]).toEqual([["work", 1]]);
  });

  it("counts are those of the stored runs and tasks", async () => {
    const { parts, reader } = await setup();
    await parts.finish("w");
    await parts.start("w");
    expect(await reader.counts()).toEqual({ openRuns: 1, endedRuns: 1, endedTasks: 0 });
  });
});
