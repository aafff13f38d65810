// The attacker holds a worker token and stores large texts where the server limits only their number. Then many of them are requested at once
// with a read token. All of them were read and put into one response, without a pause.

import { describe, expect, it, onTestFinished, vi } from "vitest";
import { ListTexts } from "../../src/core/list-text.ts";
import { turnRows } from "../../src/core/slices/slices.ts";
import { sentTasks } from "../../src/engine/board/queue-state.ts";
import { LocalReader } from "../../src/engine/run/local-reader.ts";
import { TestClock } from "../../src/testing/clock.ts";
import { all } from "../support/all.ts";
import { startConductor } from "../support/conductor-rest.ts";
import { openEngineWithStore } from "../support/engine.ts";
import { job, startGraphServer } from "../support/workflow-graph.ts";

const megabyte = 1_048_576;

describe("a log of large chunks", () => {
  const chunks = 6;

  async function logged() {
    const server = await startGraphServer();
    const id = await server.start(job("talk"));
    const { lease } = await server.take();
    for (let at = 0; at < chunks; at++)
      await server.push(lease.lease_id, { workflow_id: id, job_id: "talk", sequence: at, data: "x".repeat(megabyte) });
    return { server, id };
  }

  it("is read in pages of about a megabyte, and arrives complete", async () => {
    const { server } = await logged();
    const { items: runs } = JSON.parse((await server.get("/api/longshore/v1/runs")).text) as { items: { id: string }[] };
    const sizes: number[] = [];
    let after = "0";
    for (let page = 0; page <= chunks; page++) {
      const { text } = await server.get(`/api/longshore/v1/runs/${runs[0]?.id}/logs?limit=1000&after=${after}`);
      const { items, next } = JSON.parse(text) as { items: object[]; next: string | null };
      sizes.push(items.length);
      if (next === null) break;
      after = next;
    }
    expect(sizes).toEqual([4, 4, 4, 4, 4, 4, 0]);
  });

  it("is sent completely when a protocol has no pages", async () => {
    const { server, id } = await logged();
    const texts = (await server.logs(id, "talk")).map(({ data }) => data);
    expect(texts.join("")).toHaveLength(chunks * megabyte);
  });
});

describe("tasks with large inputs", () => {
  it("are listed in shorter pages, which together have all tasks", async () => {
    const server = await startGraphServer();
    const count = 12;
    for (let at = 0; at < count; at++) await server.start(job("large", { command: "x".repeat(1_000_000) }));
    const sizes: number[] = [];
    let before = "";
    for (let page = 0; page < count; page++) {
      const { text } = await server.get(`/api/longshore/v1/tasks?limit=1000${before}`);
      const { items, next } = JSON.parse(text) as { items: object[]; next: string | null };
      sizes.push(items.length);
      if (next === null) break;
      before = `&before=${next}`;
    }
    expect(sizes).toEqual([9, 3]);
  });
});

describe("Conductor's workflows with large inputs", () => {
  /** Together they exceed the limit of a response. Without one of them, they do not. */
  const count = 23;
  const input = { text: "x".repeat(3_000_000) };

  it("are found in shorter pages with the correct total, and are refused when a response has no pages", async () => {
    const c = await startConductor();
    await c.workflow({ name: "w", tasks: [{ name: "t", taskReferenceName: "t", type: "SIMPLE" }] });
    const ids: string[] = [];
    for (let at = 0; at < count; at++) ids.push(await c.start("w", { input, correlationId: "same" }));
    const page = async (start: number) => {
      const path = `/workflow/search-v2?start=${start}&size=100&sort=startTime:ASC`;
      const { totalHits, results } = await c.read<{ totalHits: number; results: { workflowId: string }[] }>(path);
      return { totalHits, found: results.map(({ workflowId }) => workflowId) };
    };
    expect(await page(0)).toEqual({ totalHits: count, found: ids.slice(0, 22) });
    expect(await page(22)).toEqual({ totalHits: count, found: ids.slice(22) });
    const bulk = (wanted: string[]) => c.send("POST", "/workflow/bulk/search?includeTasks=false", wanted);
    const answers = [
      await bulk(ids),
      await c.send("GET", "/workflow/w/correlated/same"),
      await c.send("POST", "/workflow/w/correlated", ["same", "other"]),
      await c.send("GET", "/workflow/search-by-tasks-v2"),
    ];
    expect(answers.map(({ status }) => status)).toEqual([413, 413, 413, 413]);
    expect(JSON.parse(answers[1]?.text ?? "")).toMatchObject({ status: 413, retryable: false });
    expect(answers[1]?.text).toContain("request fewer items, or read them one by one");
    const some = await bulk(ids.slice(1, 3));
    expect((JSON.parse(some.text) as { bulkSuccessfulResults: object[] }).bulkSuccessfulResults).toHaveLength(2);
  });
});

describe("a workflow of many large tasks", () => {
  const count = 10;
  const large = "x".repeat(8_000_000);

  /** Each task has eight megabytes of output, so all tasks together exceed the limit of a response. */
  async function grown() {
    const c = await startConductor();
    const tasks = Array.from({ length: count }, (_none, at) => ({ name: "t", taskReferenceName: `t${at}`, type: "SIMPLE" }));
    const id = await c.begin([...tasks, { name: "last", taskReferenceName: "last", type: "SIMPLE" }]);
    for (let at = 0; at < count; at++) await c.work("t", { output: { large } });
    return { c, id };
  }

  it("is refused completely and permanently, and requests that need no texts still work", async () => {
    const { c, id } = await grown();
    const refused = await c.send("GET", `/workflow/${id}`);
    expect([refused.status, JSON.parse(refused.text)]).toEqual([413, expect.objectContaining({ retryable: false })]);
    expect((await c.send("GET", `/workflow/${id}?includeTasks=false`)).status).toBe(200);
    const page = await c.read<{ totalHits: number; results: { referenceTaskName: string }[] }>(`/workflow/${id}/tasks?start=0&count=100`);
    expect(page.totalHits).toBe(count + 1);
    // As many as a response may have; the next `start` follows them.
    expect(page.results.map(({ referenceTaskName }) => referenceTaskName)).toEqual(["t0", "t1", "t2", "t3", "t4", "t5", "t6", "t7"]);
    const rest = await c.read<{ results: { referenceTaskName: string }[] }>(`/workflow/${id}/tasks?start=8&count=100`);
    expect(rest.results.map(({ referenceTaskName }) => referenceTaskName)).toEqual(["t8", "t9", "last"]);
    expect(await c.read("/workflow/running/w")).toEqual([id]);
    // A failed workflow is found, with the names of its failed tasks.
    await c.work("last", { status: "FAILED_WITH_TERMINAL_ERROR" });
    const found = await c.read<{ results: object[] }>(`/workflow/search?query=${encodeURIComponent(`workflowId=${id}`)}`);
    expect(found.results).toMatchObject([{ status: "FAILED", failedReferenceTaskNames: "last" }]);
  });
});

describe("waiting for a workflow of large tasks", () => {
  const large = "x".repeat(3_000_000);

  /** The longest text that any code of the server parses or writes in one call while `act` runs. */
  async function longest(act: () => Promise<void>): Promise<{ parsed: number; written: number }> {
    const seen = { parsed: 0, written: 0 };
    const { parse, stringify } = JSON;
    const parsing = vi.spyOn(JSON, "parse").mockImplementation((text, reviver) => {
      seen.parsed = Math.max(seen.parsed, text.length);
      return parse(text, reviver) as unknown;
    });
    const writing = vi.spyOn(JSON, "stringify").mockImplementation((value: unknown, ...more: unknown[]) => {
      const text = stringify(value, ...(more as []));
      seen.written = Math.max(seen.written, text?.length ?? 0);
      return text;
    });
    try {
      await act();
    } finally {
      parsing.mockRestore();
      writing.mockRestore();
    }
    return seen;
  }

  const wait = (name: string) => ({ name, taskReferenceName: name, type: "WAIT" });

  it.each(["TARGET_WORKFLOW", "BLOCKING_WORKFLOW"])("parses none of their texts for %s", async (strategy) => {
    const c = await startConductor();
    const id = await c.begin([{ name: "t", taskReferenceName: "t", type: "SIMPLE" }, wait("one"), wait("two")]);
    await c.work("t", { output: { large } });
    let text = "";
    const seen = await longest(async () => {
      ({ text } = await c.send("POST", `/tasks/${id}/COMPLETED/signal/sync?returnStrategy=${strategy}`, {}));
    });
    expect(text).toContain(large);
    expect(JSON.parse(text)).toMatchObject({ responseType: strategy, workflowId: id, targetWorkflowStatus: "RUNNING" });
    expect(seen.parsed).toBeLessThan(megabyte);
    expect(seen.written).toBeLessThan(megabyte);
  });

  it("reads a failed one in slices for its failure workflow", async () => {
    const c = await startConductor();
    const tasks = ["t", "u"].map((name) => ({ name, taskReferenceName: name, type: "SIMPLE", retryCount: 0 }));
    await c.workflow({ name: "after", tasks: [{ name: "v", taskReferenceName: "v", type: "SIMPLE" }] });
    await c.workflow({ name: "first", failureWorkflow: "after", tasks });
    const id = await c.start("first", {});
    await c.work("t", { output: { large } });
    const { parsed } = await longest(async () => {
      await c.work("u", { status: "FAILED_WITH_TERMINAL_ERROR" });
      await vi.waitFor(async () => expect(await c.read("/workflow/running/after")).toHaveLength(1));
    });
    expect(parsed).toBeLessThan(megabyte);
    const [after] = await c.read<string[]>("/workflow/running/after");
    const { input } = await c.read<{ input: object }>(`/workflow/${after}`);
    expect(input).toMatchObject({ workflowId: id, failureStatus: "FAILED", failedWorkflow: { tasks: [{ outputData: { large } }, {}] } });
  });
});

describe("queued tasks with large inputs", () => {
  it("are counted completely", async () => {
    const engine = await openEngineWithStore({ directory: null, clock: new TestClock() });
    onTestFinished(() => engine.close());
    const lanes = [{ name: "work", labels: [] }];
    const input = JSON.stringify("x".repeat(megabyte));
    const count = 20;
    for (let at = 0; at < count; at++) await engine.board.post([{ id: `t${at}`, step: "a", lanes, input, policy: null }]);
    const { tasks } = await engine.store.board.claim({
      reach: { names: ["work"], labels: [] },
      holder: null,
      termMs: 60_000,
      offerMs: 60_000,
      max: count,
    });
    expect(tasks).toHaveLength(count);
    engine.carriers.add({ protocol: "p", trouble: () => null, carries: () => true });
    const sent = [...(await sentTasks(engine)).values()];
    expect(sent.map((one) => one.count)).toEqual([count]);
    expect(JSON.stringify(sent).length).toBeLessThan(10_000);
  });
});

describe("large documents of one kind", () => {
  it("are listed a megabyte at a time", async () => {
    const engine = await openEngineWithStore({ directory: null, clock: new TestClock() });
    onTestFinished(() => engine.close());
    const count = 40;
    for (let at = 0; at < count; at++)
      await engine.documents.keepDocument({ kind: "schema", name: `s${at}`, version: 1, body: JSON.stringify("x".repeat(megabyte / 2)) });
    expect(await all(engine.documents.eachDocument("schema"))).toHaveLength(count);
    // The rows that a slice may read, and one row for each kilobyte of the megabyte that it may read.
    expect(engine.slices.longest).toBeLessThan(2 * turnRows);
  });
});

it("workflows are listed a few at a time, in a limited text", async () => {
  const server = await startGraphServer();
  const count = 60;
  for (let at = 0; at < count; at++) await server.start(job("one"));
  const texts = vi.spyOn(ListTexts.prototype, "of");
  const definitions = vi.spyOn(LocalReader.prototype, "definitions");
  onTestFinished(() => void vi.restoreAllMocks());
  for (const query of ["", "&status=queued"]) {
    const { text } = await server.get(`/api/workflows?limit=500${query}`);
    expect((JSON.parse(text) as object[]).length).toBe(count);
  }
  expect(JSON.parse((await server.get("/api/workflows?limit=3&offset=58")).text)).toHaveLength(2);
  expect(texts).toHaveBeenCalledTimes(3);
  expect(Math.max(...definitions.mock.calls.map(([page]) => page.limit))).toBeLessThanOrEqual(50);
});
