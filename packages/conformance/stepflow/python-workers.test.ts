// The Python workers of every release, unchanged, on our server, also when the worker, the server or the broker between them is killed.
import { describe, expect, it } from "vitest";
import { openMarks } from "../src/marks.ts";
import { openStage, type Stage } from "../src/stage.ts";
import { type Release, releaseNames, releases } from "./fetch.ts";
import { startNats } from "./nats.ts";
import { operatorOf } from "./operator.ts";
import { QUEUE, startStepflowServer } from "./our-server.ts";
import {
  allMarked,
  cancelled,
  type Expected,
  everyEnding,
  everyItemOnce,
  functions,
  largeInput,
  someBegun,
  startMarks,
} from "./scenarios.ts";
import { pythonGrpcWorker, pythonHttpWorker, pythonNatsWorker } from "./workers.ts";

/** HTTP workers have one code for all exceptions. Queue workers have no code for a missing component. */
const called: Expected = { failed: 3, unavailable: 3, missing: { code: 6, text: "nosuch" }, retries: true, prefixed: true };
const pulling: Expected = { failed: 3, unavailable: 7, missing: { code: 3, text: "nosuch" }, retries: true, prefixed: true };

const MANY = 1_000;
/** Enough items that the kill happens while some are still open. */
const SOME = 100;

// The tests mostly wait, so all run at the same time.
describe.concurrent("a Python worker that is called by our server", () => {
  it.for(["0.9", "0.11"] as const)("%s, called: does everything", async (release, context) => {
    const stage = openStage(context);
    const worker = await pythonHttpWorker(stage, release);
    const { url } = await startStepflowServer(stage, { type: "stepflow", url: worker.url });
    await everyEnding(operatorOf(url, "0.13"), called);
  });

  it.for(["0.9", "0.11"] as const)("%s, called: executes every item once", async (release, context) => {
    const stage = openStage(context);
    const marks = openMarks(stage);
    const worker = await pythonHttpWorker(stage, release, { marks: marks.file });
    const { url } = await startStepflowServer(stage, { type: "stepflow", url: worker.url });
    await everyItemOnce(operatorOf(url, "0.13"), marks, MANY);
  });

  it.for(["0.9", "0.11"] as const)("%s, called: no item is lost when it is killed in the middle", async (release, context) => {
    const stage = openStage(context);
    const marks = openMarks(stage);
    const first = await pythonHttpWorker(stage, release, { marks: marks.file });
    const { url } = await startStepflowServer(stage, { type: "stepflow", url: first.url });
    const operator = operatorOf(url, "0.13");
    const run = await startMarks(operator, SOME, 200);
    await someBegun(marks, SOME / 4);
    first.child.signal("SIGKILL");
    await first.child.ended;
    await pythonHttpWorker(stage, release, { marks: marks.file, port: Number(new URL(first.url).port) });
    await allMarked(operator, run, marks, SOME);
  });
});

describe.concurrent("user functions, which a Python worker receives as blobs,", () => {
  const serve = async (stage: Stage, release: Release) => {
    if (releases[release].speaks === "http") {
      const worker = await pythonHttpWorker(stage, release);
      return operatorOf((await startStepflowServer(stage, { type: "stepflow", url: worker.url })).url, "0.13");
    }
    const { url, address } = await startStepflowServer(stage, QUEUE);
    pythonGrpcWorker(stage, release, address);
    const operator = operatorOf(url, "0.13");
    await operator.knows("udf");
    return operator;
  };

  it.for(releaseNames)("[S9-20, S9-21] %s: run, and their exceptions become failures", async (release, context) => {
    await functions(await serve(openStage(context), release));
  });
});

describe.concurrent("a Python worker that pulls from our server", () => {
  it.for(["0.12", "0.13"] as const)("%s, pulling: does everything", async (release, context) => {
    const stage = openStage(context);
    const { url, address } = await startStepflowServer(stage, QUEUE);
    pythonGrpcWorker(stage, release, address);
    const operator = operatorOf(url, "0.13");
    await operator.knows("echo");
    await everyEnding(operator, pulling);
  });

  it.for(["0.12", "0.13"] as const)("%s, pulling: survives an input that is too large for its gRPC", async (release, context) => {
    const stage = openStage(context);
    const { url, address } = await startStepflowServer(stage, QUEUE);
    const worker = pythonGrpcWorker(stage, release, address);
    const operator = operatorOf(url, "0.13");
    await operator.knows("echo");
    await largeInput(operator);
    expect(worker.hasEnded()).toBe(false);
  });

  it.for(["0.12", "0.13"] as const)("%s, pulling: survives the cancel of a run", async (release, context) => {
    const stage = openStage(context);
    const { url, address } = await startStepflowServer(stage, QUEUE);
    const worker = pythonGrpcWorker(stage, release, address);
    const operator = operatorOf(url, "0.13");
    await operator.knows("echo");
    await cancelled(operator, worker);
  });

  it.for(["0.12", "0.13"] as const)("%s, pulling: executes every item once", async (release, context) => {
    const stage = openStage(context);
    const marks = openMarks(stage);
    const { url, address } = await startStepflowServer(stage, QUEUE);
    for (let worker = 0; worker < 2; worker++) pythonGrpcWorker(stage, release, address, { marks: marks.file });
    const operator = operatorOf(url, "0.13");
    await operator.knows("echo");
    await everyItemOnce(operator, marks, MANY);
  });

  it.for(["0.12", "0.13"] as const)("[S9-30] %s, pulling: no item is lost when it is killed in the middle", async (release, context) => {
    const stage = openStage(context);
    const marks = openMarks(stage);
    const { url, address } = await startStepflowServer(stage, QUEUE);
    const first = pythonGrpcWorker(stage, release, address, { marks: marks.file });
    const operator = operatorOf(url, "0.13");
    await operator.knows("echo");
    const run = await startMarks(operator, SOME, 200);
    await someBegun(marks, SOME / 4);
    first.signal("SIGKILL");
    await first.ended;
    pythonGrpcWorker(stage, release, address, { marks: marks.file });
    await allMarked(operator, run, marks, SOME);
  });

  it.for(["0.12", "0.13"] as const)(
    "[S9-26, S9-33] %s, pulling: no item is lost when our server is killed in the middle",
    async (release, context) => {
      const stage = openStage(context);
      const marks = openMarks(stage);
      const first = await startStepflowServer(stage, QUEUE);
      const operator = operatorOf(first.url, "0.13");
      pythonGrpcWorker(stage, release, first.address, { marks: marks.file });
      await operator.knows("echo");
      const run = await startMarks(operator, SOME, 200);
      await someBegun(marks, SOME / 4);
      first.child.signal("SIGKILL");
      await first.child.ended;
      await startStepflowServer(stage, QUEUE, { data: first.data, port: Number(new URL(first.url).port) });
      await allMarked(operator, run, marks, SOME);
    },
  );
});

describe.concurrent("a Python worker that our server reaches by NATS", () => {
  it.for(["0.12", "0.13"] as const)("%s, by NATS: does everything", async (release, context) => {
    const stage = openStage(context);
    const { url: nats } = await startNats(stage);
    const { url, address } = await startStepflowServer(stage, { type: "nats", url: nats, stream: "STEPFLOW_TASKS" });
    pythonNatsWorker(stage, release, { nats, orchestrator: address });
    const operator = operatorOf(url, "0.13");
    await operator.knows("echo");
    await everyEnding(operator, pulling);
  });

  it("0.13, by NATS: no item is lost when NATS, the worker and our server are killed one after the other", async (context) => {
    const stage = openStage(context);
    const marks = openMarks(stage);
    const nats = await startNats(stage);
    const plugin = { type: "nats", url: nats.url, stream: "STEPFLOW_TASKS" };
    const server = await startStepflowServer(stage, plugin);
    const operator = operatorOf(server.url, "0.13");
    const start = () => pythonNatsWorker(stage, "0.13", { nats: nats.url, orchestrator: server.address }, { marks: marks.file });
    const worker = start();
    await operator.knows("echo");
    const run = await startMarks(operator, SOME, 200);

    await someBegun(marks, SOME / 4);
    nats.child.signal("SIGKILL");
    await nats.child.ended;
    await startNats(stage, { data: nats.data, port: nats.port });

    await someBegun(marks, SOME / 2);
    worker.signal("SIGKILL");
    await worker.ended;
    start();

    await someBegun(marks, (SOME * 3) / 4);
    server.child.signal("SIGKILL");
    await server.child.ended;
    await startStepflowServer(stage, plugin, { data: server.data, port: Number(new URL(server.url).port) });
    await allMarked(operator, run, marks, SOME);
  });
});
