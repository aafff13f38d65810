// What a worker sends to its telemetry. The test is the other side of the transport.

import { AsyncLocalStorage } from "node:async_hooks";
import { expect, it } from "vitest";
import { until } from "../../test/support/until.ts";
import { type Task, task } from "../core/task.ts";
import type { SpanIds } from "../core/trace.ts";
import { Loopback } from "../testing/loopback.ts";
import { work } from "../work.ts";
import type { Told } from "./events.ts";
import type { Notice } from "./notices.ts";
import type { SpanEnd, Telemetry, TracedWork } from "./telemetry.ts";

const parent: SpanIds = { traceId: "a".repeat(32), spanId: "b".repeat(16) };
const own: SpanIds = { traceId: parent.traceId, spanId: "c".repeat(16) };
const active = new AsyncLocalStorage<SpanIds>();

async function setup(tasks: Task[], traced = true) {
  const begun: TracedWork[] = [];
  const ended: SpanEnd[] = [];
  const notices: Notice[] = [];
  const logged: unknown[] = [];
  let closed = 0;
  const telemetry: Telemetry = {
    ...(traced
      ? {
          tracer: {
            begin: (about) => {
              begun.push(about);
              return { ids: own, run: (fn) => active.run(own, fn), end: (end) => void ended.push(end) };
            },
          },
        }
      : {}),
    logger: (notice) => void notices.push(notice),
    attach: (events) =>
      events.watch("logged", ({ task: name, entry, stream, trace, fields }) => void logged.push({ name, entry, stream, trace, fields })),
    close: async () => void closed++,
  };
  const loop = new Loopback();
  const worker = await work({ tasks, on: loop, signals: false, telemetry });
  const stop = () => worker.stop({ force: true });
  return { loop, worker, begun, ended, notices, logged, stop, closed: () => closed, [Symbol.asyncDispose]: stop };
}

const look = task("look", async (_input: unknown, ctx) => {
  await new Promise((resolve) => setImmediate(resolve));
  ctx.log("a line");
  ctx.log({ rows: 3 }, "stderr");
  return { ctx: ctx.trace ?? null, active: active.getStore() ?? null };
});

it("an execution is a span below its caller's span; the handler, the transport and the events have it", async () => {
  await using s = await setup([look]);
  const told: Told<"taskEnded">[] = [];
  s.worker.on("taskEnded", (event) => void told.push(event));
  const controls: (SpanIds | undefined)[] = [];
  const trace = { parent, name: "component.execute", attributes: { "stepflow.component": "/look" }, fields: { flow_id: "f1" } };
  const outcome = await s.loop.run("look", {}, { trace, attempt: 2, begin: (control) => void controls.push(control.trace) });
  expect(outcome).toEqual({ kind: "done", output: { ctx: own, active: own } });
  expect(controls).toEqual([own]);
  expect(s.begun).toMatchObject([{ transport: "loopback", attempt: 2, ids: { runId: "run", stepId: "look" }, trace }]);
  expect(s.ended).toEqual([{ task: "look" }]);
  expect(s.logged).toEqual([
    { name: "look", entry: "a line", stream: "stdout", trace: own, fields: { flow_id: "f1" } },
    { name: "look", entry: { rows: 3 }, stream: "stderr", trace: own, fields: { flow_id: "f1" } },
  ]);
  await until(() => told.length > 0);
  expect(told).toMatchObject([{ trace: own, fields: { flow_id: "f1" } }]);
});

it("without a tracer the caller's span is passed on, and without a caller there is none", async () => {
  await using s = await setup([look], false);
  const controls: (SpanIds | undefined)[] = [];
  const outcome = await s.loop.run("look", {}, { trace: { parent }, begin: (control) => void controls.push(control.trace) });
  expect(outcome).toMatchObject({ output: { ctx: parent, active: null } });
  expect(controls).toEqual([parent]);
  expect(await s.loop.run("look")).toMatchObject({ output: { ctx: null, active: null } });
});

it("a span ends with the error of the handler, or with the error that there is no handler", async () => {
  const fails = task("fails", () => {
    throw new RangeError("too far");
  });
  await using s = await setup([fails]);
  await s.loop.run("fails");
  await s.loop.run("nobody");
  expect(s.ended).toMatchObject([
    { task: "fails", error: { name: "RangeError", message: "too far" } },
    { task: "(not resolved)", error: { code: "LONGSHORE_NO_HANDLER" } },
  ]);
});

it("notices are sent to its logger, and it is closed once, after the worker", async () => {
  const s = await setup([look]);
  s.loop.host.notice({ level: "info", message: "hello" });
  expect(s.notices).toEqual([{ level: "info", message: "hello" }]);
  expect(s.closed()).toBe(0);
  await Promise.all([s.stop(), s.stop()]);
  expect(s.closed()).toBe(1);
});
