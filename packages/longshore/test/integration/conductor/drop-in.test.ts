// Programs for the official JavaScript SDK, compiled and run with only the name of the imported package changed.

import { execFileSync } from "node:child_process";
import { cpSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, describe, expect, it, onTestFinished } from "vitest";
import { type Running, startProgram } from "../../support/cli.ts";
import { ConductorStub } from "../../support/conductor-stub.ts";
import { untilElsewhere as until } from "../../support/until.ts";

const fixtures = fileURLToPath(new URL("../../fixtures/drop-in", import.meta.url));
const require = createRequire(import.meta.url);
const compiler = join(dirname(require.resolve("typescript/package.json")), "bin/tsc");

const packageFolder = fileURLToPath(new URL("../../..", import.meta.url));
const folder = mkdtempSync(join(tmpdir(), "longshore-drop-in-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));
mkdirSync(join(folder, "node_modules"));
symlinkSync(packageFolder, join(folder, "node_modules/longshore"), "dir");
symlinkSync(join(dirname(require.resolve("@types/node/package.json")), ".."), join(folder, "node_modules/@types"), "dir");
writeFileSync(join(folder, "package.json"), '{"type":"module"}');

/** Throws the compiler's messages when the programs do not fit the types of this package. */
function compile(kind: string): string {
  const source = join(folder, kind);
  cpSync(join(fixtures, kind), source, { recursive: true });
  for (const file of readdirSync(source, { recursive: true, encoding: "utf8" }).filter((name) => name.endsWith(".ts"))) {
    const path = join(source, file);
    writeFileSync(path, readFileSync(path, "utf8").replaceAll('"@io-orkes/conductor-javascript"', '"longshore/conductor/compat"'));
  }
  const out = join(folder, "out", kind);
  try {
    execFileSync(process.execPath, [compiler, "-p", source, "--outDir", out], { encoding: "utf8" });
  } catch (error) {
    throw new Error((error as { stdout?: string }).stdout);
  }
  return out;
}

const folders = new Map<string, string>();

/** The folder of the compiled programs of this generation of decorators. */
function compiled(kind: "current" | "legacy"): string {
  const known = folders.get(kind) ?? compile(kind);
  folders.set(kind, known);
  return known;
}

async function run(kind: "current" | "legacy", program: string): Promise<{ stub: ConductorStub; running: Running }> {
  const stub = await ConductorStub.start();
  onTestFinished(() => stub.close());
  const cwd = compiled(kind);
  return { stub, running: startProgram(process.execPath, [`${program}.js`], { cwd, env: { SERVER: `${stub.url}/api` } }) };
}

async function ended(running: Running) {
  running.kill("SIGTERM");
  const { code, stdout, stderr } = await running.ended;
  expect(code, stderr).toBe(0);
  return stdout;
}

describe("a program for the official SDK", () => {
  it("[C-HND-01, C-EXEC-05, C-EXEC-06] runs methods of a class, which keep their `this`", async () => {
    const { stub, running } = await run("current", "methods");
    await running.printed(/^\{"running":true,"healthy":true,"count":3\}$/m);
    const greet = stub.enqueue("greet", { inputData: { name: "Ada" } });
    const paid = stub.enqueue("process_payment", { inputData: { amount: 5 } }, "payments");
    const first = stub.enqueue("process_video");
    const second = stub.enqueue("process_video", { inputData: { done: true } });
    await until(() => stub.results.length === 4);
    const of = (task: { taskId: string }) => stub.results.find(({ taskId }) => taskId === task.taskId);
    expect(of(greet)).toMatchObject({ status: "COMPLETED", outputData: { result: "Hello Ada" } });
    expect(of(paid)).toMatchObject({ status: "COMPLETED", outputData: { transactionId: "t-5" } });
    expect(of(first)).toMatchObject({
      status: "IN_PROGRESS",
      callbackAfterSeconds: 30,
      outputData: { seen: true, url: "none" },
      logs: [{ log: `Round 1 of ${first.taskId}` }],
    });
    expect(of(second)).toMatchObject({
      status: "COMPLETED",
      outputData: { seen: true, url: "http://video" },
      logs: [{ log: "from the result" }, { log: `Round 1 of ${second.taskId}` }],
    });
    await ended(running);
  });

  it("[C-EXEC-10, C-EXEC-11] fails permanently with NonRetryableException, and transiently with any other error", async () => {
    const { stub, running } = await run("current", "methods");
    stub.enqueue("process_payment", { inputData: { amount: -1 } }, "payments");
    stub.enqueue("process_payment", { inputData: { amount: 0 } }, "payments");
    await until(() => stub.results.length === 2);
    expect(stub.results).toMatchObject([
      { status: "FAILED_WITH_TERMINAL_ERROR", reasonForIncompletion: "Amounts are never negative" },
      { status: "FAILED", reasonForIncompletion: "The till is closed", logs: [{ log: expect.stringContaining("processPayment") }] },
    ]);
    await ended(running);
  });

  it("[C-HND-04, C-HND-05, C-EVT-09] runs functions and workers without a decorator, with listeners, metrics and disposal", async () => {
    const { stub, running } = await run("current", "functions");
    await running.printed(/^polling add=true,length=true$/m);
    await until(() => stub.seen(/^PUT \/api\/metadata\/taskdefs$/).length > 0);
    const [definition] = stub.seen(/^PUT \/api\/metadata\/taskdefs$/);
    expect(definition?.body).toMatchObject({ name: "add", retryCount: 2 });
    stub.enqueue("add", { inputData: { a: 2 } });
    stub.enqueue("length", { inputData: { text: "four" } });
    await until(() => stub.results.length === 2);
    expect(stub.results.map(({ outputData }) => outputData)).toEqual(expect.arrayContaining([{ result: 3 }, { length: 4 }]));
    const stdout = await ended(running);
    expect(stdout).toContain("1 true false\n");
    const { heard, text } = JSON.parse(stdout.trim().split("\n").at(-1) as string);
    expect(heard.sort()).toEqual(["add 12 true", "add updated", "length 12 true", "length updated"]);
    expect(text.sort()).toEqual(['task_execution_started_total{taskType="add"} 1', 'task_execution_started_total{taskType="length"} 1']);
  });

  it("may call a worker as a step, and describe its output by a class", async () => {
    const { running } = await run("current", "beyond");
    const { stdout } = await running.ended;
    expect(JSON.parse(stdout)).toEqual({
      properties: { total: { type: "number", description: "All of it." }, note: { type: "string" } },
      step: { name: "add", taskReferenceName: "first", type: "SIMPLE", inputParameters: { a: 1 } },
      called: 2,
      required: [["total"]],
    });
  });

  it("runs a TaskManager, also when its callback throws", async () => {
    const { stub, running } = await run("current", "manager");
    stub.enqueue("failing");
    await running.printed(/^error failing: It went wrong$/m);
    stub.enqueue("fine");
    await until(() => stub.results.length === 2);
    expect(stub.results[1]).toMatchObject({ status: "COMPLETED", outputData: { hello: "From your worker" } });
    expect(await ended(running)).toMatch(/^polling true\n[\s\S]*polling false\n$/);
  });

  it("runs the decorators of TypeScript before version 5, with an instance of the class", async () => {
    const { stub, running } = await run("legacy", "main");
    await running.printed(/^ready$/m);
    stub.enqueue("count", { inputData: { orderId: "a" } });
    stub.enqueue("count", { inputData: { orderId: "b" } });
    const shout = stub.enqueue("shout", { inputData: { text: "hey" } });
    await until(() => stub.results.length === 3);
    const outputs = stub.results.filter(({ taskId }) => taskId !== shout.taskId).map(({ outputData }) => outputData);
    expect(outputs).toEqual([
      { count: 1, order: "a" },
      { count: 2, order: "b" },
    ]);
    expect(stub.results.find(({ taskId }) => taskId === shout.taskId)?.outputData).toEqual({ text: "hey!" });
    const [schema] = (await ended(running)).split("\n");
    expect(schema).toContain('"required":["orderId"]');
  });

  it("[C-ARCH-01, C-HND-02, C-SUP-03] runs the workers of imported modules in separate processes, and restarts one that crashed", async () => {
    const { stub, running } = await run("current", "modules");
    const [line] = await running.printed(/^\{"pid".*$/m);
    const { pid, count } = JSON.parse(line);
    expect(count).toBe(4);
    const take = stub.enqueue("take_order", { inputData: { number: 7 } });
    const sum = stub.enqueue("sum", { inputData: { to: 100_000 } });
    await until(() => stub.results.length === 2);
    const of = (task: { taskId: string }) => stub.results.find(({ taskId }) => taskId === task.taskId);
    expect(of(take)).toMatchObject({ outputData: { id: "order-7" }, logs: [{ log: "taken" }] });
    expect(of(sum)).toMatchObject({ outputData: { sum: 5_000_050_000 } });
    const pids = new Set([pid, of(take)?.outputData?.pid, of(sum)?.outputData?.pid]);
    expect(pids.size).toBe(3);
    await running.printed(/^completed take_order$/m);
    stub.enqueue("crash");
    stub.enqueue("crash", { retryCount: 1 });
    await until(() => stub.results.length === 3);
    expect(of(take)?.outputData?.pid).not.toBe(stub.results[2]?.outputData?.pid);
    running.kill("SIGUSR2");
    const [status] = await running.printed(/^\{"healthy".*$/m);
    expect(JSON.parse(status).status).toContainEqual(expect.objectContaining({ taskDefName: "crash", polling: true, restartCount: 1 }));
    expect(await ended(running)).toContain("stopped");
  });

  it("[C-ARCH-12, C-ARCH-08, C-CAP-03] runs the configured number of synchronous handlers at the same time, each in a thread", async () => {
    const { stub, running } = await run("current", "modules");
    await running.printed(/^\{"pid".*$/m);
    const [one, two] = [join(folder, "one"), join(folder, "two")];
    stub.enqueue("meet", { inputData: { mine: one, theirs: two } });
    stub.enqueue("meet", { inputData: { mine: two, theirs: one } });
    await until(() => stub.results.length === 2);
    const threads = stub.results.map(({ outputData }) => outputData?.threadId);
    expect(new Set(threads).size).toBe(2);
    expect(threads).not.toContain(0);
    await ended(running);
  });
});
