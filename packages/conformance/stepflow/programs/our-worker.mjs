// The same components as in worker.py, as a user of Longshore writes them. TRANSPORT selects how the worker is reached.
import { appendFileSync } from "node:fs";
import { setTimeout as pause } from "node:timers/promises";
import { task, work } from "longshore";
import { stepflowGrpc, stepflowHttp, stepflowNats, stepflowTask } from "longshore/stepflow";

const marks = process.env.MARKS_FILE;

/** The error code that Node uses for a service that is not running. */
const unavailable = (message) => Object.assign(new Error(message), { code: "ECONNREFUSED" });

const tasks = [
  task("echo", (input) => input),
  task("upper", ({ text }) => ({ text: text.toUpperCase() })),
  task("reverse", ({ text }) => ({ text: [...text].reverse().join("") })),
  task("fail", ({ message }) => {
    throw new Error(message);
  }),
  task("flaky", ({ failures }, ctx) => {
    if (ctx.attempt <= failures) throw unavailable(`not yet, attempt ${ctx.attempt}`);
    return { attempt: ctx.attempt };
  }),
  task("whoami", () => {
    const { runId, stepId, flowId, attempt } = stepflowTask();
    return { run: runId, step: stepId, flow: flowId, attempt };
  }),
  task("blob", async ({ data }) => {
    const stepflow = stepflowTask();
    const blob_id = await stepflow.putBlob(data);
    return { blob_id, matches: JSON.stringify(sorted(await stepflow.getBlob(blob_id))) === JSON.stringify(sorted(data)) };
  }),
  task("read_blob", async ({ blob_id }) => ({ data: await stepflowTask().getBlob(blob_id) })),
  task("sub", async ({ flow_id, inputs }) => {
    const { results } = await stepflowTask().submitRun({ flowId: flow_id, input: inputs, wait: true });
    return { results: results.map(({ output }) => output) };
  }),
  task("slow", async ({ seconds }, ctx) => {
    console.error("slow begins");
    await pause(seconds * 1000, undefined, { signal: ctx.signal }).catch(() => {
      console.error(`slow aborted: ${ctx.signal.reason.code}`);
      throw ctx.signal.reason;
    });
    return { slept: seconds };
  }),
  task("mark", async ({ n, ms = 0 }) => {
    appendFileSync(marks, `${n}\n`);
    await pause(ms);
    return { n };
  }),
  task("die", (_input, ctx) => {
    if (ctx.attempt === 1) process.kill(process.pid, "SIGKILL");
    return { attempt: ctx.attempt };
  }),
  task("core", (input) => ({ path: stepflowTask().pathParams.path, ...input }), { path: "/core/{*path}" }),
];

/** Some orchestrators shuffle the keys of objects. */
function sorted(value) {
  if (Array.isArray(value)) return value.map(sorted);
  if (value === null || typeof value !== "object") return value;
  return Object.fromEntries(
    Object.keys(value)
      .sort()
      .map((key) => [key, sorted(value[key])]),
  );
}

const transports = {
  http: () => stepflowHttp({ port: Number(process.env.PORT ?? 0), handshake: process.env.HANDSHAKE !== "no" }),
  // Stepflow's environment variables have the address of the orchestrator.
  grpc: () => stepflowGrpc(),
  nats: () => stepflowNats(),
};

await work({ tasks, on: transports[process.env.TRANSPORT](), slots: 20 });
