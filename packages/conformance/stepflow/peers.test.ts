// The real orchestrators with the real Python workers: shows, for each release, that the other tests expect what Stepflow really does.
import { describe, it } from "vitest";
import { openStage } from "../src/stage.ts";
import { type Release, releaseNames, releases } from "./fetch.ts";
import { operatorOf } from "./operator.ts";
import { startOrchestrator } from "./orchestrator.ts";
import { type Expected, everyEnding } from "./scenarios.ts";
import { pythonGrpcWorker, pythonHttpWorker } from "./workers.ts";

/** 0.9 reports the worker's code only as text. 0.13 does not send a component to a worker when no worker has registered it. */
const expected: Record<Release, Expected> = {
  "0.9": { failed: 500, unavailable: 500, missing: { code: 500, text: "(-32001)" }, retries: false },
  "0.11": { failed: -32100, unavailable: -32100, missing: { code: -32001, text: "not found" }, retries: true },
  "0.12": { failed: 3, unavailable: 7, missing: { code: 3, text: "Component '/nosuch' not found" }, retries: true },
  "0.13": { failed: 3, unavailable: 7, missing: { code: 9, text: "error routing component" }, retries: true },
};

const onHttp = releaseNames.filter((release) => releases[release].speaks === "http");
const onGrpc = releaseNames.filter((release) => releases[release].speaks === "grpc");

// The tests mostly wait, so all run at the same time.
describe.concurrent("a Python worker on the real orchestrator of its release", () => {
  it.for(onHttp)("%s, called over HTTP, does everything", async (release, context) => {
    const stage = openStage(context);
    const worker = await pythonHttpWorker(stage, release);
    const orchestrator = await startOrchestrator(stage, release, { plugin: { type: "stepflow", url: worker.url } });
    await everyEnding(operatorOf(orchestrator.url, release), expected[release]);
  });

  it.for(onGrpc)("%s, pulling over gRPC, does everything", async (release, context) => {
    const stage = openStage(context);
    const orchestrator = await startOrchestrator(stage, release);
    pythonGrpcWorker(stage, release, orchestrator.address);
    const operator = operatorOf(orchestrator.url, release);
    await operator.knows("echo");
    await everyEnding(operator, expected[release]);
  });
});
