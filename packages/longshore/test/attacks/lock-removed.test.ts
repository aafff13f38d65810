// An operator removes the lock file of a running server and starts a second server on the same data.

import { unlinkSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { openDatabase } from "../../src/store/sqlite/driver.ts";
import { longshore } from "../support/cli.ts";
import { dataFolder, startRunServer } from "../support/run-server.ts";

it("the second server is refused at every attempt, and the first one continues", async () => {
  const data = dataFolder();
  const first = await startRunServer(data);
  unlinkSync(join(data, "lock"));
  for (let tries = 0; tries < 2; tries++) {
    const { code, stderr } = await longshore(["start", "--port", "0", "--data", data]);
    expect(code).toBe(2);
    expect(stderr).toContain(`The lock file of ${data} was removed, and another program has the data file open`);
  }
  expect(await first.startRuns(5)).toEqual([201, 201, 201, 201, 201]);
  await first.stop();
  expect(await (await startRunServer(data)).countRuns()).toBe(5);
});

it("a reader that has the data file open, such as a backup, does not prevent the start of a server", async () => {
  const data = dataFolder();
  await (await startRunServer(data)).stop();
  const reader = await openDatabase(join(data, "longshore.db"), { readOnly: true });
  expect(reader.prepare("SELECT count(*) AS count FROM run").get()).toEqual({ count: 0 });
  const server = await startRunServer(data);
  expect(await server.startRuns(1)).toEqual([201]);
  reader.close();
});
