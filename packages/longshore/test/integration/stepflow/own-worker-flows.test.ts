// Both halves together: flows over our server's API, whose steps our workers do over each transport.

import { describe, expect, it, onTestFinished } from "vitest";
import { task } from "../../../src/core/task.ts";
import { parseConfig } from "../../../src/protocols/stepflow/server/config/parse.ts";
import { stepflowGrpc, stepflowHttp, stepflowNats, stepflowTask } from "../../../src/protocols/stepflow/worker/index.ts";
import type { Transport } from "../../../src/runner/transport.ts";
import { work } from "../../../src/work.ts";
import { natsMissing, TestNats } from "../../support/nats.ts";
import { oneStep, type StepflowServer, startStepflow } from "../../support/stepflow-server.ts";

class IntentionalError extends Error {}

const tasks = [
  task("echo", (input: object) => ({ ...input, processed: true })),
  task("fail", ({ kind }: { kind: string }) => {
    if (kind === "none") return { result: "success" };
    throw kind === "own" ? new IntentionalError(`Intentional error: ${kind}`) : new RangeError(`Intentional error: ${kind}`);
  }),
  task("upper", ({ text }: { text: string }) => ({ text: text.toUpperCase() })),
  task("reverse", ({ text }: { text: string }) => ({ text: [...text].reverse().join("") })),
  task("blob", async (input: { data: object }, context) => {
    const runtime = stepflowTask(context);
    const id = await runtime.putBlob(input.data);
    return { id, matches: JSON.stringify(await runtime.getBlob(id)) === JSON.stringify(input.data) };
  }),
  task("sub", async ({ flow, items }: { flow: object; items: unknown[] }, context) => {
    const { runId, status, results } = await stepflowTask(context).submitRun({ flow, input: items, wait: true });
    return { runId, status, outputs: results.map(({ output }) => output) };
  }),
];

interface Way {
  readonly name: string;
  readonly skip?: string | undefined;
  /** A server whose route `/w` leads to a worker with these tasks. */
  start(): Promise<StepflowServer>;
}

const startWorker = async (on: Transport): Promise<void> => {
  const handle = await work({ tasks, on, signals: false, logger: () => {} });
  onTestFinished(() => handle.stop({ force: true }));
};

const serverWith = (plugin: object): Promise<StepflowServer> => {
  const text = JSON.stringify({ plugins: { w: plugin }, routes: { "/w": [{ plugin: "w" }] } });
  return startStepflow({ config: parseConfig(text, { file: "stepflow-config.yml", environment: {} }).config });
};

const ways: readonly Way[] = [
  {
    name: "gRPC",
    async start() {
      const server = await serverWith({ type: "grpc", queueName: "w" });
      await startWorker(stepflowGrpc(server.url, { queue: "w", env: {} }));
      return server;
    },
  },
  {
    name: "NATS",
    skip: natsMissing,
    async start() {
      const nats = await TestNats.start();
      const server = await serverWith({ type: "nats", url: nats.url, stream: "W" });
      await startWorker(stepflowNats(nats.url, { stream: "W", env: {} }));
      return server;
    },
  },
  {
    name: "HTTP",
    async start() {
      const transport = stepflowHttp({ announce: false, env: {} });
      await startWorker(transport);
      return serverWith({ type: "stepflow", url: transport.url });
    },
  },
];

describe.each(ways)("flows on our worker over $name", ({ skip, start }) => {
  const server = (context: { skip(note: string): void }): Promise<StepflowServer> => {
    if (skip) context.skip(`needs ${skip}`);
    return start();
  };
  const whole = { $input: "$" };

  it("[S9-15] return their input", async (context) => {
    const { run } = await server(context);
    const messages = [{ message: "Hello" }, { message: "Grüße" }];
    const { results } = await run(oneStep("/w/echo", whole), messages);
    expect(results).toMatchObject(messages.map((message) => ({ status: 2, output: { ...message, processed: true } })));
  });

  it("[S9-16] fail with the exception of their component, of any class", async (context) => {
    const { run } = await server(context);
    const { results } = await run(oneStep("/w/fail", whole), [{ kind: "own" }, { kind: "other" }, { kind: "none" }]);
    expect(results).toMatchObject([
      { status: 3, errorCode: 3, errorMessage: expect.stringContaining("Intentional error: own") },
      { status: 3, errorCode: 3, errorMessage: expect.stringContaining("Intentional error: other") },
      { status: 2, output: { result: "success" } },
    ]);
  });

  it("[S9-17] pass outputs from step to step", async (context) => {
    const { run } = await server(context);
    const steps = [
      { id: "upper", component: "/w/upper", input: whole },
      { id: "reverse", component: "/w/reverse", input: { $step: "upper" } },
      { id: "echo", component: "/w/echo", input: { $step: "reverse" } },
    ];
    const output = { upper: { $step: "upper", path: "text" }, last: { $step: "echo" } };
    const { results } = await run({ name: "pipeline", steps, output }, [{ text: "hello" }]);
    expect(results).toMatchObject([{ output: { upper: "HELLO", last: { text: "OLLEH", processed: true } } }]);
  });

  it("[S9-19, S-QUEUE-19] start a run from inside a component, and wait for its results", async (context) => {
    const { run, call } = await server(context);
    const flow = oneStep("/w/upper", whole);
    const { summary, results } = await run(oneStep("/w/sub", whole), [{ flow, items: [{ text: "a" }, { text: "b" }] }]);
    expect(results).toMatchObject([{ status: 2, output: { status: "completed", outputs: [{ text: "A" }, { text: "B" }] } }]);
    const inner = (await call("GET", `/runs/${results[0].output.runId}`)).body.summary;
    expect(inner).toMatchObject({ status: 2, items: { total: 2, completed: 2 }, rootRunId: summary.runId });
  });

  it("[S9-18] store a blob from inside a component, and read it again", async (context) => {
    const { run } = await server(context);
    const { results } = await run(oneStep("/w/blob", whole), [{ data: { k: [1, { deep: null }] } }]);
    expect(results).toMatchObject([{ output: { id: expect.stringMatching(/^[0-9a-f]{64}$/), matches: true } }]);
  });
});
