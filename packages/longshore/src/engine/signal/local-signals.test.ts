import { expect, it } from "vitest";
import { openParts } from "../../../test/support/parts.ts";
import { rememberedSignalsMax } from "./signal.ts";

it("a run that has taken very many signals remembers the keys of the newest, and has a bounded number of rows", async () => {
  const parts = await openParts("memory");
  await parts.define("w", ["a"]);
  const { id } = await parts.start("w");
  const { signals } = parts.runs;
  await signals.send(id, { name: "kept", value: "1", key: "kept" });
  await signals.send(id, { name: "go", value: "1", key: "old" });
  await signals.send(id, { name: "go", value: "1", key: "newer" });
  // As if a step had taken two of them, and thousands more after them.
  parts.db.exec(`UPDATE signal SET taken_at = 1, value = NULL WHERE name = 'go'`);
  const counts = (sent: number) =>
    parts.commit.run((tx) => {
      const run = parts.runs.runs.get(tx, id);
      if (run !== null) parts.runs.runs.put(tx, id, { ...run, signals: JSON.stringify([sent, 1, 100]) });
    });
  for (const number of [1, 2]) {
    await counts(rememberedSignalsMax + number - 1);
    expect(await signals.send(id, { name: "next", value: "1" })).toMatchObject({ number: rememberedSignalsMax + number });
  }
  const kept = async () => (await signals.list(id, { limit: 100 })).items.map(({ key }) => key);
  expect(await kept()).toEqual(["kept", "newer", null, null]);
  expect(await signals.send(id, { name: "go", value: "2", key: "newer" })).toMatchObject({ number: 3 });
  expect(await signals.send(id, { name: "go", value: "2", key: "kept" })).toMatchObject({ number: 1, name: "kept" });
  expect(await signals.send(id, { name: "go", value: "2", key: "old" })).toMatchObject({ number: rememberedSignalsMax + 3, takenAt: null });
});

it("signals and waits are found by index alone, for any number of signals and steps", async () => {
  const parts = await openParts("memory");
  const plan = (sql: string) => parts.db.prepare(`EXPLAIN QUERY PLAN ${sql}`).all()[0]?.detail;
  const ofRun = "WHERE run_id = 'r' AND";
  expect(plan(`SELECT number FROM signal ${ofRun} name = 'n' AND taken_at IS NULL AND number > 0 ORDER BY number LIMIT 20`)).toMatch(
    /^SEARCH signal USING (?:COVERING )?INDEX signal_kept \(run_id=\? AND name=\? AND number>\?/,
  );
  expect(plan(`SELECT number FROM signal ${ofRun} key = 'k' AND key IS NOT NULL LIMIT 1`)).toMatch(
    /^SEARCH signal USING (?:COVERING )?INDEX signal_key \(run_id=\? AND key=\?/,
  );
  expect(
    plan(`SELECT id FROM task ${ofRun} signal = 'n' AND signal IS NOT NULL AND ended_at IS NULL ORDER BY sequence LIMIT 20 OFFSET 0`),
  ).toMatch(/^SEARCH task USING (?:COVERING )?INDEX task_signal \(run_id=\? AND signal=\?/);
});
