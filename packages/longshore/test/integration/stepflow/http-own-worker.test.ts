// Both halves over HTTP: this server calls a worker of this package.

import { describe, expect, it, onTestFinished } from "vitest";
import { TerminalError } from "../../../src/errors.ts";
import { type StepflowHttpOptions, stepflowHttp, stepflowTask } from "../../../src/protocol/stepflow/index.ts";
import { task } from "../../../src/task.ts";
import { work } from "../../../src/work.ts";
import { pluginWorld, type WorldOptions } from "../../support/stepflow-plugins.ts";
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
  const transport = stepflowHttp({ announce: false, env: {}, ...options.http });
  const handle = await work({ tasks, on: transport, signals: false, logger: () => {} });
  onTestFinished(() => handle.stop({ force: true }));
  const text = `plugins: { p: { type: stepflow, url: "${transport.url}" } }\nroutes: { "/": [ { plugin: p } ] }\n`;
  return { world: await pluginWorld(text, options), begun: begun.promise };
}

describe("a worker of our own", () => {
  it("is called by the names that it lists, and answers", async () => {
    const { world } = await setup();
    expect(await world.run("/echo", { n: 7 })).toEqual({ output: { n: 7 } });
    const kept = await world.engine.documents.document("stepflow-components", "stepflow-http:p");
    const paths = JSON.parse(kept?.body ?? "{}").components.map(({ path }: { path: string }) => path);
    expect(paths.sort()).toEqual(["/blob", "/echo", "/fail", "/refuse", "/sub", "/wait"]);
  });

  it("fails steps with the codes that they are tried again by, or not", async () => {
    const { world } = await setup();
    expect(await world.run("/fail")).toMatchObject({ error: { code: "COMPONENT_FAILED" }, task: { fault: "failed" } });
    expect(await world.run("/refuse")).toMatchObject({ task: { fault: "final" } });
    expect(await world.run("/nosuch")).toMatchObject({ error: { code: "COMPONENT_NOT_FOUND" } });
  });

  it("[S-HTTP-30] keeps blobs and starts runs through the open call", async () => {
    const { world } = await setup({ url: null });
    const stored = { id: expect.stringMatching(/^[0-9a-f]{64}$/), same: { data: "x" } };
    expect(await world.run("/blob", { data: "x" })).toEqual({ output: stored });
    expect([...world.blobs.values()]).toEqual([{ data: { data: "x" }, type: "data" }]);
    expect(await world.run("/sub")).toMatchObject({ output: { runId: "run-1", status: "completed" } });
    expect(world.submitted).toMatchObject([{ flowId: "f", inputs: [1, 2], wait: true, subflowKey: expect.any(String) }]);
  });

  it("hears of a cancelled step by the end of its call", async () => {
    const { world, begun } = await setup();
    await world.post("t", "/wait", {});
    const signal = await begun;
    const aborted = deferred<void>();
    signal.addEventListener("abort", () => aborted.resolve());
    await world.engine.board.cancel("t");
    await aborted.promise;
  });
});
