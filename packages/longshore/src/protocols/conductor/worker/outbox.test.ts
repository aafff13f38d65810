// Results that the server did not accept: they are stored on disk, and sent again later and after a restart.

import { mkdir, readdir, readFile, writeFile } from "node:fs/promises";
import { hostname } from "node:os";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { anyUpdate, refusal, updateV1 } from "../../../../test/support/conductor-stub.ts";
import { type Setup, setup, stopped } from "../../../../test/support/conductor-worker.ts";
import { until } from "../../../../test/support/until.ts";
import { task } from "../../../core/task.ts";
import { work } from "../../../work.ts";
import { conductor } from "./index.ts";

const greet = task("greet", () => ({ hello: "there" }));

/** Small compared with the maximum age of a result. The clock moves with each turn of a busy machine, and must not reach that age. */
const turnMs = 50;

/** Every attempt of the update fails, and the worker gives up. */
async function loseOne(s: Setup): Promise<void> {
  let lost = false;
  s.worker.on("updateFailed", () => {
    lost = true;
  });
  s.stub.enqueue("greet");
  while (!lost) await s.clock.advance(turnMs);
}

async function text(folder: string): Promise<string> {
  const names = await readdir(folder);
  const texts = await Promise.all(names.map((name) => readFile(join(folder, name), "utf8")));
  return texts.join("");
}

async function lines(folder: string): Promise<{ readonly [name: string]: unknown }[]> {
  return (await text(folder))
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line));
}

/** A file of a process that has ended: no process has this id. */
async function leaveFile(folder: string, content: readonly unknown[], end = "\n"): Promise<string> {
  await mkdir(folder, { recursive: true });
  const name = `conductor-${hostname().replace(/[^A-Za-z0-9.]/g, "_")}-4194305-0123abcd.jsonl`;
  await writeFile(join(folder, name), content.map((line) => JSON.stringify(line)).join("\n") + end);
  return name;
}

const resultBody = (taskId: string) =>
  JSON.stringify({ taskId, workflowInstanceId: "w", status: "COMPLETED", outputData: { kept: taskId } });

describe("a result that the server does not take", () => {
  it("is on disk from the first failed attempt on, and removed when a later attempt succeeds", async () => {
    await using s = await setup({ tasks: [greet], outbox: true, before: (stub) => void stub.misbehave(anyUpdate, { status: 503 }, 1) });
    s.stub.enqueue("greet");
    while (s.stub.seen(anyUpdate).length === 0) await s.clock.advance(1);
    // A line is complete when it has its line end. A disk may be slow.
    while (!(await text(s.outbox)).includes('"keep"')) await s.clock.advance(0);
    const [head, kept] = await lines(s.outbox);
    expect(head).toEqual({ server: s.stub.url });
    expect(kept).toMatchObject({ keep: "task-1" });
    expect(JSON.parse(String(kept?.body))).toMatchObject({ taskId: "task-1", status: "COMPLETED", outputData: { hello: "there" } });
    while (s.stub.results.length === 0) await s.clock.advance(turnMs);
    await s.worker.stop();
    expect(await readdir(s.outbox)).toEqual([]);
  });

  it("[C-EVT-14] is sent again half a minute after the last attempt, and this is reported", async () => {
    await using s = await setup({ tasks: [greet], outbox: true });
    const heal = s.stub.misbehave(anyUpdate, { status: 500 });
    await loseOne(s);
    expect(s.stub.results).toEqual([]);
    heal();
    while (s.stub.results.length === 0) await s.clock.advance(turnMs);
    expect(s.stub.results).toMatchObject([{ taskId: "task-1", outputData: { hello: "there" } }]);
    await until(() => s.notices.some(({ message }) => message === "The kept result of task task-1 has been taken."));
    await s.worker.stop();
    expect(await readdir(s.outbox)).toEqual([]);
  });

  it("stays on disk when the worker stops, and the next worker sends it, also in the same process", async () => {
    await using s = await setup({ tasks: [greet], outbox: true });
    const heal = s.stub.misbehave(anyUpdate, { status: 500 });
    await loseOne(s);
    await stopped(s.worker, s.clock);
    expect(await readdir(s.outbox)).toHaveLength(1);
    heal();
    const next = await work({
      tasks: [greet],
      on: conductor(`${s.stub.url}/api`, { env: {}, outbox: s.outbox, pollTimeout: 100 }),
      signals: false,
      logger: (notice) => void s.notices.push(notice),
      clock: s.clock,
    });
    // A forced stop waits for a slow disk only for a limited time. The file may be complete only after the next worker has begun, which then
    // looks again.
    while (!s.notices.some(({ message }) => message.includes("has been taken"))) await s.clock.advance(turnMs);
    await next.stop();
    expect(s.stub.results[0]?.outputData).toEqual({ hello: "there" });
    expect(await readdir(s.outbox)).toEqual([]);
  });

  it("of a process that was killed is sent at the start, except dropped or incomplete results", async () => {
    await using s = await setup({
      tasks: [greet],
      outbox: true,
      before: async (stub, folder) => {
        for (const taskId of ["t1", "t2", "t3"])
          stub.tasks.set(taskId, { taskId, workflowInstanceId: "w", status: "IN_PROGRESS", pollCount: 1 });
        const keep = (taskId: string) => ({ keep: taskId, atMs: Date.UTC(2020, 0, 1), body: resultBody(taskId) });
        await leaveFile(folder, [{ server: stub.url }, keep("t1"), keep("t2"), { drop: "t2" }, keep("t3")], '\n{"keep":"t4","atMs":1,"bo');
      },
    });
    await until(() => s.notices.filter(({ message }) => message.includes("has been taken")).length === 2);
    expect(s.stub.results.map(({ taskId }) => taskId)).toEqual(["t1", "t3"]);
    await s.worker.stop();
    expect(await readdir(s.outbox)).toEqual([]);
  });

  it("for another server stays on disk", async () => {
    await using s = await setup({
      tasks: [greet],
      outbox: true,
      before: async (_stub, folder) =>
        void (await leaveFile(folder, [
          { server: "http://elsewhere" },
          { keep: "t1", atMs: Date.UTC(2020, 0, 1), body: resultBody("t1") },
        ])),
    });
    await s.clock.advance(60_000);
    await s.worker.stop();
    expect(await readdir(s.outbox)).toHaveLength(1);
    expect(s.stub.seen(updateV1)).toEqual([]);
  });

  it("is dropped when the server does not know the task, or when it is older than a week", async () => {
    await using s = await setup({
      tasks: [greet],
      outbox: true,
      before: async (stub, folder) => {
        const kept = (taskId: string, atMs: number) => ({ keep: taskId, atMs, body: resultBody(taskId) });
        const nowMs = Date.UTC(2020, 0, 1);
        await leaveFile(folder, [{ server: stub.url }, kept("unknown", nowMs), kept("old", nowMs - 8 * 86_400_000)]);
      },
    });
    await until(() => s.notices.filter(({ message }) => message.includes("is given up")).length === 2);
    const told = s.notices.map(({ message }) => message).join("\n");
    expect(told).toContain("task old is given up: it is older than a week");
    expect(told).toContain("task unknown is given up: the server answered status 404: No such task found by id: unknown");
    await s.worker.stop();
    expect(await readdir(s.outbox)).toEqual([]);
  });

  it("that it refuses is not kept", async () => {
    await using s = await setup({ tasks: [greet], outbox: true, before: (stub) => void stub.misbehave(anyUpdate, refusal(400, "no"), 2) });
    let lost = false;
    s.worker.on("updateFailed", () => {
      lost = true;
    });
    s.stub.enqueue("greet");
    while (!lost) await s.clock.advance(1);
    expect(await readdir(s.outbox)).toEqual([]);
  });

  it("is lost when the folder is not writable; this is reported, and the worker continues", async () => {
    await using s = await setup({
      tasks: [greet],
      outbox: true,
      before: async (_stub, folder) => {
        const { rm } = await import("node:fs/promises");
        await rm(folder, { recursive: true });
        await writeFile(folder, "a file is in its place");
      },
    });
    s.stub.misbehave(anyUpdate, { status: 500 }, 1);
    s.stub.enqueue("greet");
    while (s.stub.results.length === 0) await s.clock.advance(turnMs);
    expect(s.notices.some(({ message }) => message.includes("outbox fails"))).toBe(true);
  });
});
