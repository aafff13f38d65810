import { expect, it } from "vitest";
import { openParts } from "../../../test/support/parts.ts";
import { countOpenRuns, OpenRuns } from "./local-open.ts";

it("counts the open runs of small and of large workflows in each state", async () => {
  const parts = await openParts("a file");
  for (const name of ["a", "b", "c"]) await parts.define(name, ["step"]);
  for (const name of ["a", "b", "c"]) await parts.start(name);
  const copies = (workflow: string, count: number, state: string, endedAt: number | null) =>
    parts.db.exec(`
      WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ${count})
      INSERT INTO run (id, workflow, definition_id, state, input, created_at, ended_at, left_count, failed_count, retries, parent_attempt)
      SELECT '${workflow}-${state}-' || i, '${workflow}', (SELECT id FROM definition LIMIT 1), '${state}', 'null', 0, ${endedAt}, 0, 0, 0, 0 FROM n`);
  copies("b", 1_200, "running", null);
  copies("b", 3, "paused", null);
  copies("b", 2, "blocked", null);
  copies("b", 40, "failed", 1);
  copies("a", 1, "paused", null);
  const counts: string[] = [];
  await countOpenRuns(parts.store, parts.commit, (workflow, state, count) => {
    for (let at = 0; at < count; at++) counts.push(`${workflow} ${state}`);
  });
  const total = (text: string) => counts.filter((each) => each === text).length;
  expect(total("a running")).toBe(1);
  expect(total("a paused")).toBe(1);
  expect(total("b running")).toBe(1_201);
  expect(total("b paused")).toBe(3);
  expect(total("b blocked")).toBe(2);
  expect(total("c running")).toBe(1);
  expect(counts).toHaveLength(1_209);
});

it("knows which workflows have open runs, from the start of a run to its end, and again in its next life", () => {
  const runs = new OpenRuns();
  const open = { workflow: "w", endedAt: null };
  const ended = { workflow: "w", endedAt: 5 };
  runs.changed(open, undefined);
  runs.changed(open, open);
  expect(runs.has("w")).toBe(true);
  runs.changed(ended, open);
  runs.changed(ended, undefined);
  expect(runs.has("w")).toBe(false);
  runs.changed(open, ended);
  expect([runs.has("w"), runs.has("other")]).toEqual([true, false]);
});
