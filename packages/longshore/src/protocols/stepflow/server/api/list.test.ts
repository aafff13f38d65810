import { describe, expect, it, onTestFinished } from "vitest";
import { openEngine } from "../../../../server/engine.ts";
import { TestClock } from "../../../../testing/clock.ts";
import { encodeSource, plainJob } from "../../../workflow-graph/dialect/source.ts";
import type { FlowSettings } from "../../dialect/settings.ts";
import { ExecutionStatus } from "../../wire/messages.ts";
import { itemRunId, wireRunId } from "../run-id.ts";
import { listRuns } from "./list.ts";

async function setup() {
  const clock = new TestClock();
  const engine = await openEngine({ directory: null, clock });
  onTestFinished(() => engine.close());
  const definition = await engine.runs.define({ name: "w", dialect: "workflow-graph", source: graph });
  const begin = async (settings: Partial<FlowSettings> = {}, parts: { id?: string; workflow?: string } = {}) => {
    await clock.advance(1);
    const { run } = await engine.runs.begin({
      workflow: "w",
      definitionId: definition.id,
      input: "null",
      settings: JSON.stringify(settings),
      alias: settings.rootRunId ?? null,
      ...parts,
    });
    return run.id;
  };
  const list = async (wish: Partial<Parameters<typeof listRuns>[1]> = {}) =>
    (await listRuns(engine.reader, { rootsOnly: false, ...wish })).map(({ id }) => id);
  return { engine, begin, list };
}

const graph = encodeSource({ name: "w", trigger: "push", jobs: [plainJob("a", "true")] });

describe("lists of runs", () => {
  it("are newest first, a page at a time", async () => {
    const { begin, list } = await setup();
    const ids = [];
    for (let made = 0; made < 7; made++) ids.unshift(await begin());
    expect(await list()).toEqual(ids);
    expect(await list({ limit: 2 })).toEqual(ids.slice(0, 2));
    expect(await list({ limit: 3, offset: 5 })).toEqual(ids.slice(5));
    expect(await list({ limit: 0 })).toEqual([]);
  });

  it("never show the runs of items, for any number of them", async () => {
    const { engine, begin, list } = await setup();
    const before = await begin();
    const whole = await begin({ items: 300 });
    for (let item = 0; item < 300; item++) await begin({ item, parentRunId: whole }, { id: itemRunId(whole, item) });
    const after = await begin();
    let pages = 0;
    const { runHeads } = engine.reader;
    engine.reader.runHeads = (query) => {
      pages++;
      return runHeads.call(engine.reader, query);
    };
    expect(await list()).toEqual([after, whole, before]);
    expect(pages).toBe(2);
  });

  it("can be of one flow, one status, roots only, or a family", async () => {
    const { engine, begin, list } = await setup();
    const root = await begin();
    const child = await begin({ rootRunId: root, parentRunId: root, depth: 1 });
    const grandchild = await begin({ rootRunId: root, parentRunId: child, depth: 2 });
    const other = await begin({}, { workflow: "another" });
    await engine.runs.cancel(root);
    expect(await list({ flowName: "another" })).toEqual([other]);
    expect(await list({ status: ExecutionStatus.CANCELLED })).toEqual([root]);
    expect(await list({ status: ExecutionStatus.RUNNING })).toEqual([other, grandchild, child]);
    expect(await list({ status: ExecutionStatus.FAILED })).toEqual([]);
    expect(await list({ status: ExecutionStatus.RECOVERY_FAILED })).toEqual([]);
    expect(await list({ rootsOnly: true })).toEqual([other, root]);
    expect(await list({ rootRunId: wireRunId(root) })).toEqual([grandchild, child, root]);
    expect(await list({ rootRunId: wireRunId(root), maxDepth: 1 })).toEqual([child, root]);
    expect(await list({ parentRunId: wireRunId(child) })).toEqual([grandchild]);
    expect(await list({ parentRunId: root })).toEqual([child]);
    expect(await list({ rootRunId: "nobody" })).toEqual([]);
  });

  it("refuse pages that are too large or too far back", async () => {
    const { list } = await setup();
    await expect(list({ limit: 1_001 })).rejects.toThrow("limit is 1001, expected at most 1000");
    await expect(list({ offset: 1_000_000 })).rejects.toThrow("offset is 1000000");
  });
});
