// A Conductor worker process that receives signals. The server belongs to the test, so the test knows when to send a signal and measures no
// time.

import { readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it, onTestFinished } from "vitest";
import { startProgram, temporaryFolder } from "../../support/cli.ts";
import { anyUpdate, ConductorStub, type StubOptions, updateV1 } from "../../support/conductor-stub.ts";
import { untilElsewhere as until } from "../../support/until.ts";

const program = `
import { task, work } from "longshore";
import { conductor } from "longshore/conductor";
const greet = task("greet", ({ name }) => ({ text: "Hello, " + name + "!" }));
const wait = task("wait", async (_input, ctx) => {
  console.log("begun");
  await new Promise((resolve) => process.once("SIGUSR2", resolve));
  return { waited: true };
});
await work({ tasks: [greet, wait], on: conductor() });
console.log("ready");
`;

async function setup(options: StubOptions = {}) {
  const stub = await ConductorStub.start(options);
  onTestFinished(() => stub.close());
  const folder = temporaryFolder();
  writeFileSync(join(folder, "worker.mjs"), program);
  const start = (env: Readonly<Record<string, string>> = {}) =>
    startProgram(process.execPath, ["worker.mjs"], { cwd: folder, env: { CONDUCTOR_SERVER_URL: `${stub.url}/api`, ...env } });
  const outbox = () => readdirSync(join(folder, ".longshore/outbox"));
  return { stub, start, outbox };
}

describe("a Conductor worker's process", () => {
  it("finds its server in the environment, and exits after SIGTERM when running tasks are reported", async () => {
    const s = await setup();
    s.stub.enqueue("wait");
    const worker = s.start();
    await worker.printed(/begun/);
    worker.kill("SIGTERM");
    await worker.printed(/stopping; waiting for 1 running task/);
    worker.kill("SIGUSR2");
    expect((await worker.ended).code).toBe(0);
    expect(s.stub.results).toMatchObject([{ status: "COMPLETED", outputData: { waited: true } }]);
    expect(s.stub.seen(updateV1)).toHaveLength(1);
  });

  it("that is killed between two attempts of an update loses no result: the next process sends it", async () => {
    const s = await setup();
    const heal = s.stub.misbehave(anyUpdate, { status: 503 });
    s.stub.enqueue("greet", { inputData: { name: "Ada" } });
    const first = s.start();
    await first.printed(/report fails, trying on/);
    await until(() => s.outbox().length === 1);
    first.kill("SIGKILL");
    expect((await first.ended).signal).toBe("SIGKILL");
    heal();
    const second = s.start();
    await second.printed(/The kept result of task task-1 has been taken/);
    expect(s.stub.results).toMatchObject([{ taskId: "task-1", outputData: { text: "Hello, Ada!" } }]);
    second.kill("SIGTERM");
    expect((await second.ended).code).toBe(0);
    expect(s.outbox()).toEqual([]);
  });

  it("does not start with an invalid variable, and the error names it", async () => {
    const s = await setup();
    const { code, stderr } = await s.start({ CONDUCTOR_WORKER_ALL_PAUSED: "perhaps" }).ended;
    expect(code).not.toBe(0);
    expect(stderr).toContain('CONDUCTOR_WORKER_ALL_PAUSED is "perhaps", expected one of yes, true, no, false, 1, 0.');
    expect(s.stub.requests).toEqual([]);
  });
});
