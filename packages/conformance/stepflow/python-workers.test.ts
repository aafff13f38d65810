// The Python workers of every release, unchanged, on our server.
import { describe, it } from "vitest";
import { type OurServer, startOurServer } from "../src/longshore.ts";
import { openStage, type Stage } from "../src/stage.ts";
import { operatorOf } from "./operator.ts";
import { type Expected, everyEnding } from "./scenarios.ts";
import { pythonGrpcWorker, pythonHttpWorker } from "./workers.ts";

/** HTTP workers have one code for every exception, and one for what is missing. */
const called: Expected = { failed: 3, unavailable: 3, missing: { code: 6, text: "nosuch" }, retries: true };
const pulling: Expected = { failed: 3, unavailable: 7, missing: { code: 3, text: "nosuch" }, retries: true };

function serverWith(stage: Stage, python: Record<string, unknown>): Promise<OurServer> {
  const plugins = { builtin: { type: "builtin" }, python };
  return startOurServer(stage, {
    stepflow: { plugins, routes: { "/python": [{ plugin: "python" }], "/builtin": [{ plugin: "builtin" }] } },
  });
}

// They wait more than they compute, so all go at the same time.
describe.concurrent("a Python worker on our server", () => {
  it.for(["0.9", "0.11"] as const)("%s, called: does everything", async (release, context) => {
    const stage = openStage(context);
    const worker = await pythonHttpWorker(stage, release);
    const { url } = await serverWith(stage, { type: "stepflow", url: worker.url });
    await everyEnding(operatorOf(url, "0.13"), called);
  });

  it.for(["0.12", "0.13"] as const)("%s, pulling: does everything", async (release, context) => {
    const stage = openStage(context);
    const { url } = await serverWith(stage, { type: "grpc", queueName: "python" });
    pythonGrpcWorker(stage, release, new URL(url).host);
    const operator = operatorOf(url, "0.13");
    await operator.knows("echo");
    await everyEnding(operator, pulling);
  });
});
