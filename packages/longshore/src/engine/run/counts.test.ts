import { describe, expect, it } from "vitest";
import { openParts, type Parts, places } from "../../../test/support/parts.ts";

describe.each(places)("counts in %s", (place) => {
  async function setup() {
    const parts = await openParts(place);
    await parts.define("w", ["a"]);
    return { parts, seen: () => view(parts) };
  }

  it("follow runs from their start to their end", async () => {
    const { parts, seen } = await setup();
    await parts.counts.counted();
    await parts.start("w");
    await parts.start("w");
    expect(seen()).toEqual({ openRuns: 2, endedRuns: 0, endedTasks: 0 });
    await parts.complete(await parts.claim());
    await parts.fail(await parts.claim());
    expect(seen()).toEqual({ openRuns: 0, endedRuns: 2, endedTasks: 0 });
  });

  it("a run that is retried counts as open again, and once when it ends again", async () => {
    const { parts, seen } = await setup();
    await parts.counts.counted();
    const run = await parts.start("w");
    await parts.fail(await parts.claim());
    await parts.runs.tell(run.id, { kind: "retry" });
    expect(seen()).toMatchObject({ openRuns: 1, endedRuns: 0 });
    await parts.complete(await parts.claim());
    expect(seen()).toMatchObject({ openRuns: 0, endedRuns: 1 });
  });

  it("a run that ends in the commit that starts it is counted once", async () => {
    const { parts, seen } = await setup();
    await parts.define("empty", []);
    await parts.counts.counted();
    await parts.start("empty");
    expect(seen()).toMatchObject({ openRuns: 0, endedRuns: 1 });
  });

  it("tasks without a run count when they have ended, those of runs never", async () => {
    const { parts, seen } = await setup();
    await parts.counts.counted();
    await parts.board.post([{ id: "T1", step: "alone", lanes: [{ name: "work", labels: [] }], input: "null", policy: null }]);
    expect(seen().endedTasks).toBe(0);
    await parts.complete(await parts.claim());
    await parts.finish("w");
    expect(seen().endedTasks).toBe(1);
  });

  it("what ends while the file is being counted is counted once", async () => {
    const { parts, seen } = await setup();
    await parts.finish("w");
    const counted = parts.counts.counted();
    const others = [parts.start("w"), parts.start("w")];
    await counted;
    await Promise.all(others);
    await parts.complete(await parts.claim());
    expect(seen()).toMatchObject({ openRuns: 1, endedRuns: 2 });
  });

  it("many rows are counted in slices", async () => {
    const { parts, seen } = await setup();
    const [definition] = parts.db.prepare("SELECT id FROM definition").all();
    parts.db.exec(`
      WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 45000)
      INSERT INTO run (id, workflow, definition_id, state, input, created_at, ended_at, left_count, failed_count, retries, parent_attempt)
      SELECT 'R' || i, 'w', '${definition!.id}', 'succeeded', 'null', 0, i / 30000, 0, 0, 0, 0 FROM n`);
    await parts.counts.counted();
    expect(seen().endedRuns).toBe(45_000);
  });
});

it("counts begin where the last process stopped", async () => {
  const first = await openParts("a file");
  await first.define("w", ["a"]);
  await first.finish("w");
  await first.start("w");
  await first.close();
  const second = await openParts("a file", first);
  await second.counts.counted();
  expect(view(second)).toEqual({ openRuns: 1, endedRuns: 1, endedTasks: 0 });
});

function view({ counts }: Parts) {
  return { openRuns: counts.openRuns, endedRuns: counts.endedRuns, endedTasks: counts.endedTasks };
}
