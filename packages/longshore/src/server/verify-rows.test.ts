// Rows of schedules, signals and start limits that the test has damaged.

import { join } from "node:path";
import { expect, it } from "vitest";
import { temporaryFolder } from "../../test/support/parts.ts";
import { graph } from "../graph.ts";
import { schedule } from "../schedule.ts";
import { openDatabase } from "../store/sqlite/driver.ts";
import type { Finding } from "../verify/finding.ts";
import { serve } from "./server.ts";
import { openDataFolder } from "./verify-data.ts";

async function findings(data: string): Promise<Finding[]> {
  const { source, close } = await openDataFolder(data);
  const found: Finding[] = [];
  for await (const one of source.others()) found.push(one);
  close();
  return found;
}

async function played(): Promise<{ data: string; damage: (sql: string) => Promise<void> }> {
  const data = temporaryFolder();
  const server = await serve({ data, port: null, logger: { level: "silent" } });
  const wait = graph("wait", (g) => g.signal("go"));
  await server.define(schedule("each", { every: "1h", workflow: wait }));
  const ended = await server.start(wait, null);
  await ended.signal("go", 1);
  const open = await server.start(wait, null);
  await open.signal("later", 1);
  // One has a place, and two wait.
  const alone = graph("alone", (g) => g.signal("go"), { limit: { runs: 1 } });
  for (const at of [1, 2, 3]) await server.start(alone, at as never);
  await server.start(
    graph("saved", (g) => g.signal("go"), { debounce: { period: "1h" } }),
    null,
  );
  await server.close();
  const damage = async (sql: string) => {
    const db = await openDatabase(join(data, "longshore.db"));
    db.exec(sql);
    db.close();
  };
  return { data, damage };
}

it.each([
  ["a schedule without a next time", "UPDATE schedule SET next_at = NULL", "schedule-can-tick", "its next one is not known"],
  ["a schedule whose state is not JSON", "UPDATE schedule SET state = '{'", "schedule-can-tick", "its row cannot be read"],
  ["a signal that was neither kept nor taken", "UPDATE signal SET taken_at = 1 WHERE taken_at IS NULL", "signals-whole", "is neither kept"],
  ["a signal that is gone", "DELETE FROM signal WHERE taken_at IS NULL", "signals-whole", "counts 1 kept signals and 0 are stored"],
  [
    "a signal that the run does not count",
    "UPDATE signal SET number = 9 WHERE taken_at IS NULL",
    "signals-whole",
    "its signal 9 is stored",
  ],
  [
    "a place of a run that has ended",
    "UPDATE run SET ended_at = 1, state = 'succeeded' WHERE gate IS NOT NULL AND turn IS NULL",
    "limits-hold",
    "has a place and has ended",
  ],
  [
    "a place of a run that is gone",
    "DELETE FROM run WHERE gate IS NOT NULL AND turn IS NULL",
    "limits-hold",
    "has a place and is not stored: one run of alone",
  ],
  ["an open run without a place", `UPDATE gate SET state = '{"open":[],"last":2,"waiting":2,"runs":1}'`, "limits-hold", "has no place at"],
  ["a start limit that is gone", "DELETE FROM gate", "limits-hold", "has no place at"],
  ["debounced starts whose run has begun", "UPDATE run SET start_at = NULL", "limits-hold", "debounced starts have no run that waits"],
  ["debounced starts whose run is gone", "DELETE FROM run WHERE start_at > 0", "limits-hold", "debounced starts have no run that waits"],
  [
    "a wait that is not counted",
    "UPDATE gate SET state = replace(state, '\"waiting\":2', '\"waiting\":1')",
    "limits-hold",
    "it counts 1 runs that wait and there are 2",
  ],
])("verify reports %s", async (_title, sql, rule, message) => {
  const { data, damage } = await played();
  expect(await findings(data)).toEqual([]);
  await damage(sql);
  const [found] = await findings(data);
  expect(found).toMatchObject({ rule, message: expect.stringContaining(message) });
});
