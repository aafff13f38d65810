// Flows on a whole server: a configuration file, workers of several kinds, and the API of clients.

import { createHash } from "node:crypto";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it, onTestFinished } from "vitest";
import type { Json, JsonObject } from "../../../src/core/json/json.ts";
import { task } from "../../../src/core/task.ts";
import { stepflowHttp, stepflowTask } from "../../../src/protocols/stepflow/worker/index.ts";
import { serve } from "../../../src/server/server.ts";
import { work } from "../../../src/work.ts";
import { temporaryFolder } from "../../support/parts.ts";
import { flowServer, step } from "../../support/stepflow-flows.ts";
import type { Any } from "../../support/stepflow-runtime.ts";
import { scriptedWorker } from "../../support/stepflow-scripted-worker.ts";
import { untilElsewhere } from "../../support/until.ts";

async function setup(config: string) {
  const folder = temporaryFolder();
  const file = join(folder, "stepflow-config.yml");
  writeFileSync(file, config);
  const server = await serve({ ephemeral: true, port: 0, stepflow: { config: file }, logger: { level: "silent" } });
  onTestFinished(() => server.close());
  const call = async (method: string, path: string, body?: unknown): Promise<Any> => {
    const headers = { "content-type": "application/json" };
    const answer = await fetch(`${server.url}/api/v1${path}`, {
      method,
      headers,
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    return answer.json();
  };
  const store = async (flow: unknown): Promise<string> => (await call("POST", "/flows", { flow })).flowId;
  return {
    server,
    call,
    store,
    async run(flow: unknown, input: Json): Promise<Any> {
      return (await call("POST", "/runs", { flowId: await store(flow), input: [input], wait: true, timeoutSecs: 30 })).results[0];
    },
  };
}

/** An HTTP worker in this process. Tests only need its address. */
async function worker(shout: (text: string) => string = (text) => text.toUpperCase()) {
  const tasks = [
    task("process_data", ({ text }: { text: string }) => ({ text: shout(text) })),
    task("keep", async (input: Json, context) => ({ id: await stepflowTask(context).putBlob(input) })),
    task("nested", async ({ flow }: { flow: string }, context) =>
      stepflowTask(context).evaluate({ flowId: flow, input: { text: "deep" } }),
    ),
  ];
  const transport = stepflowHttp({ announce: false, env: {} });
  const handle = await work({ tasks, on: transport, signals: false, logger: () => {} });
  onTestFinished(() => handle.stop({ force: true }));
  return transport.url as string;
}

const built = (file: string) => JSON.stringify(new URL(`../../../dist/${file}`, import.meta.url).href);

/** A user's program, which gets all its settings from its environment. */
const queueWorker = `
import { task, work } from ${built("index.js")};
import { stepflowGrpc } from ${built("protocols/stepflow/worker/index.js")};
const where = task("where", () => ({ queue: process.env.STEPFLOW_QUEUE_NAME, transport: process.env.STEPFLOW_TRANSPORT }));
await work({ tasks: [where], on: stepflowGrpc() });
`;

const calledWorker = `
import { task, work } from ${built("index.js")};
import { stepflowHttp } from ${built("protocols/stepflow/worker/index.js")};
const where = task("where", () => ({ ppid: process.ppid }));
await work({ tasks: [where], on: stepflowHttp() });
`;

/** A program that records its start, and kills itself at a first attempt. */
const dyingWorker = (marks: string) => `
import { appendFileSync } from "node:fs";
import { task, work } from ${built("index.js")};
import { stepflowGrpc } from ${built("protocols/stepflow/worker/index.js")};
appendFileSync(${JSON.stringify(marks)}, "started\\n");
const die = task("die", (_input, { attempt }) => {
  if (attempt > 1) return { attempt };
  appendFileSync(${JSON.stringify(marks)}, "died\\n");
  process.kill(process.pid, "SIGKILL");
});
await work({ tasks: [die], on: stepflowGrpc() });
`;

const chain = (...components: string[]): JsonObject => ({
  name: "chain",
  steps: components.map((component, at) => step(`s${at}`, component, at === 0 ? undefined : `s${at - 1}`)),
  output: { $step: `s${components.length - 1}` },
});

const httpConfig = (url: string) => `plugins:
  mine: { type: stepflow, url: "${url}" }
  builtin: { type: builtin }
  ours: { type: longshore }
  mock:
    type: mock
    components:
      /greet:
        behaviors:
          { text: "HELLO" }: { outcome: success, result: { text: hello again } }
routes:
  "/my_worker/{*component}": [ { plugin: mine } ]
  "/builtin": [ { plugin: builtin } ]
  "/mock": [ { plugin: mock } ]
  "/": [ { plugin: ours } ]
`;

describe("a flow", () => {
  it("[S-HTTP-33] finds its worker by the route of its component's path", async () => {
    const other = await worker((text) => `${text}, other`);
    const { run } = await setup(
      httpConfig(await worker())
        .replace("plugins:\n", `plugins:\n  other: { type: stepflow, url: "${other}" }\n`)
        .replace("routes:\n", 'routes:\n  "/other_worker/{*component}": [ { plugin: other } ]\n'),
    );
    expect(await run(chain("/my_worker/process_data"), { text: "hello" })).toMatchObject({ status: 2, output: { text: "HELLO" } });
    expect(await run(chain("/other_worker/process_data"), { text: "hello" })).toMatchObject({ output: { text: "hello, other" } });
  });

  it("[S-OBS-06, S-OBS-07] sends run, flow and step to its worker with each call, but not before", async () => {
    const called = await scriptedWorker();
    const { run, store, call } = await setup(httpConfig(called.url));
    const flow = chain("/my_worker/echo", "/my_worker/echo");
    await run(flow, { a: 1 });
    const { runs } = await call("GET", "/runs");
    const place = { run_id: runs[0].runId, flow_id: await store(flow) };
    expect(called.received.map(({ message }) => [message.method, message.params.observability])).toEqual([
      ["initialize", undefined],
      ["initialized", undefined],
      ["components/list", undefined],
      ["components/execute", { ...place, step_id: "s0" }],
      ["components/execute", { ...place, step_id: "s1" }],
    ]);
  });

  it("runs on called workers, mock and built-in components, and workers of another protocol", async () => {
    const { run, server } = await setup(httpConfig(await worker()));
    const length = task("length", ({ text }: { text: string }) => ({ length: text.length }));
    const local = await work({ tasks: [length], on: server, signals: false, logger: () => {} });
    onTestFinished(() => local.stop({ force: true }));
    const flow = chain("/my_worker/process_data", "/mock/greet", "/builtin/noop", "/length");
    expect(await run(flow, { text: "hello" })).toMatchObject({ status: 2, output: { length: 11 } });
  });

  it("stores blobs and runs other flows from inside a called worker", async () => {
    const { run, store, call } = await setup(httpConfig(await worker()));
    const kept = await run(chain("/my_worker/keep"), { large: true });
    expect((await call("GET", `/blobs/${kept.output.id}`)).data).toEqual({ large: true });
    const inner = await store(chain("/my_worker/process_data"));
    expect(await run(chain("/my_worker/nested"), { flow: inner })).toMatchObject({ status: 2, output: { text: "DEEP" } });
  });

  it("[S-HTTP-26, S-HTTP-27, S-HTTP-28] stores data and definitions for a worker of the first dialect, which requests them over its open call", async () => {
    const blobs = { data: { large_result: "..." }, flow: { steps: [], output: { $input: "$" } } };
    const older = await scriptedWorker({
      script: ({ message, stream, event }) => {
        if (message.method !== "components/execute") return false;
        stream();
        for (const [blob_type, data] of Object.entries(blobs))
          event({ jsonrpc: "2.0", id: `put ${blob_type}`, method: "blobs/put", params: { data, blob_type } });
        return true;
      },
    });
    const { run, call } = await setup(httpConfig(older.url));
    const running = run(chain("/my_worker/keep"), {});
    const execution = () => older.received.find(({ message }) => message.method === "components/execute");
    const ids = [];
    for (const [blob_type, data] of Object.entries(blobs)) {
      const { blob_id } = (await older.answer(`put ${blob_type}`)).result;
      expect(blob_id).toBe(`sha256:${createHash("sha256").update(JSON.stringify(data)).digest("hex")}`);
      execution()?.event({ jsonrpc: "2.0", id: `get ${blob_type}`, method: "blobs/get", params: { blob_id } });
      expect((await older.answer(`get ${blob_type}`)).result).toEqual({ data, blob_type });
      expect(await call("GET", `/blobs/${blob_id}`)).toMatchObject({ data, blobType: blob_type });
      ids.push(blob_id);
    }
    execution()?.event({ jsonrpc: "2.0", id: execution()?.message.id, result: { output: ids } });
    expect(await running).toMatchObject({ status: 2, output: ids });
  });

  it("[S-QUEUE-04, S-QUEUE-08, S-QUEUE-18] is done by a worker that its gRPC plugin starts with the address to pull from", async () => {
    const program = join(temporaryFolder(), "worker.mjs");
    writeFileSync(program, queueWorker);
    const { run } = await setup(`plugins:
  python:
    type: grpc
    queueName: python
    command: ${JSON.stringify(process.execPath)}
    args: [${JSON.stringify(program)}]
routes:
  "/python/{*component}": [ { plugin: python } ]
`);
    expect(await run(chain("/python/where"), {})).toMatchObject({ status: 2, output: { queue: "python", transport: "grpc" } });
  });

  it("[S-HTTP-13] is done by a program that its plugin starts and finds by the port that it prints", async () => {
    const program = join(temporaryFolder(), "worker.mjs");
    writeFileSync(program, calledWorker);
    const plugin = { type: "stepflow", command: process.execPath, args: [program] };
    const { run } = await setup(JSON.stringify({ plugins: { p: plugin }, routes: { "/p": [{ plugin: "p" }] } }));
    const { status, output } = await run(chain("/p/where"), {});
    expect([status, output.ppid]).toEqual([2, process.pid]);
  });

  it("[S9-22] is done by the next process, as the second attempt, when its worker kills itself", async () => {
    const folder = temporaryFolder();
    const [program, marks, config] = ["worker.mjs", "marks", "stepflow-config.yml"].map((name) => join(folder, name)) as [
      string,
      string,
      string,
    ];
    writeFileSync(program, dyingWorker(marks));
    writeFileSync(marks, "");
    // Time passes in steps while processes start, so that no task waits too long in the queue.
    const plugin = { type: "grpc", queueName: "python", command: process.execPath, args: [program], queueTimeoutSecs: 3_600 };
    writeFileSync(config, JSON.stringify({ plugins: { python: plugin }, routes: { "/python": [{ plugin: "python" }] } }));
    const { clock, run, result } = await flowServer({ config });
    const runId = await run(chain("/python/die"), {});
    const marked = (mark: string) => readFileSync(marks, "utf8").split(mark).length - 1;
    await untilElsewhere(() => marked("died") === 1);
    // The hold ends after 5 s, the step is retried 1 s later, and the plugin starts another process.
    const startMs = clock.now();
    await untilElsewhere(async () => {
      await clock.advance(500);
      return clock.now() - startMs >= 7_000 && marked("started") === 2;
    });
    expect(await result(runId)).toMatchObject({ status: 2, output: { attempt: 2 } });
    expect(marked("died")).toBe(1);
  });

  it("fails when no route leads to its component, or its mock has no output", async () => {
    const { run } = await setup('plugins: { m: { type: mock } }\nroutes: { "/mock": [ { plugin: m } ] }\n');
    expect(await run(chain("/nowhere/x"), {})).toMatchObject({
      status: 3,
      errorMessage: expect.stringContaining("no route leads to '/nowhere/x'"),
    });
    expect(await run(chain("/mock/x"), {})).toMatchObject({ status: 3, errorCode: 5 });
  });
});

describe("the list of components", () => {
  it("[S9-59] has the components of every plugin, as its worker lists them, and names plugins that did not respond", async () => {
    const { call } = await setup(
      `${httpConfig(await worker())}  "/queue": [ { plugin: silent } ]\n`.replace(
        "plugins:\n",
        "plugins:\n  silent: { type: grpc, queueName: silent }\n",
      ),
    );
    const { components, failedPlugins, complete } = await call("GET", "/components?excludeSchemas=true");
    const of = (plugin: string) => components.flatMap((each: Any) => (each.plugin === plugin ? [each.path] : []));
    expect(of("mine")).toEqual(["/keep", "/nested", "/process_data"]);
    expect(of("mock")).toEqual(["/greet"]);
    expect(of("builtin")).toContain("/noop");
    expect(complete).toBe(false);
    expect(failedPlugins).toEqual([{ plugin: "silent", error: expect.any(String) }]);
  });
});
