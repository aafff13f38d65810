// Every worker finishes the eight jobs of the built-in sample: foreign workers on our server, and our worker on the foreign server. The small
// workers also run on the foreign server, which shows that they use the protocol correctly.
import { describe, it, type TestContext } from "vitest";
import { startOurServer, startOurWorker } from "../src/longshore.ts";
import { type Exchange, openRecordingProxy } from "../src/recording-proxy.ts";
import { openStage, type Stage } from "../src/stage.ts";
import { operatorOf } from "./operator.ts";
import { blockingNode, carelessGo, impatientPython, plainPython } from "./plain-workers.ts";
import { startReferenceServer, startReferenceWorker } from "./reference.ts";

type Server = (stage: Stage) => Promise<{ url: string }>;
type Worker = (stage: Stage, url: string) => unknown;

/** What each job of the sample depends on and prints, on the real server. */
const sample: Record<string, { after: string[]; prints: string }> = {
  "unit-tests": { after: [], prints: "Running unit tests\n" },
  lint: { after: [], prints: "Running linter\n" },
  typecheck: { after: [], prints: "Running typecheck\n" },
  build: { after: ["unit-tests", "lint", "typecheck"], prints: "Building project\n" },
  "deploy-db": { after: ["build"], prints: "Deploying DB migrations\n" },
  "e2e-tests": { after: ["build"], prints: "Running E2E tests\n" },
  "deploy-preview": { after: ["build"], prints: "Deploying preview\n" },
  "deploy-web": { after: ["deploy-db"], prints: "Deploying to production\n" },
};

async function finishesSample(context: TestContext, server: Server, worker: Worker, sendsLogs = true): Promise<void> {
  const { expect } = context;
  const stage = openStage(context);
  const { url } = await server(stage);
  const proxy = await openRecordingProxy(stage, url);
  const operator = operatorOf(url);
  worker(stage, proxy.url);
  const id = await operator.runSample();

  expect(await operator.finished(id)).toEqual(Object.fromEntries(Object.keys(sample).map((name) => [name, "success"])));
  expect(claimed(proxy.exchanges).sort()).toEqual(Object.keys(sample).sort());
  expect(refused(proxy.exchanges)).toEqual([]);
  for (const [name, { after, prints }] of Object.entries(sample)) {
    const { started_at } = await operator.job(id, name);
    for (const earlier of after) expect(started_at).toBeGreaterThan((await operator.job(id, earlier)).started_at ?? Number.NaN);
    const said = (await operator.logs(id, name)).map(({ data }) => data).join("");
    expect(said).toBe(sendsLogs ? prints : "");
  }
}

/**
 * The names of the jobs that were handed out, one for each time. The response to a claim is `null` or a job with its lease. Our worker also
 * gets jobs in responses to reports.
 */
function claimed(exchanges: readonly Exchange[]): string[] {
  return exchanges
    .filter(({ request, answer }) => request.path === "/api/jobs/claim" || (request.path.endsWith("/complete") && answer.body !== ""))
    .map(({ answer }) => JSON.parse(answer.body) as { job: { job_id: string }; lease: { lease_id: string } } | null)
    .flatMap((answer) => (answer === null ? [] : [`${answer.job.job_id}${answer.lease.lease_id === "" ? " without a lease" : ""}`]));
}

/** Requests that the server refused. A correct worker sends none of these. */
function refused(exchanges: readonly Exchange[]): string[] {
  return exchanges
    .filter(({ answer }) => answer.status >= 400)
    .map(({ request, answer }) => `${request.path} ${answer.status} ${answer.body}`);
}

describe("the eight jobs on our server", () => {
  it.concurrent("[G63] the Rust worker finishes them", (context) => finishesSample(context, startOurServer, startReferenceWorker));
  it.concurrent("[G61] the plain Python worker finishes them", (context) => finishesSample(context, startOurServer, plainPython));
  it.concurrent("[W-PY-09, G62] the Python worker with a time limit finishes them", (context) =>
    finishesSample(context, startOurServer, impatientPython));
  it.concurrent("[W-PY-09, G62] the blocking Node worker finishes them", (context) =>
    finishesSample(context, startOurServer, blockingNode));
  it.concurrent("[W-PY-09, G62] the careless Go worker, which sends no logs, finishes them", (context) =>
    finishesSample(context, startOurServer, carelessGo, false));
  it.concurrent("our own worker finishes them", (context) => finishesSample(context, startOurServer, startOurWorker));
});

describe("the eight jobs on the real server", () => {
  it.concurrent("our worker finishes them", (context) => finishesSample(context, startReferenceServer, startOurWorker));
  it.concurrent("the Rust worker finishes them", (context) => finishesSample(context, startReferenceServer, startReferenceWorker));
  it.concurrent("the plain Python worker finishes them", (context) => finishesSample(context, startReferenceServer, plainPython));
  it.concurrent("the Python worker with a time limit finishes them", (context) =>
    finishesSample(context, startReferenceServer, impatientPython));
  it.concurrent("the blocking Node worker finishes them", (context) => finishesSample(context, startReferenceServer, blockingNode));
  it.concurrent("the careless Go worker finishes them", (context) => finishesSample(context, startReferenceServer, carelessGo, false));
});
