// The attacker holds a worker token and fills the logs of tasks, or fails tasks very often. With a read token, the attacker follows one log
// many times, or requests the last lines and histories of all tasks. The amount of stored text that is parsed in one turn of the event loop
// must not grow with any of these.

import { expect, it, onTestFinished, vi } from "vitest";
import { EventReader } from "../support/event-reader.ts";
import { type GraphServer, job, startGraphServer } from "../support/workflow-graph.ts";

const megabyte = 1_048_576;

/** The most characters of stored logs that were parsed in one turn of the event loop. */
function charsPerTurn() {
  const parse = JSON.parse;
  let inTurn = 0;
  const seen = { most: 0 };
  const spy = vi.spyOn(JSON, "parse").mockImplementation((text: string, reviver) => {
    if (text.startsWith("[[")) {
      inTurn += text.length;
      seen.most = Math.max(seen.most, inTurn);
    }
    return parse(text, reviver);
  });
  const next = () => {
    inTurn = 0;
    immediate = setImmediate(next);
  };
  let immediate = setImmediate(next);
  onTestFinished(() => {
    clearImmediate(immediate);
    spy.mockRestore();
  });
  return seen;
}

async function running(server: GraphServer, jobs: number) {
  const id = await server.start(...Array.from({ length: jobs }, (_, at) => job(`j${at}`)));
  const { items } = JSON.parse((await server.get("/api/longshore/v1/runs")).text) as { items: { id: string }[] };
  const taken = await Promise.all(Array.from({ length: jobs }, () => server.take()));
  const push = (at: number, data: string, sequence = 0) =>
    server.push(taken[at]?.lease.lease_id as string, { workflow_id: id, job_id: taken[at]?.job.job_id as string, sequence, data });
  return { runId: items[0]?.id as string, push };
}

it("a line of a megabyte is parsed for each of many readers in a separate turn", async () => {
  const server = await startGraphServer();
  const { runId, push } = await running(server, 1);
  await push(0, "begin\n");
  const readers = await Promise.all(
    Array.from({ length: 20 }, () => EventReader.open(`${server.url}/api/longshore/v1/runs/${runId}/logs/stream`)),
  );
  for (const reader of readers) expect((await reader.next())?.data).toContain("begin");
  const chars = charsPerTurn();
  const arrived = Promise.all(readers.map(nextLine));
  await push(0, `${"x".repeat(megabyte)}\n`, 1);
  expect((await arrived).every((frames) => frames.length === 5)).toBe(true);
  expect(chars.most).toBeLessThan(3 * megabyte);
});

async function nextLine(reader: EventReader): Promise<string[]> {
  const frames: string[] = [];
  for (let frame = await reader.next(); frame !== undefined; frame = await reader.next()) {
    frames.push(frame.data);
    if (frame.data.includes("\\n")) break;
  }
  return frames;
}

it("the last lines of many steps are found without parsing their whole logs", async () => {
  const server = await startGraphServer();
  const { runId, push } = await running(server, 8);
  const chars = charsPerTurn();
  for (let at = 0; at < 8; at++) await push(at, `${"\n".repeat(800_000)}x`);
  const { text } = await server.get(`/api/longshore/v1/runs/${runId}/steps?lines=true`);
  expect((JSON.parse(text) as { items: object[] }).items).toHaveLength(8);
  expect(chars.most).toBeLessThan(megabyte);
});

it("a push to a log of very many chunks reads only a part of them", async () => {
  const before = await startGraphServer();
  const id = await before.start(job("talk"));
  const { lease } = await before.take();
  const chunks = (from: number, count: number) =>
    Array.from({ length: count }, (_, at) => ({ workflow_id: id, job_id: "talk", sequence: from + at, data: "x" }));
  for (let from = 0; from < 18_000; from += 9_000) expect(await before.push(lease.lease_id, ...chunks(from, 9_000))).toBe(200);
  await before.close();
  const server = await startGraphServer({}, before);
  const chars = charsPerTurn();
  expect(await server.push(lease.lease_id, ...chunks(18_000, 1))).toBe(200);
  // Each chunk has about 15 characters, and 4,000 chunks are enough.
  expect(chars.most).toBeLessThan(100_000);
  expect(await server.push(lease.lease_id, ...chunks(17_990, 20))).toBe(200);
  expect(await server.logs(id, "talk")).toHaveLength(18_010);
});

it("histories of tasks that failed very often are sent in pages with few attempts", async () => {
  const server = await startGraphServer();
  const jobs = 4;
  const attempts = 200;
  await server.start(...Array.from({ length: jobs }, (_, at) => job(`j${at}`, { max_retries: 1_000 })));
  const { items } = JSON.parse((await server.get("/api/longshore/v1/runs")).text) as { items: { id: string }[] };
  for (let at = 0; at < jobs * attempts; at++) await server.fail((await server.take()).lease.lease_id, true);
  const sizes: number[] = [];
  let tasks = 0;
  let after = "";
  for (let page = 0; page < jobs; page++) {
    const { text } = await server.get(`/api/longshore/v1/history/runs/${items[0]?.id}${after}`);
    const found = JSON.parse(text) as { tasks: { attempts: object[] }[]; next: string | null };
    tasks += found.tasks.length;
    sizes.push(found.tasks.reduce((sum, task) => sum + task.attempts.length, 0));
    if (found.next === null) break;
    after = `?after=${found.next}`;
  }
  expect(tasks).toBe(jobs);
  expect(Math.max(...sizes)).toBeLessThan(500 + attempts + 10);
  expect(sizes.reduce((sum, size) => sum + size, 0)).toBe(jobs * (attempts + 1));
});

it("a search for tasks without a run reads a limited number of tasks at a time", async () => {
  const server = await startGraphServer();
  await server.start(...Array.from({ length: 500 }, (_, at) => job(`j${at}`)));
  const pages = async () => {
    const found: { items: object[]; next: string | null }[] = [];
    for (let after = ""; ; after = `?after=${found.at(-1)?.next}`) {
      found.push(JSON.parse((await server.get(`/api/longshore/v1/history/tasks${after}`)).text));
      if (found.at(-1)?.next === null) return found.map(({ items }) => items.length);
    }
  };
  // The first steps of a large run begin in several transactions.
  await expect.poll(pages).toEqual([0, 0, 0]);
});
