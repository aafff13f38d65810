// A data file, perhaps from a foreign backup, has parts that no server writes. A trigger or view ran inside the server's own statements,
// and could hold the server without a limit. Rows with invalid values ended the start with a stack trace, ended the process when a worker
// took a task, or made every transaction fail.

import { join } from "node:path";
import { afterEach, expect, it } from "vitest";
import { openDatabase } from "../../src/store/sqlite/driver.ts";
import { longshore } from "../support/cli.ts";
import { dataFolder, type RunServer, startRunServer } from "../support/run-server.ts";

const endless = "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT count(*) FROM n";

/** A folder with the data of two runs, changed by another program. */
async function folderWith(sql: string): Promise<string> {
  const data = dataFolder();
  const server = await startRunServer(data);
  await server.startRuns(2);
  await server.stop();
  const db = await openDatabase(join(data, "longshore.db"));
  db.exec(sql);
  db.close();
  return data;
}

let server: RunServer | undefined;
afterEach(() => server?.crash());

it.each([
  ["trigger", `CREATE TRIGGER strange AFTER INSERT ON task BEGIN SELECT (${endless}); END`],
  ["view", `ALTER TABLE worker RENAME TO worker_before; CREATE VIEW strange AS ${endless}`],
])("a %s is refused by everything that opens the file", async (what, sql) => {
  const data = await folderWith(sql);
  const sentence = `The data file ${join(data, "longshore.db")} has the ${what} "strange", which Longshore did not make.`;
  const others = [
    ["verify", "--data", data],
    ["backup", "--data", data, `${data}-copy`],
  ];
  for (const args of [["start", "--port", "0", "--log-level", "warn", "--data", data], ...others]) {
    const { code, stderr } = await longshore(args);
    expect({ args, code, stderr }).toEqual({ args, code: 2, stderr: `longshore: ${sentence} Restore the folder from a backup.\n` });
  }
  const { code, stdout } = await longshore(["doctor", "--port", "0", "--data", data]);
  expect(code).toBe(1);
  expect(stdout).toContain(sentence);
});

it.each([
  ["tasks with labels that are not a list", "UPDATE task SET labels = 'null'"],
  ["tasks with a text as their time", "UPDATE task SET queued_at = 'soon'"],
  ["runs with a text as their time", "UPDATE run SET end_by = 'soon'"],
  ["a document that is not JSON", "UPDATE document SET body = 'none'"],
  ["a document with a number beyond all times", "UPDATE document SET updated_at = 9007199254740993"],
])("%s end the start with one sentence", async (_what, sql) => {
  const data = await folderWith(sql);
  const { code, stderr } = await longshore(["start", "--port", "0", "--log-level", "error", "--data", data]);
  expect(code).toBe(2);
  expect(stderr).toMatch(/^longshore: Rows in the data file cannot be read: .*\n$/);
});

it("a definition that cannot be read fails the requests of its runs, and the server continues", async () => {
  const data = await folderWith("UPDATE definition SET source = 'jobs: ['");
  server = await startRunServer(data);
  const claim = { worker_id: "w", labels: [], lease_duration_secs: 30 };
  const headers = { "content-type": "application/json" };
  await fetch(`${server.url}/api/jobs/claim`, { method: "POST", body: JSON.stringify(claim), headers });
  expect((await server.health()).status).toBe(200);
});
