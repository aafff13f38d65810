// Spans over OpenTelemetry's API, with its real SDK configured as in a program.

import * as api from "@opentelemetry/api";
import { AsyncLocalStorageContextManager } from "@opentelemetry/context-async-hooks";
import { BasicTracerProvider, InMemorySpanExporter, SimpleSpanProcessor } from "@opentelemetry/sdk-trace-base";
import { expect, it, onTestFinished } from "vitest";
import { task } from "../../../src/core/task.ts";
import { loadApi } from "../../../src/telemetry/api-tracer.ts";
import { telemetry } from "../../../src/telemetry/index.ts";
import { setup } from "../../support/stepflow-runtime.ts";

const observability = { trace_id: "a1b2c3d4e5f67890a1b2c3d4e5f67890", span_id: "1234567890abcdef", run_id: "r1", step_id: "s1" };

function sdk() {
  const exporter = new InMemorySpanExporter();
  const provider = new BasicTracerProvider({ spanProcessors: [new SimpleSpanProcessor(exporter)] });
  api.context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable());
  api.trace.setGlobalTracerProvider(provider);
  onTestFinished(() => {
    api.trace.disable();
    api.context.disable();
  });
  return exporter;
}

const traced = task("traced", async (_input: unknown, ctx) => {
  await new Promise((resolve) => setImmediate(resolve));
  // The same as an instrumentation of the program does.
  api.trace.getTracer("mine").startSpan("inner").end();
  return { active: api.trace.getActiveSpan()?.spanContext().spanId, ctx: ctx.trace?.spanId };
});
const fails = task("fails", () => {
  throw new RangeError("too far");
});

it.each([
  ["the module that is handed over", api],
  ["the one that is installed", true],
] as const)("[S-OBS-08, S-OBS-09] spans go through %s, and the handler's own lie below its span", async (_name, given) => {
  const exporter = sdk();
  await using s = await setup({ tasks: [traced, fails], work: { telemetry: await telemetry({ api: given, logs: [], env: {} }) } });
  const { answer } = await s.runtime.execute("/traced", {}, { observability });
  await s.runtime.execute("/fails", {}, { observability });
  const [inner, execution, failed] = exporter.getFinishedSpans();
  expect(execution).toMatchObject({ name: "component.execute", kind: api.SpanKind.SERVER });
  expect(execution?.spanContext().traceId).toBe(observability.trace_id);
  expect(execution?.parentSpanContext).toMatchObject({ spanId: observability.span_id, isRemote: true });
  expect(execution?.attributes).toMatchObject({ "stepflow.component": "/traced", "stepflow.run_id": "r1", "stepflow.step_id": "s1" });
  expect(inner).toMatchObject({ name: "inner", parentSpanContext: { spanId: execution?.spanContext().spanId } });
  expect(answer.result.output).toEqual({ active: execution?.spanContext().spanId, ctx: execution?.spanContext().spanId });
  expect(failed).toMatchObject({ status: { code: api.SpanStatusCode.ERROR, message: "too far" }, events: [{ name: "exception" }] });
});

it("when it is not installed, the error names the package and the install command", async () => {
  const missing = loadApi(() => import("@opentelemetry/absent" as string));
  await expect(missing).rejects.toMatchObject({
    code: "LONGSHORE_BAD_CONFIG",
    message: expect.stringContaining("npm install @opentelemetry/api"),
  });
});
