// Large values, and calls inside of side effects, in durable functions of a worker over HTTP.

import { expect, it, onTestFinished } from "vitest";
import { StepError, task, work, workflow } from "../../index.ts";
import { workflowGraph } from "../../protocols/workflow-graph/worker/index.ts";
import { serve } from "../../server/index.ts";
import { replay } from "./check.ts";
import type { FunctionScope } from "./scope.ts";
import { tooLarge } from "./value-limit.ts";

const size = task("size", async (text: string) => text.length);

async function world(body: (w: FunctionScope) => Promise<unknown>) {
  const server = await serve({ ephemeral: true, port: 0, logger: { level: "silent" } });
  onTestFinished(() => server.close(0));
  const made = workflow("it", body);
  await server.define(made);
  const worker = await work({ tasks: [size], workflows: [made], on: workflowGraph(server.url as string), logger: false, signals: false });
  onTestFinished(() => worker.stop({ force: true }));
  const run = await server.start(made, null);
  const journal = async () => (await fetch(`${server.url}/api/longshore/v1/runs/${run.id}/journal`)).json() as never;
  return { made, run, journal };
}

it("an input up to the limit works, and a larger one throws a StepError that names the limit, also in a replay", async () => {
  const { made, run, journal } = await world(async (w) => {
    const fits = await w.step(size, "x".repeat(1_900_000));
    const error = await w.step(size, "x".repeat(2_000_001)).catch((thrown: unknown) => thrown);
    await w.sleep("1ms");
    const local = await w.local("big", () => "x".repeat(2_500_000)).catch((thrown: unknown) => thrown);
    return { fits, errors: [error, local].map((one) => (one instanceof StepError ? one.message : one)) };
  });
  expect(await run.result()).toEqual({
    fits: 1_900_000,
    errors: [
      "step size-2: the input of step size has more than 2000000 bytes as JSON, over this transport at most 2000000 bytes: store it elsewhere, and pass on where.",
      expect.stringMatching(/^side effect big: the result of side effect big has more than 2000000 bytes as JSON/),
    ],
  });
  expect(await replay(await journal(), made)).toEqual({ state: "done", commands: 4 });
});

it.each([
  ["at once", async (w: FunctionScope) => w.step(size, "a")],
  ["behind a promise", async (w: FunctionScope) => Promise.resolve().then(() => w.step(size, "a"))],
  ["behind a timer", async (w: FunctionScope) => new Promise((resolve) => setTimeout(resolve, 1)).then(() => w.step(size, "a"))],
])("a command inside of a side effect, asked for %s, is an error that names both", async (_when, inside) => {
  const { run } = await world(async (w) => {
    const [one, other] = await Promise.allSettled([w.local("look", () => inside(w)), w.step(size, "abc")]);
    return [one.status === "rejected" ? (one.reason as Error).message : one, other];
  });
  expect(await run.result()).toEqual([
    "side effect look: The side effect look asks for step size, which it cannot wait for: call w outside of w.local(), and pass its results in.",
    { status: "fulfilled", value: 3 },
  ]);
});

it("sizes are those of the JSON text in bytes", () => {
  const limit = { bytes: 100, values: 5 };
  expect(tooLarge("it", "x".repeat(98), limit)).toBeUndefined();
  expect(tooLarge("it", "x".repeat(99), limit)).toContain("has more than 100 bytes as JSON");
  expect(tooLarge("it", "ä".repeat(50), limit)).toContain("has 102 bytes as JSON, over this transport at most 100 bytes");
  expect(tooLarge("it", [1, 2, 3, 4], limit)).toBeUndefined();
  expect(tooLarge("it", [1, 2, 3, 4, 5], limit)).toContain("has more than 5 values as JSON");
  expect(tooLarge("it", "x".repeat(1_000), undefined)).toBeUndefined();
});
