// A server without its ports on a real PostgreSQL: behaviour that the suites of rows and of the board do not test.

import type { Readable } from "node:stream";
import { buffer } from "node:stream/consumers";
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from "vitest";
import type { Hold } from "../../src/engine/board/task.ts";
import { type Engine, openEngine } from "../../src/server/engine.ts";
import { openStoredData } from "../../src/server/verify-postgres.ts";
import { openPostgres } from "../../src/store/postgres/store.ts";
import { postgresMissing, startMsMax, TestPostgres } from "../support/postgres.ts";

const text = (size: number) => "x".repeat(size);

async function collected<T>(items: AsyncIterable<T>): Promise<T[]> {
  const all: T[] = [];
  for await (const item of items) all.push(item);
  return all;
}

if (postgresMissing !== undefined) it("an engine works on PostgreSQL", (context) => context.skip(`needs ${postgresMissing}`));
else
  describe("an engine on PostgreSQL", () => {
    let server: TestPostgres;
    beforeAll(async () => {
      server = await TestPostgres.start({ explains: true });
    }, startMsMax);
    afterAll(() => server.remove(), startMsMax);

    async function open(url: string): Promise<Engine> {
      const engine = await openEngine({ directory: null, openStore: () => openPostgres({ url }) });
      onTestFinished(() => engine.close());
      return engine;
    }

    /** Runs of two steps, all completed. */
    async function withRuns(count: number) {
      const url = server.newUrl();
      const engine = await open(url);
      const retry = { failures: 1, backoff: { kind: "fixed", delayMs: 0 } };
      const steps = ["a", "b"].map((id, at) => ({ id, task: id, input: null, retry, after: at === 0 ? [] : ["a"] }));
      await engine.runs.define({ name: "w", dialect: "code", source: JSON.stringify({ name: "w", steps, output: null }) });
      const ids: string[] = [];
      for (let at = 0; at < count; at++)
        ids.push((await engine.runs.start({ workflow: "w", input: `"${at}"`, alias: `alias ${at}` })).run.id);
      const work = async (lane: string) => {
        for (;;) {
          const tasks = await engine.board.claim({ reach: { names: [lane], labels: [] }, holder: "ann", termMs: 60_000, max: 10 });
          if (tasks.length === 0) return;
          await Promise.all(
            tasks.map(({ id, grant }) => engine.board.complete({ taskId: id, grant, holder: "ann" }, JSON.stringify({ by: lane }))),
          );
        }
      };
      return { url, engine, ids, work };
    }

    it("is checked as it was at one moment while runs take their turns at a start limit", async () => {
      const { url, engine, work } = await withRuns(0);
      const source = { name: "alone", steps: [{ id: "a", task: "a", input: null }], output: null, limit: {} };
      await engine.runs.define({ name: "alone", dialect: "code", source: JSON.stringify(source) });
      const start = () => engine.runs.start({ workflow: "alone", input: "null" });
      for (let count = 0; count < 3; count++) await start();
      const { source: stored, close } = await openStoredData(url);
      onTestFinished(close);
      expect(await stored.kept()).toBeDefined();
      const changes = async () => {
        await work("a");
        await start();
      };
      await changes();
      expect(await collected(stored.runs())).toHaveLength(3);
      await changes();
      expect(await collected(stored.others())).toEqual([]);
    });

    it("lists, finds and shows runs and tasks from memory and from the database", async () => {
      const { engine, ids, work } = await withRuns(5);
      const { reader } = engine;
      expect((await reader.runs({ limit: 3 })).items.map(({ id }) => id)).toEqual(ids.slice(2).reverse());
      await work("a");
      expect((await reader.queued()).get("b")).toBe(5);
      await work("b");
      expect((await reader.runs({ state: "succeeded", limit: 10 })).items).toHaveLength(5);
      expect((await reader.runs({ state: "failed", limit: 10 })).items).toEqual([]);
      expect((await reader.runByAlias("alias 2"))?.id).toBe(ids[2]);
      expect((await reader.newestRun("w"))?.id).toBe(ids[4]);
      expect((await collected(reader.records(ids[0] as string))).map(({ step, output }) => [step, output])).toEqual([
        ["a", '{"by":"a"}'],
        ["b", '{"by":"b"}'],
      ]);
      expect((await reader.heads(ids[1] as string)).map(({ state }) => state)).toEqual(["done", "done"]);
      const found = await reader.search({ text: '"3"', order: { by: "ended", down: true }, offset: 0, limit: 10 });
      expect((await collected(found.runs)).map(({ id }) => id)).toEqual([ids[3]]);
      expect((await reader.search({ like: { alias: "ALIAS*" }, states: ["succeeded"], offset: 0, limit: 2 })).total).toBe(5);
      const states = ["succeeded", "failed", "cancelled"] as const;
      const page = await engine.summaries.page({ states, workflows: ["w", "none"], text: '"3"', limit: 10 });
      expect(page).toMatchObject({ items: [{ id: ids[3], steps: 2, dialect: "code", version: 1 }], next: null, looked: 5, of: 5 });
      expect(await engine.summaries.page({ states: ["failed", "cancelled"], limit: 10 })).toMatchObject({ items: [], looked: 0 });
      expect((await engine.summaries.page({ parent: ids[0], limit: 10 })).items).toEqual([]);
      expect((await reader.definitions({ limit: 10 })).map(({ name }) => name)).toEqual(["w"]);
      expect(await reader.counts()).toEqual({ openRuns: 0, endedRuns: 5, endedTasks: 0 });
      expect(await reader.attempts(`${ids[0]}.0`)).toHaveLength(1);
      const history = await engine.history.runPage(ids[0] as string, { after: `${ids[0]}.`, limit: 10 });
      expect(history?.tasks.map(({ step, hasOutput }) => [step, hasOutput])).toEqual([
        ["a", true],
        ["b", true],
      ]);
      expect(await engine.history.kept()).toBeDefined();
    });

    it("reports the size of its tables", async () => {
      const engine = await open(server.newUrl());
      const [before] = await engine.size();
      expect(before).toMatchObject({ name: "tables" });
      await engine.board.post([
        { id: "a", step: "a", lanes: [{ name: "a", labels: [] }], input: JSON.stringify(text(100_000)), policy: null },
      ]);
      const [after] = await engine.size();
      expect(after?.bytes).toBeGreaterThan(before?.bytes ?? 0);
    });

    it("continues with the data of an earlier engine, and with PostgreSQL's time", async () => {
      const { url, engine, work } = await withRuns(3);
      await work("a");
      await engine.logStore.append({
        taskId: "t",
        runId: null,
        attempt: 0,
        grant: 1,
        chunks: [{ stream: "stdout", sequence: 0, data: "hello\n", at: 1 }],
      });
      await engine.close();
      const next = await open(url);
      expect(await next.logStore.lastLine("t")).toBe("hello");
      expect((await next.reader.queued()).get("b")).toBe(3);
      const [row] = await server.query("SELECT extract(epoch FROM clock_timestamp()) * 1000 AS now");
      expect(Math.abs(next.clock.now() - Number(row?.now))).toBeLessThan(60_000);
    });

    it("stores contents of blobs, and lets a reader finish a blob that is removed meanwhile", async () => {
      const store = await openPostgres({ url: server.newUrl() });
      onTestFinished(() => store.close());
      const { contents } = store;
      const content = Buffer.from(text(700_000));
      const keep = async () => {
        const received = await contents.receive(content, () => {});
        await received.keep();
        await received.discard();
        return received.hash;
      };
      const hash = await keep();
      expect(await keep()).toBe(hash);
      expect(await contents.unchanged(Date.now() + 60_000)).toEqual([hash]);
      const reading = (await contents.open(hash)) as Readable;
      const pieces = reading.iterator();
      const first = (await pieces.next()).value as Buffer;
      const unread = (await contents.open(hash)) as Readable;
      const free = contents.takeAway(hash);
      expect(await contents.open(hash)).toBeNull();
      // Stores the same content again while the old one is read.
      expect(await keep()).toBe(hash);
      await free();
      const rest: Buffer[] = [];
      for await (const piece of pieces) rest.push(piece as Buffer);
      expect(Buffer.concat([first, ...rest]).equals(content)).toBe(true);
      expect((await buffer(unread)).equals(content)).toBe(true);
      expect((await buffer((await contents.open(hash)) as Readable)).equals(content)).toBe(true);
      const refused = contents.receive(content, () => {
        throw new Error("too much");
      });
      await expect(refused).rejects.toThrow("too much");
      const empty = await contents.receive(Buffer.alloc(0), () => {});
      await empty.keep();
      expect(await buffer((await contents.open(empty.hash)) as Readable)).toHaveLength(0);
    });

    it("plans every statement by an index", async () => {
      const { engine, ids, work } = await withRuns(20);
      const reach = { names: ["a"], labels: [] };
      const tasks = await engine.board.claim({ reach, holder: "bob", termMs: 60_000, max: 6 });
      const holds = tasks.map(({ id, grant }) => ({ taskId: id, grant, holder: "bob" }));
      const [failing, deferring, extending, logging] = holds as [Hold, Hold, Hold, Hold];
      await engine.board.fail(failing, { error: "boom", retryable: true });
      await engine.board.defer(deferring, 0);
      await engine.board.extend(extending, { output: '"so far"' });
      const chunks = [{ stream: "stdout" as const, sequence: 0, data: "hello\n", at: 1 }];
      await engine.logStore.append({ taskId: logging.taskId, runId: null, attempt: 0, grant: logging.grant ?? 0, chunks });
      await engine.runs.cancel(ids[7] as string);
      await work("a");
      await work("b");
      await engine.runs.tell(ids[7] as string, { kind: "restart" });
      await engine.reader.runs({ limit: 5 });
      await engine.reader.heads(ids[0] as string);
      await engine.reader.tasks({ limit: 5 });
      const plans = server.plans();
      const written = plans.filter((plan) => plan.startsWith("longshore write"));
      for (const hot of [
        "UPDATE task",
        "INSERT INTO task",
        "UPDATE run",
        "UPDATE shard",
        "INSERT INTO run",
        "INSERT INTO attempt",
        "INSERT INTO log",
      ])
        expect(written.filter((plan) => plan.includes(hot)).length, hot).toBeGreaterThan(0);
      expect(plans.filter((plan) => plan.startsWith("longshore read")).length).toBeGreaterThan(5);
      expect(written.flatMap(withoutIndex)).toEqual([]);
      const large = /Seq Scan on (?:task|run|attempt|message|log|part)\b/;
      expect(plans.filter((plan) => large.test(plan))).toEqual([]);
    });
  });

/** The parts of a query plan that read a whole table or a whole index, without a condition. */
function withoutIndex(plan: string): string[] {
  const lines = plan.split("\n");
  return lines.filter((line, at) => {
    if (/Seq Scan on/.test(line)) return true;
    if (!/Index (?:Only )?Scan|Bitmap Index Scan/.test(line)) return false;
    const indent = line.search(/\S/);
    const rest = lines.slice(at + 1);
    const end = rest.findIndex((next) => next.search(/\S/) <= indent || next.includes("->"));
    return !rest.slice(0, end === -1 ? undefined : end).some((next) => next.includes("Index Cond"));
  });
}
