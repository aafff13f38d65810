import { describe, expect, it } from "vitest";
import { openParts, places } from "../../../test/support/parts.ts";
import { Slices } from "../../core/slices/slices.ts";
import { LocalSummaries } from "./local-summaries.ts";
import type { SummaryQuery } from "./run-summary.ts";

describe.each(places)("summaries of runs from %s", (place) => {
  async function setup() {
    const parts = await openParts(place);
    const slices = new Slices();
    const { counts, clock, store } = parts;
    const read: typeof parts.commit.read = (work) => parts.commit.read(work);
    const summaries = new LocalSummaries({ store, read, slices, clock, counts, tasks: parts.board.tasks });
    await parts.define("w", ["a", "b"]);
    await parts.define("other", ["x"]);
    const idsOf = async (query: Partial<SummaryQuery>) => {
      const ids: string[] = [];
      for (let before: string | undefined; ; ) {
        const { items, next } = await summaries.page({ limit: 2, ...query, before });
        ids.push(...items.map(({ id }) => id));
        if (next === null) return ids;
        before = next;
      }
    };
    return { parts, summaries, slices, idsOf };
  }

  it("have the progress, the version and the beginning of the error", async () => {
    const { parts, summaries } = await setup();
    const run = await parts.start("w");
    await parts.complete(await parts.claim());
    const task = await parts.claim();
    await parts.board.settle({ verb: "fail", hold: { taskId: task.id, grant: task.grant }, error: "x".repeat(300), retryable: false });
    const { items, next, looked, of } = await summaries.page({ limit: 10 });
    expect({ next, looked, of }).toEqual({ next: null, looked: 1, of: 1 });
    expect(items).toMatchObject([
      { id: run.id, workflow: "w", version: 1, dialect: "chain", state: "failed", steps: 2, failed: 1, retries: 0 },
    ]);
    expect(items[0]?.firstError).toBe(`step b failed: ${"x".repeat(185)}`);
    expect(items[0]).not.toHaveProperty("input");
  });

  it("are merged from the indexes of several states and workflows, newest first", async () => {
    const { parts, idsOf } = await setup();
    const made: string[] = [];
    for (const workflow of ["w", "other", "w", "other", "other"]) {
      const { id } = await parts.start(workflow);
      made.unshift(id);
      await parts.clock.advance(1);
    }
    const [e, d, c, b, a] = made as [string, string, string, string, string];
    await parts.fail(await parts.claim());
    await parts.runs.tell(d, { kind: "cancel" });
    await parts.complete(await parts.claim());
    expect(await idsOf({})).toEqual([e, d, c, b, a]);
    expect(await idsOf({ workflows: ["w", "other"] })).toEqual([e, d, c, b, a]);
    expect(await idsOf({ workflows: ["w"] })).toEqual([c, a]);
    expect(await idsOf({ states: ["failed", "cancelled"] })).toEqual([d, a]);
    expect(await idsOf({ states: ["failed", "cancelled", "running", "paused"] })).toEqual([e, d, c, a]);
    expect(await idsOf({ states: ["failed", "succeeded"] })).toEqual([b, a]);
    expect(await idsOf({ states: ["cancelled"], workflows: ["w"] })).toEqual([]);
  });

  it("are found by times, by duration and by error", async () => {
    const { parts, idsOf } = await setup();
    const first = await parts.start("other");
    await parts.clock.advance(1_000);
    const second = await parts.start("other");
    await parts.clock.advance(1_000);
    const third = await parts.start("other");
    expect(await idsOf({ created: { after: first.createdAt } })).toEqual([third.id, second.id]);
    expect(await idsOf({ created: { after: first.createdAt, before: third.createdAt } })).toEqual([second.id]);
    expect(await idsOf({ created: { before: second.createdAt } })).toEqual([first.id]);
    await parts.clock.advance(500);
    await parts.fail(await parts.claim());
    expect(await idsOf({ ended: { after: third.createdAt } })).toEqual([first.id]);
    expect(await idsOf({ ended: { before: third.createdAt } })).toEqual([]);
    expect(await idsOf({ minMs: 1_500 })).toEqual([second.id, first.id]);
    expect(await idsOf({ error: "IT Broke" })).toEqual([first.id]);
  });

  it("are found by alias, dialect and text, and by values in their data", async () => {
    const { parts, idsOf } = await setup();
    const first = await parts.start("other", { alias: "ci-1", input: '{"customer":{"id":17,"tags":["vip"]},"big":12345678901234567890}' });
    const second = await parts.start("w", { alias: "ci-2", input: '{"customer":{"id":18}}' });
    expect(await idsOf({ alias: "ci-2" })).toEqual([second.id]);
    expect(await idsOf({ dialects: ["chain"] })).toEqual([second.id, first.id]);
    expect(await idsOf({ dialects: ["other"] })).toEqual([]);
    expect(await idsOf({ text: "VIP" })).toEqual([first.id]);
    expect(await idsOf({ text: "ci-" })).toEqual([second.id, first.id]);
    const where = (path: string, value: string) => idsOf({ values: [{ of: "input", path: path.split("."), value }] });
    expect(await where("customer.id", "17")).toEqual([first.id]);
    expect(await where("customer.tags.0", "vip")).toEqual([first.id]);
    expect(await where("big", "12345678901234567890")).toEqual([first.id]);
    expect(await where("customer", "[object Object]")).toEqual([]);
    expect(await where("customer.constructor", "17")).toEqual([]);
    expect(await idsOf({ values: [{ of: "output", path: ["ok"], value: "true" }] })).toEqual([]);
  });

  it("of the runs that a run has started continue after the last page", async () => {
    const { parts, idsOf } = await setup();
    const parent = await parts.start("w");
    const definition = await parts.runs.definition("other");
    const children: string[] = [];
    for (let node = 0; node < 5; node++) {
      const id = parts.makeId(parts.clock.now());
      children.push(id);
      const started = { id, workflow: "other", definitionId: definition?.id ?? "", input: "null" };
      await parts.runs.start({ ...started, parentTaskId: `${parent.id}.${node}`, parentAttempt: 0 });
    }
    expect((await idsOf({ parent: parent.id })).sort()).toEqual(children.sort());
    expect(await idsOf({ parent: children[0] as string })).toEqual([]);
  });

  it("are searched in a bounded number of runs for each page, which reports the number", async () => {
    const { parts, summaries, slices, idsOf } = await setup();
    const { id } = await parts.start("other", { alias: "first" });
    // The runs are copied in SQL, because starting them takes too long.
    const columns = (parts.db.prepare("PRAGMA table_info(run)").all() as { name: string }[]).map(({ name }) => name);
    const made: Record<string, string> = { id: `'${id.slice(0, -5)}' || printf('%05d', n)`, alias: "'copy'" };
    parts.db.exec(`INSERT OR IGNORE INTO run (${columns.join(", ")})
      WITH RECURSIVE c (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c WHERE n < 12000)
      SELECT ${columns.map((column) => made[column] ?? column).join(", ")} FROM c, (SELECT * FROM run WHERE id = '${id}')`);
    const page = await summaries.page({ limit: 10, text: "first" });
    expect(page.looked).toBeGreaterThanOrEqual(5_000);
    expect(page.looked).toBeLessThan(5_300);
    expect(await idsOf({ text: "first" })).toEqual([id]);
    expect(slices.longest).toBeLessThanOrEqual(2_100);
    // Nothing is filtered, so that no more is read than is returned.
    const before = slices.total;
    expect((await summaries.page({ limit: 10 })).looked).toBe(10);
    expect(slices.total - before).toBeLessThan(100);
  });

  it("show the open tasks of a run", async () => {
    const { parts, summaries } = await setup();
    const { id } = await parts.start("w");
    expect(await summaries.openTasks(id)).toMatchObject([{ step: "a", state: "queued" }]);
    await parts.runs.tell(id, { kind: "cancel" });
    expect(await summaries.openTasks(id)).toEqual([]);
  });
});
