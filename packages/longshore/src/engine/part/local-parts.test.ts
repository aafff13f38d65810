// What only SQLite does with parts: uids that share a hash, and rows that are removed with their run.

import { describe, expect, it, onTestFinished } from "vitest";
import { openEngineWithStore } from "../../../test/support/engine.ts";
import { TestClock } from "../../testing/clock.ts";
import { hashOf } from "./uid-table.ts";

async function setup() {
  const clock = new TestClock();
  const engine = await openEngineWithStore({ directory: null, clock });
  onTestFinished(() => engine.close());
  const source = { name: "w", steps: [{ id: "a", task: "a", input: null }], output: null };
  await engine.runs.define({ name: "w", dialect: "code", source: JSON.stringify(source) });
  const claim = async () => {
    const [task] = await engine.board.claim({ reach: { names: ["a"], labels: [] }, holder: "ann", termMs: 60_000 });
    if (task === undefined) throw new Error("There is nothing to claim.");
    return { taskId: task.id, grant: task.grant };
  };
  const rows = (table: string) => Number(engine.store.db.prepare(`SELECT count(*) AS rows FROM ${table}`).get()?.rows);
  return { engine, claim, rows, start: async () => (await engine.runs.start({ workflow: "w", input: "null" })).run };
}

/** Two uids that differ only in their own letters. */
function alike(): [string, string] {
  const seen = new Map<number, string>();
  for (let at = 0; ; at++) {
    const uid = `uid ${at}`;
    const other = seen.get(hashOf(uid));
    if (other !== undefined) return [other, uid];
    seen.set(hashOf(uid), uid);
  }
}

describe("parts in SQLite", () => {
  it("whose uids have the same hash are different parts", async () => {
    const { engine, claim, start } = await setup();
    await start();
    const hold = await claim();
    const [one, other] = alike();
    for (const uid of [one, other, one, other]) await engine.parts.put(hold, [{ uid, value: "1" }]);
    const { parts } = await engine.parts.read(hold.taskId, 0, 10);
    expect(parts.map(({ uid }) => uid)).toEqual([one, other]);
  });

  it("that the same hand-out puts again are not written again", async () => {
    const { engine, claim, start } = await setup();
    await start();
    const hold = await claim();
    await engine.parts.put(hold, [{ uid: "x", value: "1" }]);
    const before = engine.store.commit.commits;
    expect(await engine.parts.put(hold, [{ uid: "x", value: "2" }])).toBe("ok");
    expect(engine.store.commit.commits).toBe(before);
    await engine.parts.put(
      hold,
      ["x", "y"].map((uid) => ({ uid, value: "3" })),
    );
    const { parts } = await engine.parts.read(hold.taskId, 0, 10);
    expect(parts.map(({ uid, value }) => [uid, value])).toEqual([
      ["x", "1"],
      ["y", "3"],
    ]);
  });

  it("are written again by a later hand-out", async () => {
    const { engine, claim, start } = await setup();
    await start();
    const first = await claim();
    await engine.parts.put(first, [{ uid: "x", value: "1" }]);
    await engine.board.defer(first, 0);
    const second = await claim();
    await engine.parts.put(second, [{ uid: "x", value: "2" }]);
    const { parts } = await engine.parts.read(second.taskId, 0, 10);
    expect(parts.map(({ uid, sequence, value, grant }) => ({ uid, sequence, value, grant }))).toEqual([
      { uid: "x", sequence: 1, value: "2", grant: second.grant },
    ]);
  });

  it("are removed with their run", async () => {
    const { engine, claim, rows, start } = await setup();
    const run = await start();
    const hold = await claim();
    await engine.parts.put(hold, [{ uid: "x", value: "1" }]);
    await engine.parts.finish(hold, hold.taskId, ["x"]);
    expect([rows("part"), rows("part_uid"), rows("part_read")]).toEqual([1, 1, 1]);
    await engine.board.complete(hold, "1");
    await engine.removeRun(run.id);
    expect([rows("part"), rows("part_uid"), rows("part_read")]).toEqual([0, 0, 0]);
  });
});
