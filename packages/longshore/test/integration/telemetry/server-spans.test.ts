// Spans of a real server, as a collector receives them.

import { expect, it, onTestFinished } from "vitest";
import { TerminalError } from "../../../src/core/errors.ts";
import { task } from "../../../src/core/task.ts";
import { graph } from "../../../src/graph.ts";
import { stepflowGrpc } from "../../../src/protocols/stepflow/worker/index.ts";
import { workflowGraph } from "../../../src/protocols/workflow-graph/worker/index.ts";
import type { Ref } from "../../../src/reference.ts";
import { type Server, serve } from "../../../src/server/index.ts";
import { telemetry } from "../../../src/telemetry/index.ts";
import { work } from "../../../src/work.ts";
import { httpCollector } from "../../support/collector.ts";

const pack = task("pack", async (order: string) => order);
const refuse = task("refuse", () => {
  throw new TerminalError("out of stock");
});

async function setup() {
  const collector = await httpCollector();
  const spansTo = (service: string) => telemetry({ endpoint: collector.endpoint, protocol: "http/json", service, logs: [], env: {} });
  const server = await serve({ ephemeral: true, port: 0, logger: { level: "silent" }, telemetry: await spansTo("server") });
  onTestFinished(() => server.close());
  return { collector, server, spansTo };
}

/** Ends both, which sends the remaining spans, and returns the spans by name. */
async function ended(server: Server, worker: { stop(): Promise<unknown> }, { spans }: Awaited<ReturnType<typeof httpCollector>>) {
  await worker.stop();
  await server.close();
  return new Map(spans.map((span) => [span.name, span]));
}

it.each([
  ["in the same process", "task.execute", (server: Server) => server],
  ["over HTTP", "task.execute", (server: Server) => workflowGraph(server.url as string)],
  ["of Stepflow over gRPC", "component.execute", (server: Server) => stepflowGrpc(new URL(server.url as string).host)],
])("a run, its step, the attempt and the span of a worker %s are one trace", async (_where, executed, transportTo) => {
  const { collector, server, spansTo } = await setup();
  const worker = await work({ tasks: [pack], on: transportTo(server), telemetry: await spansTo("worker") });
  const { id } = await server.start(
    graph("shipping", (g, order: Ref<string>) => g.step(pack, order)),
    "one",
  );
  await server.result(id);
  const spans = await ended(server, worker, collector);
  expect([...spans.keys()].sort()).toEqual(["attempt pack", "run shipping", "step pack", executed].sort());
  const [run, step, attempt, execution] = ["run shipping", "step pack", "attempt pack", executed].map((name) => spans.get(name));
  expect(run?.parentSpanId).toBe("");
  expect([step?.parentSpanId, attempt?.parentSpanId, execution?.parentSpanId]).toEqual([run?.spanId, step?.spanId, attempt?.spanId]);
  expect(new Set([...spans.values()].map(({ traceId }) => traceId)).size).toBe(1);
  expect(run?.attributes).toMatchObject({ "longshore.run_id": id, "longshore.workflow": "shipping", "longshore.state": "succeeded" });
  expect(attempt?.attributes).toMatchObject({ "longshore.task": "pack", "longshore.attempt": 1, "longshore.state": "done" });
  expect([run?.resource["service.name"], execution?.resource["service.name"]]).toEqual(["server", "worker"]);
  expect((run?.endNs ?? 0n) >= (attempt?.endNs ?? 0n)).toBe(true);
});

it("spans of failures have the error", async () => {
  const { collector, server } = await setup();
  const worker = await work({ tasks: [refuse], on: server });
  const { id } = await server.start(
    graph("shipping", (g) => g.step(refuse, undefined)),
    null,
  );
  await server.result(id);
  const spans = await ended(server, worker, collector);
  for (const name of ["attempt refuse", "step refuse", "run shipping"])
    expect(spans.get(name)?.status).toMatchObject({ code: 2, message: expect.stringContaining("out of stock") });
});

it("a long error is on a span with its head and tail", async () => {
  const { collector, server } = await setup();
  const fail = task("fail", () => {
    throw new TerminalError(`first ${"x".repeat(16_000)} last`);
  });
  const worker = await work({ tasks: [fail], on: server });
  const { id } = await server.start(
    graph("shipping", (g) => g.step(fail, undefined)),
    null,
  );
  await server.result(id);
  const spans = await ended(server, worker, collector);
  for (const name of ["attempt fail", "step fail"]) {
    const message = spans.get(name)?.status.message ?? "";
    expect(message).toContain("first");
    expect(message).toContain("last");
    expect(message.length).toBeLessThanOrEqual(1_024);
  }
});

it("telemetry without an endpoint is refused", async () => {
  const without = await telemetry({ logs: [], env: {} });
  await expect(serve({ ephemeral: true, port: null, telemetry: without })).rejects.toMatchObject({
    code: "LONGSHORE_BAD_CONFIG",
    message: expect.stringContaining("expected telemetry() with an endpoint"),
  });
});
