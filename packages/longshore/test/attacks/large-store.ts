// A server on a store with very much data, and a function that reads everything on it. Rows are copied with SQL, which takes only seconds for
// a hundred thousand runs.

import { request } from "node:http";
import { join } from "node:path";
import { expect, onTestFinished } from "vitest";
import { actions } from "../../src/core/actions.ts";
import { turnRows, wholeRow } from "../../src/core/slices/slices.ts";
import { openChannel } from "../../src/net/grpc/client.ts";
import type { GrpcMethod } from "../../src/net/grpc/service.ts";
import type { Route } from "../../src/net/http/http.ts";
import { sampleSource } from "../../src/protocols/workflow-graph/dialect/sample.ts";
import { dialectName } from "../../src/protocols/workflow-graph/dialect/source.ts";
import { openDatabase } from "../../src/store/sqlite/driver.ts";
import { realGroups, realMethods } from "../support/admin.ts";
import { openEngineWithStore } from "../support/engine.ts";
import { openEnginePort } from "../support/engine-port.ts";
import { temporaryFolder } from "../support/parts.ts";
import { copyRow } from "./copy-row.ts";
import { countingRows } from "./counting-rows.ts";

export interface StoreSize {
  readonly runs: number;
  readonly lanes: number;
  readonly workers: number;
}

/** Rows that SQLite returns between two checks. Single rows are read without a check. */
const rowsInTurnMax = 2 * turnRows + 500;
const workflow = "large";
/** Fills in the parameters of a path. */
const placeholders: Readonly<Record<string, string>> = { name: workflow, version: "1", type: workflow, step: "a", reference: "a" };

/** Reads everything that can be read. Checks that no turn of the event loop reads more rows than allowed. */
export async function walkAllReads(size: StoreSize): Promise<{ reads: number; rows: number }> {
  const directory = temporaryFolder();
  const { runId, taskId } = await fill(directory, size);
  const counted = countingRows();
  const { engine, url: base, close } = await openEnginePort({ directory, open: counted.open });
  onTestFinished(close);
  expect(engine.store.board.lanes.size).toBe(size.lanes);
  const known = { ...placeholders, run: runId, id: runId, workflow: runId, task: taskId };
  const routes = (await realGroups()).flatMap((group) => group.routes).filter(isRead);
  const urls = routes.map((route) => base + route.path.replace(/:(\w+)/g, (_, name: string) => known[name as "run"] ?? runId));
  const { slices } = engine;
  counted.longest = 0;
  const passed = async (what: string) => {
    await new Promise((resolve) => setImmediate(resolve));
    expect([what, slices.longest > turnRows + wholeRow, counted.longest > rowsInTurnMax]).toEqual([what, false, false]);
  };
  for (const url of [...urls, ...searches(base)]) {
    expect([url, await statusOf(url)]).not.toEqual([url, 500]);
    await passed(url);
  }
  const methods = (await realMethods()).filter(isReadMethod);
  for (const method of methods) {
    await callOnce(method, base);
    await passed(method.path);
  }
  await Promise.all(searches(base).map(statusOf));
  await passed("all searches at once");
  return { reads: urls.length + methods.length, rows: slices.total };
}

/** The lists at their maximum size, and requests that read all rows. */
function searches(url: string): string[] {
  const own = `${url}/api/longshore/v1`;
  const lists = ["runs", "tasks", "workers", "queues"].map((list) => `${own}/${list}?limit=1000`);
  const texts = ["no-such-text", "text of run"].map((text) => `${url}/api/workflow/search?size=100&freeText=${encodeURIComponent(text)}`);
  const sorted = `${url}/api/workflow/search?size=10&sort=endTime:DESC`;
  const states = ["running", "failed"].map((state) => `${own}/runs?limit=1000&state=${state}`);
  const filters = ["", "&state=failed,succeeded", "&text=no-such-text", "&where=input.text:none&waiting=true", "&error=none", "&minMs=1"];
  const summaries = filters.map((filter) => `${own}/runs?view=summary&limit=1000${filter}`);
  return [
    ...lists,
    ...texts,
    sorted,
    ...states,
    ...summaries,
    `${url}/api/v1/runs?limit=1000`,
    `${url}/api/tasks/search?freeText=no-such-text`,
  ];
}

function isRead({ method, action, body }: Route): boolean {
  return method === "GET" && body !== "stream" && (actions[action].reads ?? false);
}

function isReadMethod({ kind, action }: GrpcMethod): boolean {
  return kind === "unary" && (actions[action].reads ?? false);
}

/** Streams are closed as soon as they have begun. */
function statusOf(url: string): Promise<number> {
  return new Promise((resolve, reject) => {
    const sent = request(url, { agent: false }, (response) => {
      const { statusCode = 0, headers } = response;
      if (headers["content-type"]?.startsWith("text/event-stream")) {
        sent.destroy();
        return resolve(statusCode);
      }
      response.resume();
      response.once("end", () => resolve(statusCode));
    });
    sent.once("error", reject);
    sent.end();
  });
}

/** With an empty request. The response does not matter. */
async function callOnce(method: GrpcMethod, url: string): Promise<void> {
  const channel = openChannel(url.replace("http://", ""));
  try {
    await channel.unary(method as never, {} as never).catch(() => undefined);
  } finally {
    await channel.close();
  }
}

async function fill(directory: string, { runs, lanes, workers }: StoreSize): Promise<{ runId: string; taskId: string }> {
  const engine = await openEngineWithStore({ directory });
  await engine.runs.define({ name: workflow, dialect: dialectName, source: sampleSource });
  const { run } = await engine.runs.start({ workflow, input: '{"text":"text of run"}' });
  const runId = run.id;
  await engine.runs.cancel(runId);
  const taskId = "loose-000000";
  await engine.board.post([{ id: taskId, step: "a", lanes: [{ name: "work", labels: ["l0"] }], input: "null", policy: null }]);
  await engine.close();
  const db = await openDatabase(join(directory, "longshore.db"));
  // Open runs and ended ones in turn, so that neither list is short.
  const id = (prefix: string) => `substr(${prefix}, 1, length(${prefix}) - 6) || printf('%06d', n)`;
  copyRow(db, "run", runs - 1, {
    id: id("id"),
    ended_at: "CASE n % 2 WHEN 0 THEN ended_at + n END",
    state: "CASE n % 2 WHEN 0 THEN 'failed' ELSE 'running' END",
  });
  copyRow(db, "task", lanes - 1, { id: id("id"), labels: `json_array('l' || n)`, sequence: "sequence + n" }, `WHERE id = '${taskId}'`);
  const now = Date.now();
  db.exec(`INSERT INTO worker (id, protocol, labels, registered_at, seen_at)
    WITH RECURSIVE c (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c WHERE n < ${workers})
    SELECT 'w' || n, 'workflow-graph', json_array('l' || n), ${now}, ${now} FROM c`);
  db.close();
  return { runId, taskId };
}
