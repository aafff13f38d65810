// Kills the node that owns the data while foreign workers are connected to the other node. The workers finish all work, each piece once, and
// receive only responses that a single server would also send.
import { describe, it } from "vitest";
import { operatorOf as conductorOperatorOf } from "../conductor/operator.ts";
import { allCompleted, startMany } from "../conductor/scenarios.ts";
import { javascriptWorker, pythonWorker } from "../conductor/workers.ts";
import type { Child } from "../src/child.ts";
import { type OurServer, startOurServer } from "../src/longshore.ts";
import { type Marks, openMarks } from "../src/marks.ts";
import { openRecordingProxy, type RecordingProxy } from "../src/recording-proxy.ts";
import { openStage } from "../src/stage.ts";
import { until } from "../src/until.ts";
import { operatorOf as stepflowOperatorOf } from "../stepflow/operator.ts";
import { QUEUE, startStepflowServer } from "../stepflow/our-server.ts";
import { allMarked, someBegun, startMarks } from "../stepflow/scenarios.ts";
import { pythonGrpcWorker } from "../stepflow/workers.ts";
import { countExecutions } from "../workflow-graph/executions.ts";
import { job, operatorOf } from "../workflow-graph/operator.ts";
import { startReferenceWorker } from "../workflow-graph/reference.ts";

/** Enough jobs that the kill happens while some are still open. */
const SOME = 60;
/** For this time, a task is lost that the killed owner had handed out without reaching the worker. */
const LEASE_SECONDS = 10;

async function killOwner({ owner }: OurServer): Promise<void> {
  if (owner === undefined) throw new Error("Our server is not a cluster here: run this by npm run conformance.");
  owner.signal("SIGKILL");
  await owner.ended;
}

/** Responses that a worker should not have received, and requests without a response. */
function troubles({ exchanges, broken }: RecordingProxy): unknown[] {
  const refused = exchanges.filter(({ answer }) => answer.status >= 400);
  return [...refused.map(({ request, answer }) => `${request.path} ${answer.status} ${answer.body}`), ...broken];
}

const more = ({ counts }: Marks): number[] => [...counts()].filter(([, times]) => times !== 1).map(([n]) => n);

describe.concurrent("when the owner is killed", () => {
  it("the Rust worker of workflow-graph finishes all jobs", async (context) => {
    const stage = openStage(context);
    const server = await startOurServer(stage);
    const proxy = await openRecordingProxy(stage, server.url);
    const operator = operatorOf(server.url);
    const tries = countExecutions(stage);
    for (let worker = 0; worker < 3; worker++) startReferenceWorker(stage, proxy.url);
    const names = Array.from({ length: SOME }, (_, n) => `j${n}`);
    const after = (n: number) => (n < 6 ? [] : [`j${n - 6}`]);
    const id = await operator.run(...names.map((name, n) => job(name, `${tries.mark}; echo ${n}; sleep 0.2`, { depends_on: after(n) })));
    await until("some jobs to begin", () => (tries.count() >= SOME / 4 ? true : undefined));
    await killOwner(server);
    context.expect(await operator.finished(id)).toEqual(Object.fromEntries(names.map((name) => [name, "success"])));
    context.expect(tries.count()).toBe(SOME);
    context.expect(troubles(proxy)).toEqual([]);
    for (const [n, name] of names.entries()) context.expect((await operator.logs(id, name)).map(({ data }) => data)).toEqual([`${n}\n`]);
  });

  it.for([
    ["JavaScript", javascriptWorker],
    ["Python", pythonWorker],
  ] as const)("and the worker of Conductor's %s SDK finishes all tasks", async ([, startWorker], context) => {
    const stage = openStage(context);
    const server = await startOurServer(stage);
    const proxy = await openRecordingProxy(stage, server.url);
    const operator = conductorOperatorOf(server.url);
    const marks = openMarks(stage);
    await operator.defineAlone("mark", { responseTimeoutSeconds: LEASE_SECONDS, retryCount: 3 });
    await startWorker(stage, proxy.url, { marks: marks.file });
    const ids = await startMany(operator, SOME, { ms: 500 });
    await someBegun(marks, SOME / 4);
    await killOwner(server);
    // The other node accepts requests all the time.
    const later = await startMany(operator, SOME, { ms: 1 });
    await allCompleted(operator, [...ids]);
    await allCompleted(operator, later);
    context.expect(marks.counts().size).toBe(SOME);
    context.expect([...new Set([...marks.counts().values()])]).toEqual([2]);
    context.expect(troubles(proxy)).toEqual([]);
  });

  it.for(["0.12", "0.13"] as const)("Stepflow's Python worker %s finishes all items", async (release, context) => {
    const stage = openStage(context);
    const server = await startStepflowServer(stage, QUEUE);
    const operator = stepflowOperatorOf(server.url, "0.13");
    const marks = openMarks(stage);
    const worker = pythonGrpcWorker(stage, release, server.address, { marks: marks.file });
    await operator.knows("echo");
    const run = await startMarks(operator, SOME, 500);
    await someBegun(marks, SOME / 4);
    await killOwner(server);
    await allMarked(operator, run, marks, SOME);
    context.expect(more(marks)).toEqual([]);
    context.expect(saidOf(worker)).toEqual([]);
  });
});

/** A line that a worker logs when it has a problem. */
function saidOf(worker: Child): string[] {
  return worker
    .output()
    .split("\n")
    .filter((line) => /error|warn|unavailable|traceback|exception|reconnect/i.test(line));
}
