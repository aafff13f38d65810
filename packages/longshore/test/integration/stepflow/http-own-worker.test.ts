// Both halves over HTTP: our server calls our worker.

import { describe, expect, it, onTestFinished } from "vitest";
import { TerminalError } from "../../../src/core/errors.ts";
import type { Json } from "../../../src/core/json/json.ts";
import { type Task, task } from "../../../src/core/task.ts";
import { parseConfig } from "../../../src/protocols/stepflow/server/config/parse.ts";
import { type StepflowHttpOptions, stepflowHttp, stepflowTask } from "../../../src/protocols/stepflow/worker/index.ts";
import { work } from "../../../src/work.ts";
import { pluginWorld, type WorldOptions } from "../../support/stepflow-plugins.ts";
import { oneStep, startStepflow } from "../../support/stepflow-server.ts";
import { deferred } from "../../support/until.ts";

async function setup(options: WorldOptions & { http?: StepflowHttpOptions } = {}) {
  const begun = deferred<AbortSignal>();
  const tasks = [
    task("echo", (input: { n: number }) => input),
    task("fail", () => {
      throw new Error("try again");
    }),
    task("refuse", () => {
      throw new TerminalError("never");
    }),
    task("blob", async (input: { data: string }, context) => {
      const runtime = stepflowTask(context);
      const id = await runtime.putBlob(input);
      return { id, same: await runtime.getBlob(id) };
    }),
    task("sub", async (_input, context) => stepflowTask(context).submitRun({ flowId: "f", input: [1, 2], wait: true })),
    task("wait", (_input, context) => {
      begun.resolve(context.signal);
      return new Promise((_resolve, reject) => context.signal.addEventListener("abort", () => reject(context.signal.reason)));
    }),
  ];
  const { url } = await working(tasks, options.http);
  const text = `plugins: { p: { type: stepflow, url: "${url}" } }\nroutes: { "/": [ { plugin: p } ] }\n`;
  return { world: await pluginWorld(text, options), begun: begun.promise };
}

async function working(tasks: Task[], options: StepflowHttpOptions = {}) {
  const transport = stepflowHttp({ announce: false, env: {}, ...options });
  const handle = await work({ tasks, on: transport, signals: false, logger: () => {} });
  onTestFinished(() => handle.stop({ force: true }));
  return transport;
}

describe("our own worker", () => {
  it("is called by the names that it lists, and responds", async () => {
    const { world } = await setup();
    expect(await world.run("/echo", { n: 7 })).toEqual({ output: { n: 7 } });
    const kept = await world.engine.documents.document("stepflow-components", "stepflow-http:p");
    const paths = JSON.parse(kept?.body ?? "{}").components.map(({ path }: { path: string }) => path);
    expect(paths.sort()).toEqual(["/blob", "/echo", "/fail", "/refuse", "/sub", "/wait"]);
  });

  it("fails steps with codes that decide about retries", async () => {
    const { world } = await setup();
    expect(await world.run("/fail")).toMatchObject({ error: { code: "COMPONENT_FAILED" }, task: { fault: "failed" } });
    expect(await world.run("/refuse")).toMatchObject({ task: { fault: "final" } });
    expect(await world.run("/nosuch")).toMatchObject({ error: { code: "COMPONENT_NOT_FOUND" } });
  });

  it("[S-HTTP-30] stores blobs and starts runs through the open call", async () => {
    const { world } = await setup({ url: null });
    const stored = { id: expect.stringMatching(/^[0-9a-f]{64}$/), same: { data: "x" } };
    expect(await world.run("/blob", { data: "x" })).toEqual({ output: stored });
    expect([...world.blobs.values()]).toEqual([{ data: { data: "x" }, type: "data" }]);
    expect(await world.run("/sub")).toMatchObject({ output: { runId: "run-1", status: "completed" } });
    expect(world.submitted).toMatchObject([{ flowId: "f", inputs: [1, 2], wait: true, subflowKey: expect.any(String) }]);
  });

  it("stores blobs on a server that requires tokens, without its own token", async () => {
    const keep = task("keep", async (input: Json) => stepflowTask().getBlob(await stepflowTask().putBlob(input)));
    const { url } = await working([keep]);
    const text = `plugins: { p: { type: stepflow, url: "${url}" } }\nroutes: { "/": [ { plugin: p } ] }\n`;
    const { config } = parseConfig(text, { file: "stepflow-config.yml", environment: {} });
    const { call } = await startStepflow({ config, tokens: ["operator:operator-secret-0123456789"] });
    const headers = { authorization: "Bearer operator-secret-0123456789" };
    const { body } = await call("POST", "/flows", { flow: oneStep("/keep", { n: 1 }) }, headers);
    const ran = await call("POST", "/runs", { flowId: body.flowId, input: [{}], wait: true }, headers);
    expect(ran.body.results).toMatchObject([{ output: { n: 1 } }]);
  });

  it("is notified of a cancelled step by the end of its call", async () => {
    const { world, begun } = await setup();
    await world.post("t", "/wait", {});
    const signal = await begun;
    const aborted = deferred<void>();
    signal.addEventListener("abort", () => aborted.resolve());
    await world.engine.board.cancel("t");
    await aborted.promise;
  });
});
