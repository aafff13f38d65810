// The attacker holds an operator token, starts a run with very many open tasks, and then ends it, tries it again, pauses it. Each of these
// touched every task in one transaction: with 4,000 tasks every other request waited for a third of a second. The run itself must change at
// once, and its tasks in slices. What is counted is rows that are read and written in one turn of the event loop, not time.

import { expect, it, onTestFinished, vi } from "vitest";
import { createMetrics } from "../../src/metrics.ts";
import { openEngine } from "../../src/server/engine.ts";
import { createLogger } from "../../src/server/logger.ts";
import { openServerPort } from "../../src/server/server-port.ts";
import { call } from "../support/http.ts";
import { temporaryFolder } from "../support/parts.ts";
import { protocolsOn } from "../support/protocols.ts";
import { countingRows } from "./counting-rows.ts";

const many = 2_500;
const numbers = Array.from({ length: many }, (_, at) => at);
const simple = (at: number) => ({ name: "t", taskReferenceName: `r${at}`, type: "SIMPLE", inputParameters: {} });
const fork = {
  ...{ name: "fork", schemaVersion: 2 },
  tasks: [
    { name: "f", taskReferenceName: "f", type: "FORK_JOIN", forkTasks: numbers.map((at) => [simple(at)]) },
    { name: "j", taskReferenceName: "j", type: "JOIN", joinOn: numbers.map((at) => `r${at}`) },
  ],
};
/** A slice reads and writes a few rows for each of its tasks; two slices may fall into one turn. */
const rowsMax = 1_500;

async function started() {
  const counted = countingRows();
  const engine = await openEngine({ directory: temporaryFolder(), open: counted.open });
  const logger = createLogger({ level: "silent", write: () => {}, clock: engine.clock });
  const port = await openServerPort({
    engine,
    protocols: await protocolsOn(engine),
    options: { port: 0 },
    tokens: [],
    logger,
    metrics: createMetrics(),
  });
  onTestFinished(async () => {
    await port.close(0);
    await engine.close();
  });
  const send = (method: string, path: string, body?: unknown) =>
    call(`${port.url}/api${path}`, {
      method,
      headers: { "content-type": "application/json" },
      ...(body ? { body: JSON.stringify(body) } : {}),
    });
  expect((await send("POST", "/metadata/workflow", fork)).status).toBe(200);
  const { text: id } = await send("POST", "/workflow/fork", {});
  const settled = () =>
    vi.waitFor(
      async () => {
        await engine.store.commit.quiet();
        expect(await engine.store.runs.messages()).toEqual([]);
      },
      { timeout: 30_000, interval: 20 },
    );
  const states = async () => {
    const counts: Record<string, number> = {};
    for (const { state } of await engine.reader.heads(id)) counts[state] = (counts[state] ?? 0) + 1;
    return counts;
  };
  await settled();
  /** Rows of the fullest turn until all that follows from the request is done. */
  const fullest = async (method: string, path: string) => {
    counted.longest = 0;
    const { status } = await send(method, path.replace(":id", id), method === "POST" ? {} : undefined);
    expect([path, status < 300]).toEqual([path, true]);
    await settled();
    return counted.longest;
  };
  return { engine, id, fullest, states };
}

const open = { queued: many + 1, done: 1 };
const ended = { cancelled: many + 1, done: 1 };

it("no order about a large run reads or writes more rows in one turn than a slice has", async () => {
  const { fullest, states } = await started();
  expect(await states()).toEqual(open);
  for (const [method, path, after] of [
    ["PUT", "/workflow/:id/pause", open],
    ["PUT", "/workflow/:id/resume", open],
    ["POST", "/workflow/:id/resetcallbacks", open],
    ["DELETE", "/workflow/:id", ended],
    ["POST", "/workflow/:id/retry", open],
    ["POST", "/longshore/v1/runs/:id/cancel", ended],
  ] as const) {
    const rows = await fullest(method, path);
    expect([path, rows > rowsMax ? rows : "few rows"]).toEqual([path, "few rows"]);
    expect([path, await states()]).toEqual([path, after]);
  }
}, 120_000);
