// Our worker on the real orchestrator of every release.
import { describe, expect, it } from "vitest";
import { openMarks } from "../src/marks.ts";
import { openStage } from "../src/stage.ts";
import type { Release } from "./fetch.ts";
import { flowOf, type Operator, operatorOf } from "./operator.ts";
import { startOrchestrator } from "./orchestrator.ts";
import { allMarked, cancelled, type Expected, everyEnding, everyItemOnce, someBegun, startMarks } from "./scenarios.ts";
import { ourCommand, ourCommandLine, ourGrpcWorker, ourHttpWorker } from "./workers.ts";

/** The same errors as a Python worker's, except that a missing component has its own code when the protocol defines one. */
const expected: Record<Release, Expected> = {
  "0.9": { failed: 500, unavailable: 500, missing: { code: 500, text: "(-32001)" }, retries: false },
  "0.11": { failed: -32100, unavailable: -32102, missing: { code: -32001, text: "nosuch" }, retries: true },
  "0.12": { failed: 3, unavailable: 7, missing: { code: 6, text: "nosuch" }, retries: true },
  "0.13": { failed: 3, unavailable: 7, missing: { code: 9, text: "error routing component" }, retries: true },
};

const MANY = 1_000;
/** Enough items that the kill happens while some are still open. */
const SOME = 100;
/** A killed process costs retries. On a busy machine there must still be enough left. */
const PATIENT = { transportMaxRetries: 50, backoff: { type: "constant", delayMs: 500 } };

// The tests mostly wait, so all run at the same time.
describe.concurrent("our worker, called over HTTP, on the real orchestrator", () => {
  it.for(["0.9", "0.11"] as const)("%s, called: does everything", async (release, context) => {
    const stage = openStage(context);
    const worker = await ourHttpWorker(stage);
    const orchestrator = await startOrchestrator(stage, release, { plugin: { type: "stepflow", url: worker.url } });
    await everyEnding(operatorOf(orchestrator.url, release), expected[release]);
  });

  it.for(["0.9", "0.11"] as const)("[S9-22] %s, called: is started again by the orchestrator when it dies", async (release, context) => {
    const orchestrator = await startOrchestrator(openStage(context), release, { plugin: { type: "stepflow", ...ourCommand("http") } });
    await diesOnce(operatorOf(orchestrator.url, release));
  });

  it.for(["0.9", "0.11"] as const)("[S-HTTP-13] %s, called: is the command line that a plugin names", async (release, context) => {
    const plugin = { type: "stepflow", ...ourCommandLine(["--port", "0"]) };
    const orchestrator = await startOrchestrator(openStage(context), release, { plugin });
    const operator = operatorOf(orchestrator.url, release);
    expect(await operator.run(flowOf("/python/echo"), [{ n: 1 }])).toMatchObject({ status: "completed", items: [{ output: { n: 1 } }] });
    await diesOnce(operator);
  });

  it("0.11, called: executes every item once", async (context) => {
    const stage = openStage(context);
    const marks = openMarks(stage);
    const worker = await ourHttpWorker(stage, { marks: marks.file });
    const orchestrator = await startOrchestrator(stage, "0.11", { plugin: { type: "stepflow", url: worker.url } });
    await everyItemOnce(operatorOf(orchestrator.url, "0.11"), marks, MANY);
  });

  it("0.11, called: survives the cancel of a run", async (context) => {
    const stage = openStage(context);
    const worker = await ourHttpWorker(stage);
    const orchestrator = await startOrchestrator(stage, "0.11", { plugin: { type: "stepflow", url: worker.url } });
    await cancelled(operatorOf(orchestrator.url, "0.11"), worker.child);
  });

  it("0.11, called: loses no item when it is killed in the middle", async (context) => {
    const stage = openStage(context);
    const marks = openMarks(stage);
    // A runtime that is configured with an address initialises the worker at this address once. It does not initialise a later worker at the
    // same address.
    const options = { marks: marks.file, env: { HANDSHAKE: "no" } };
    const first = await ourHttpWorker(stage, options);
    const orchestrator = await startOrchestrator(stage, "0.11", { plugin: { type: "stepflow", url: first.url }, retry: PATIENT });
    const operator = operatorOf(orchestrator.url, "0.11");
    const run = await startMarks(operator, SOME, 200);
    await someBegun(marks, SOME / 4);
    first.child.signal("SIGKILL");
    await first.child.ended;
    await ourHttpWorker(stage, { ...options, port: Number(new URL(first.url).port) });
    await allMarked(operator, run, marks, SOME);
  });
});

describe.concurrent("our worker, pulling over gRPC, from the real orchestrator", () => {
  it.for(["0.12", "0.13"] as const)("%s, pulling: does everything", async (release, context) => {
    const stage = openStage(context);
    const orchestrator = await startOrchestrator(stage, release);
    ourGrpcWorker(stage, orchestrator.address);
    const operator = operatorOf(orchestrator.url, release);
    await operator.knows("echo");
    await everyEnding(operator, expected[release]);
  });

  it.for(["0.12", "0.13"] as const)("[S9-22] %s, pulling: is started again by the orchestrator when it dies", async (release, context) => {
    const plugin = { type: "grpc", queueName: "python", ...ourCommand("grpc") };
    const orchestrator = await startOrchestrator(openStage(context), release, { plugin, retry: PATIENT });
    const operator = operatorOf(orchestrator.url, release);
    await operator.knows("echo");
    await diesOnce(operator);
  });

  it.for(["0.12", "0.13"] as const)("%s, pulling: executes every item once", async (release, context) => {
    const stage = openStage(context);
    const marks = openMarks(stage);
    const orchestrator = await startOrchestrator(stage, release);
    const operator = operatorOf(orchestrator.url, release);
    for (let worker = 0; worker < 2; worker++) ourGrpcWorker(stage, orchestrator.address, { marks: marks.file });
    await operator.knows("echo");
    await everyItemOnce(operator, marks, MANY);
  });

  it.for(["0.12", "0.13"] as const)("%s, pulling: survives the cancel of a run", async (release, context) => {
    const stage = openStage(context);
    const orchestrator = await startOrchestrator(stage, release);
    const worker = ourGrpcWorker(stage, orchestrator.address);
    const operator = operatorOf(orchestrator.url, release);
    await operator.knows("echo");
    await cancelled(operator, worker);
  });

  it.for(["0.12", "0.13"] as const)("[S9-30] %s, pulling: loses no item when it is killed in the middle", async (release, context) => {
    const stage = openStage(context);
    const marks = openMarks(stage);
    const orchestrator = await startOrchestrator(stage, release, { retry: PATIENT });
    const operator = operatorOf(orchestrator.url, release);
    const first = ourGrpcWorker(stage, orchestrator.address, { marks: marks.file });
    await operator.knows("echo");
    const run = await startMarks(operator, SOME, 200);
    await someBegun(marks, SOME / 4);
    first.signal("SIGKILL");
    await first.ended;
    ourGrpcWorker(stage, orchestrator.address, { marks: marks.file });
    await allMarked(operator, run, marks, SOME);
  });

  it.for(["0.12", "0.13"] as const)(
    "[S9-26] %s, pulling: loses no item when the orchestrator is killed in the middle",
    async (release, context) => {
      const stage = openStage(context);
      const marks = openMarks(stage);
      const options = { durable: true, retry: PATIENT };
      const first = await startOrchestrator(stage, release, options);
      const operator = operatorOf(first.url, release);
      ourGrpcWorker(stage, first.address, { marks: marks.file });
      await operator.knows("echo");
      const run = await startMarks(operator, SOME, 200);
      await someBegun(marks, SOME / 4);
      first.child.signal("SIGKILL");
      await first.child.ended;
      await startOrchestrator(stage, release, { ...options, data: first.data, port: first.port });
      await allMarked(operator, run, marks, SOME);
    },
  );
});

/** When a component kills its own process, the next process does it, as the second attempt. */
async function diesOnce(operator: Operator): Promise<void> {
  expect(await operator.run(flowOf("/python/die"), [{}])).toMatchObject({ status: "completed", items: [{ output: { attempt: 2 } }] });
}
