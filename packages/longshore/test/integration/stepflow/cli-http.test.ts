// `longshore work FILE --port N`, as an orchestrator of Stepflow's HTTP releases starts it. The process has almost no environment, and its
// port is read from its standard output.

import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it, onTestFinished } from "vitest";
import { longshore, type Running, startLongshore, temporaryFolder } from "../../support/cli.ts";
import { httpCollector } from "../../support/collector.ts";
import { freePort } from "../../support/port.ts";
import { Runtime } from "../../support/stepflow-runtime.ts";
import { untilElsewhere as until } from "../../support/until.ts";

const program = `
import { existsSync } from "node:fs";
import { task } from "longshore";
console.log("printed while loading");
export const greet = task("greet", async ({ name }, ctx) => {
  console.log("printed by a handler");
  ctx.log("greeting " + name);
  return { text: "Hello, " + name + "!", pid: process.pid };
});
export const compute = task("compute", ({ n }) => {
  console.log("printed by a thread");
  return { twice: n * 2 };
});
export const slow = task("slow", async (_input, ctx) => {
  ctx.log("slow begins");
  while (!existsSync("go")) await new Promise((resolve) => setTimeout(resolve, 10));
  return "finished";
});
export const crash = task("crash", async () => process.exit(3));
`;

/** As in the reference: only the variables that the plugin names. */
async function start(args: readonly string[] = ["--port", "0"], env: Record<string, string> = {}) {
  const folder = temporaryFolder();
  writeFileSync(join(folder, "worker.mjs"), program);
  const worker = startLongshore(["work", "worker.mjs", ...args], { cwd: folder, env });
  const [, port] = await worker.printed(/^\{"port":\s?(\d+)\}$/m);
  const runtime = new Runtime(`http://127.0.0.1:${port}`);
  onTestFinished(() => runtime.close());
  return { folder, worker, runtime };
}

const logged = (worker: Running) =>
  worker
    .text()
    .split("\n")
    .filter((line) => line.startsWith("{") && line.includes('"level"'))
    .map((line) => JSON.parse(line) as Record<string, unknown>);

it("needs no argument when the environment names its transport", async () => {
  const { worker, runtime } = await start([], { STEPFLOW_TRANSPORT: "http" });
  await runtime.handshake();
  expect((await runtime.execute("/greet", { name: "Ada" })).answer.result.output.text).toBe("Hello, Ada!");
  expect(worker.stdout()).toBe(`{"port":${new URL(runtime.url).port}}\n`);
});

it("[S-HTTP-13] prints the port as the only line of its standard output, also when its tasks print", async () => {
  const { worker, runtime } = await start();
  await runtime.handshake();
  expect((await runtime.execute("/greet", { name: "Ada" })).answer.result.output.text).toBe("Hello, Ada!");
  expect((await runtime.execute("/compute", { n: 21 })).answer.result.output).toEqual({ twice: 42 });
  await until(() => worker.text().includes("printed by a thread"));
  expect(worker.stdout()).toBe(`{"port":${new URL(runtime.url).port}}\n`);
  expect(worker.text()).toContain("printed while loading");
  expect(worker.text()).toContain("printed by a handler");
});

it("[S-BP-05] ends on SIGTERM, and when it cannot listen, also when its file keeps a resource open", async () => {
  const folder = temporaryFolder();
  writeFileSync(join(folder, "open.mjs"), `${program}\nsetInterval(() => {}, 1_000_000);\n`);
  const start = (port: string) => startLongshore(["work", "open.mjs", "--port", port], { cwd: folder });
  const first = start("0");
  const [, port = ""] = await first.printed(/^\{"port":\s?(\d+)\}$/m);
  const second = await start(port).ended;
  expect([second.code, second.stderr]).toEqual([2, expect.stringContaining("cannot listen")]);
  first.kill("SIGTERM");
  expect(await first.ended).toMatchObject({ code: 0, signal: null });
});

it("[S-BP-05] on SIGTERM it finishes running work, sends the responses, and ends with code 0", async () => {
  const { folder, worker, runtime } = await start();
  await runtime.handshake();
  const execution = runtime.execute("/slow");
  await worker.printed(/slow begins/);
  worker.kill("SIGTERM");
  await worker.printed(/SIGTERM: stopping; waiting for 1 running task/);
  expect((await runtime.execute("/greet", { name: "late" })).answer.error.code).toBe(-32000);
  writeFileSync(join(folder, "go"), "");
  expect((await execution).answer.result.output).toBe("finished");
  expect(await worker.ended).toMatchObject({ code: 0, signal: null });
});

it("[S-HTTP-34] workers have their own processes, and one that dies does not end another", async () => {
  const [one, other] = await Promise.all([start(), start()]);
  await Promise.all([one.runtime.handshake(), other.runtime.handshake()]);
  await expect(one.runtime.execute("/crash")).rejects.toThrow();
  expect((await one.worker.ended).code).toBe(3);
  const { pid } = (await other.runtime.execute("/greet", { name: "Ada" })).answer.result.output;
  expect(pid).toBe(other.worker.pid);
});

it("[S-BP-06, S-OBS-11] logs in JSON on standard error, with the ids of the work", async () => {
  const { worker, runtime } = await start();
  await runtime.handshake();
  await runtime.execute("/greet", { name: "Ada" }, { observability: { run_id: "r1", flow_id: "f1", step_id: "s1" } });
  await until(() => logged(worker).some(({ message }) => message === "greeting Ada"));
  expect(logged(worker).find(({ message }) => message === "greeting Ada")).toMatchObject({
    timestamp: expect.stringMatching(/Z$/),
    level: "INFO",
    logger: "longshore.greet",
    flow_id: "f1",
    run_id: "r1",
    step_id: "s1",
  });
  expect(logged(worker).some(({ logger, message }) => logger === "longshore" && String(message).includes("/compute, /crash, /greet"))).toBe(
    true,
  );
});

it("[S-OBS-12, S-OBS-13, S-OBS-15] uses the variables of the worker guide", async () => {
  const collector = await httpCollector();
  const { worker, runtime } = await start(["--port", "0"], {
    STEPFLOW_OTLP_ENDPOINT: collector.endpoint,
    STEPFLOW_SERVICE_NAME: "my-worker",
    STEPFLOW_LOG_LEVEL: "DEBUG",
  });
  await runtime.handshake();
  expect((await runtime.get("/health")).json.service).toBe("my-worker");
  const observability = { trace_id: "a1b2c3d4e5f67890a1b2c3d4e5f67890", span_id: "1234567890abcdef", run_id: "r1" };
  await runtime.execute("/greet", { name: "Ada" }, { observability });
  runtime.close();
  worker.kill("SIGTERM");
  expect((await worker.ended).code).toBe(0);
  expect(collector.spans).toMatchObject([
    { traceId: observability.trace_id, parentSpanId: observability.span_id, resource: { "service.name": "my-worker" } },
  ]);
  expect(collector.logs.map(({ body }) => body)).toEqual(expect.arrayContaining(["greet begins", "greeting Ada", "greet ended: done"]));
  // The collector has the log, and standard error only has the output of tasks.
  expect(logged(worker)).toEqual([]);
});

it("may be one of several behind a load balancer, and may run in a supervised process with a fixed port", async () => {
  const { runtime } = await start(["--port", "0", "--no-handshake", "--slots", "2"]);
  expect((await runtime.execute("/greet", { name: "Ada" })).answer.result.output.text).toBe("Hello, Ada!");
  const { worker, runtime: first } = await start(["--port", String(await freePort()), "--isolate", "process"]);
  await first.handshake();
  await expect(first.execute("/crash")).rejects.toThrow();
  // After its supervisor has restarted it, it has the same address.
  await until(() => worker.stdout().split("\n").length === 3);
  await first.handshake();
  expect((await first.execute("/compute", { n: 2 })).answer.result.output).toEqual({ twice: 4 });
});

it.each([
  [["--port", "0", "--isolate", "process"], "--isolate process needs a --port of its own"],
  [["--port", "0", "--conductor", "http://127.0.0.1:1"], "--conductor and --port name two servers"],
  [["--port", "0", "--on", "http://127.0.0.1:1"], "--on and --port name two servers"],
  [["--port", "0", "--heartbeat", "1s"], "--heartbeat is not for Stepflow over HTTP"],
  [["--no-handshake"], "--no-handshake is not for workflow-graph"],
  [["--port", "99999"], "Expected a port from 0 to 65535"],
])("refuses %j, with what to do", async (args, text) => {
  const { code, stderr, stdout } = await longshore(["work", "worker.mjs", ...args]);
  expect(code).toBe(2);
  expect(stderr).toContain(text);
  expect(stdout).toBe("");
});
