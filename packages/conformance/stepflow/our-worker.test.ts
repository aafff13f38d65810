// Our worker on the real orchestrator of every release.
import { describe, expect, it } from "vitest";
import { openMarks } from "../src/marks.ts";
import { openStage } from "../src/stage.ts";
import type { Release } from "./fetch.ts";
import { flowOf, operatorOf } from "./operator.ts";
import { startOrchestrator } from "./orchestrator.ts";
import { allMarked, type Expected, everyEnding, someBegun, startMarks } from "./scenarios.ts";
import { ourCommand, ourHttpWorker } from "./workers.ts";

/** As a Python worker's, but that a component that is missing has its own code where the protocol has one. */
const expected: Record<Release, Expected> = {
  "0.9": { failed: 500, unavailable: 500, missing: { code: 500, text: "(-32001)" }, retries: false },
  "0.11": { failed: -32100, unavailable: -32102, missing: { code: -32001, text: "nosuch" }, retries: true },
  "0.12": { failed: 3, unavailable: 7, missing: { code: 6, text: "nosuch" }, retries: true },
  "0.13": { failed: 3, unavailable: 7, missing: { code: 9, text: "error routing component" }, retries: true },
};

const MANY = 1_000;
/** Enough for a kill to come in the middle. */
const SOME = 100;
/** A machine that is busy must not use up the retries that a killed worker costs. */
const PATIENT = { transportMaxRetries: 50, backoff: { type: "constant", delayMs: 500 } };

// They wait more than they compute, so all go at the same time.
describe.concurrent("our worker on the real orchestrator", () => {
  it.for(["0.9", "0.11"] as const)("%s, called over HTTP, does everything", async (release, context) => {
    const stage = openStage(context);
    const worker = await ourHttpWorker(stage);
    const orchestrator = await startOrchestrator(stage, release, { plugin: { type: "stepflow", url: worker.url } });
    await everyEnding(operatorOf(orchestrator.url, release), expected[release]);
  });

  it.for(["0.9", "0.11"] as const)("[S9-22] %s, started by the orchestrator, is started again when it dies", async (release, context) => {
    const orchestrator = await startOrchestrator(openStage(context), release, { plugin: { type: "stepflow", ...ourCommand("http") } });
    const operator = operatorOf(orchestrator.url, release);
    expect(await operator.run(flowOf("/python/die"), [{}])).toMatchObject({ status: "completed", items: [{ output: { attempt: 2 } }] });
  });

  it("0.11, called over HTTP, executes every item once", async (context) => {
    const stage = openStage(context);
    const marks = openMarks(stage);
    const worker = await ourHttpWorker(stage, { marks: marks.file });
    const orchestrator = await startOrchestrator(stage, "0.11", { plugin: { type: "stepflow", url: worker.url } });
    const operator = operatorOf(orchestrator.url, "0.11");
    await allMarked(operator, await startMarks(operator, MANY), marks, MANY);
    expect([...marks.counts()].filter(([, times]) => times !== 1)).toEqual([]);
  });

  it("0.11, called over HTTP, loses nothing when it is killed in the middle", async (context) => {
    const stage = openStage(context);
    const marks = openMarks(stage);
    // A runtime that is told an address initialises what it finds there once, and not again what follows it.
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
