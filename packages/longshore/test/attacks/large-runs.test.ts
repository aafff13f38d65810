// The attacker holds an operator token, starts a run with very many open tasks, and then ends, retries or pauses it. Each of these commands
// changed every task in one transaction: with 4,000 tasks, every other request waited for a third of a second. The run itself must change at
// once, but its tasks in slices. The test counts rows that are read and written in one turn of the event loop, not time.

import { expect, it, onTestFinished, vi } from "vitest";
import { pieceBytes } from "../../src/core/paced-write.ts";
import { turnRows } from "../../src/core/slices/slices.ts";
import { openEnginePort } from "../support/engine-port.ts";
import { call } from "../support/http.ts";
import { temporaryFolder } from "../support/parts.ts";
import { countingRows, lookedAt } from "./counting-rows.ts";

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
/** Index entries that readers pass in two turns, because one turn may end and another begin between two checks. */
const readMax = 2 * turnRows + 500;

async function started() {
  const counted = countingRows();
  const { engine, url, send, close } = await openEnginePort({ directory: temporaryFolder(), open: counted.open });
  onTestFinished(close);
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
  /** The most rows of one turn until all consequences of the request are done. */
  const rowsOf = async (act: () => Promise<void>) => {
    counted.longest = 0;
    await act();
    await settled();
    return counted.longest;
  };
  const fullest = (method: string, path: string) =>
    rowsOf(async () => {
      const { status } = await send(method, path.replace(":id", id), method === "POST" ? {} : undefined);
      expect([path, status < 300]).toEqual([path, true]);
    });
  return { url, id, fullest, rowsOf, states, send, looked: lookedAt(engine.store.board.tasks) };
}

const open = { queued: many + 1, done: 1 };
const ended = { cancelled: many + 1, done: 1 };

it("no command for a large run reads or writes more rows in one turn than a slice has", async () => {
  const { fullest, states } = await started();
  expect(await states()).toEqual(open);
  for (const [method, path, after] of [
    ["PUT", "/workflow/:id/pause", open],
    ["PUT", "/workflow/:id/resume", open],
    ["POST", "/workflow/:id/resetcallbacks", open],
    ["DELETE", "/workflow/:id", ended],
    ["POST", "/workflow/:id/retry", open],
    ["POST", "/longshore/v1/runs/:id/cancel", ended],
    ["POST", "/workflow/:id/restart", open],
  ] as const) {
    const rows = await fullest(method, path);
    expect([path, rows > rowsMax ? rows : "few rows"]).toEqual([path, "few rows"]);
    expect([path, await states()]).toEqual([path, after]);
  }
}, 120_000);

it("no dry run of an order looks at more records of a large run in one turn than a slice has", async () => {
  const { id, send, states, looked } = await started();
  expect((await send("DELETE", `/workflow/${id}`)).status).toBeLessThan(300);
  await vi.waitFor(async () => expect(await states()).toEqual(ended), { timeout: 30_000 });
  for (const [order, body, again] of [
    ["retry", { dry: true }, many + 1],
    ["restart", { dry: true }, many + 2],
    ["rerun", { dry: true, from: "r7" }, many + 1],
  ] as const) {
    looked.longest = 0;
    const { text } = await send("POST", `/longshore/v1/runs/${id}/${order}`, body);
    const foreseen = JSON.parse(text) as { again: string[] };
    expect([order, foreseen.again.length, new Set(foreseen.again).size]).toEqual([order, again, again]);
    expect([order, looked.longest > rowsMax ? looked.longest : "few records"]).toEqual([order, "few records"]);
  }
  expect(await states()).toEqual(ended);
}, 120_000);

it("the cost of a step that ends during a pause does not grow with the number of earlier ones", async () => {
  const { url, id, rowsOf, states, send } = await started();
  expect((await send("PUT", `/workflow/${id}/pause`)).status).toBe(200);
  const parse = vi.spyOn(JSON, "parse");
  onTestFinished(() => parse.mockRestore());
  for (let done = 0; done < many; ) {
    const polled = (await (await fetch(`${url}/api/tasks/poll/batch/t?count=100`)).json()) as { taskId: string }[];
    const ends = polled.map(({ taskId }) => send("POST", "/tasks", { workflowInstanceId: id, taskId, status: "COMPLETED" }));
    for (const { status } of await Promise.all(ends)) expect(status).toBe(200);
    done += polled.length;
  }
  expect(parse.mock.calls.filter(([text]) => String(text).startsWith('[{"kind"'))).toEqual([]);
  await rowsOf(async () => {
    expect((await send("PUT", `/workflow/${id}/resume`)).status).toBe(200);
  });
  expect(await states()).toEqual({ done: many + 2 });
}, 120_000);

/** The longest text that is encoded in one piece for a client. */
function longestEncoded(): () => number {
  let longest = 0;
  const { from } = Buffer;
  const { byteLength } = Buffer;
  const note = (text: unknown) => {
    if (typeof text === "string") longest = Math.max(longest, text.length);
  };
  const spies = [
    vi.spyOn(Buffer, "from").mockImplementation(((...given: unknown[]) => {
      note(given[0]);
      return (from as (...all: unknown[]) => Buffer).apply(Buffer, given);
    }) as typeof Buffer.from),
    vi.spyOn(Buffer, "byteLength").mockImplementation((...given) => {
      note(given[0]);
      return byteLength.apply(Buffer, given);
    }),
  ];
  onTestFinished(() => {
    for (const spy of spies) spy.mockRestore();
  });
  return () => longest;
}

it("no read of a large run builds its response in one piece, and the response has all tasks", async () => {
  const { id, url, rowsOf } = await started();
  const longest = longestEncoded();
  for (const path of [`/workflow/${id}`, `/workflows/${id}/status`]) {
    const rows = await rowsOf(async () => {
      const { status, text } = await call(`${url}/api${path}`);
      expect(status).toBe(200);
      const { tasks, jobs } = JSON.parse(text) as { tasks?: object[]; jobs?: object[] };
      expect([path, (tasks ?? jobs)?.length]).toEqual([path, many + 2]);
      expect(text.length).toBeGreaterThan(10 * pieceBytes);
    });
    expect([path, rows > readMax ? rows : "few rows"]).toEqual([path, "few rows"]);
  }
  expect(longest()).toBeGreaterThan(0);
  expect(longest()).toBeLessThan(2 * pieceBytes);
}, 120_000);
