// Records the real programs and compares the recording with the committed fixtures. The protocol's unit tests read those fixtures, so this
// test keeps them correct. `npm run conformance -- fixtures -u` writes them again.
import { fileURLToPath } from "node:url";
import { describe, expect, it, type TestContext } from "vitest";
import { openRecordingProxy } from "../src/recording-proxy.ts";
import { openStage, type Stage } from "../src/stage.ts";
import { until } from "../src/until.ts";
import { chapters } from "./differential/chapters.ts";
import { play } from "./differential/script.ts";
import { job, type Operator, operatorOf } from "./operator.ts";
import { blockingNode, carelessGo, impatientPython, plainPython } from "./plain-workers.ts";
import { createRecorder, type Recorded, withoutRepeats } from "./recording.ts";
import { startReferenceServer, startReferenceWorker } from "./reference.ts";

const fixture = (name: string): string =>
  fileURLToPath(new URL(`../../longshore/test/fixtures/workflow-graph/${name}.json`, import.meta.url));
const asText = (content: unknown): string => `${JSON.stringify(content, null, 2)}\n`;

type Worker = (stage: Stage, url: string) => unknown;

/** Runs a worker on the real server, with an operator's requests, and returns every exchange between the worker and the server. */
async function record(context: TestContext, worker: Worker, direct: (operator: Operator) => Promise<void>): Promise<Recorded[]> {
  const stage = openStage(context);
  const server = await startReferenceServer(stage);
  const proxy = await openRecordingProxy(stage, server.url);
  const answered = (body: string): number => proxy.exchanges.filter(({ answer }) => answer.body === body).length;
  worker(stage, proxy.url);
  // One empty claim before and one after, so that the recording does not depend on timing at its start and end.
  await until("the first empty claim", () => (answered("null") > 0 ? true : undefined));
  await direct(operatorOf(server.url));
  const before = answered("null");
  await until("the last empty claim", () => (answered("null") > before ? true : undefined));
  const note = createRecorder();
  return withoutRepeats(proxy.exchanges.map(({ request, answer }) => note(request, answer)));
}

/** One slow job, two jobs of which the second waits for the first, and one job that fails twice. */
const severalJobs =
  (seconds: number) =>
  async (operator: Operator): Promise<void> => {
    const long = await operator.run(job("long", `echo begins && sleep ${seconds} && echo ends`));
    await operator.finished(long);
    const pair = await operator.run(job("first", "echo first"), job("second", "true", { depends_on: ["first"] }));
    await operator.finished(pair);
    const failing = await operator.run(job("failing", "echo wrong >&2; sleep 0.2; exit 3", { max_retries: 1 }));
    await operator.finished(failing);
  };

/** Every worker here sends a heartbeat each 10 seconds. */
const pastFirstBeat = severalJobs(11);
/** The blocking worker sends a delayed heartbeat at the same time as its next request, in either order. So no heartbeat may become due. */
const beforeFirstBeat = severalJobs(1);

async function cancelled(operator: Operator): Promise<void> {
  const id = await operator.run(job("endless", "echo begins && sleep 30"));
  await operator.logged(id, "endless", "begins");
  await operator.cancel(id);
  await operator.reaches(id, "endless", "failure");
}

describe("the committed fixtures are what the real programs return", () => {
  it.concurrent("the Rust worker", async (context) => {
    const exchanges = await record(
      context,
      (stage, url) => startReferenceWorker(stage, url, { labels: ["linux", "docker"] }),
      pastFirstBeat,
    );
    await context.expect(asText({ peer: "workflow-graph-worker-sdk 1.2.11", exchanges })).toMatchFileSnapshot(fixture("rust-worker"));
  });

  it.concurrent("the Rust worker when its job is cancelled", async (context) => {
    const exchanges = await record(context, startReferenceWorker, cancelled);
    await context
      .expect(asText({ peer: "workflow-graph-worker-sdk 1.2.11", exchanges }))
      .toMatchFileSnapshot(fixture("rust-worker-cancelled"));
  });

  it.concurrent("the plain Python worker", async (context) => {
    const exchanges = await record(context, plainPython, pastFirstBeat);
    await context.expect(asText({ peer: "plain.py, with requests", exchanges })).toMatchFileSnapshot(fixture("plain-python-worker"));
  });

  it.concurrent("the impatient Python worker", async (context) => {
    const exchanges = await record(context, impatientPython, pastFirstBeat);
    await context
      .expect(asText({ peer: "impatient.py, with requests", exchanges }))
      .toMatchFileSnapshot(fixture("impatient-python-worker"));
  });

  it.concurrent("the blocking Node worker", async (context) => {
    const exchanges = await record(context, blockingNode, beforeFirstBeat);
    await context.expect(asText({ peer: "blocking.mjs", exchanges })).toMatchFileSnapshot(fixture("blocking-node-worker"));
  });

  it.concurrent("the careless Go worker", async (context) => {
    const exchanges = await record(context, carelessGo, pastFirstBeat);
    await context.expect(asText({ peer: "careless, in Go", exchanges })).toMatchFileSnapshot(fixture("careless-go-worker"));
  });

  it("the server's responses, chapter by chapter", async (context) => {
    const stage = openStage(context);
    const recorded = [];
    for (const chapter of chapters) {
      const server = await startReferenceServer(stage);
      const note = createRecorder();
      const exchanges = (await play(server.url, chapter)).map(({ step, request, answer }) => note(request, answer, step.name));
      recorded.push({ chapter: chapter.name, exchanges });
    }
    await expect(asText({ peer: "workflow-graph-server 1.2.11", chapters: recorded })).toMatchFileSnapshot(fixture("server-answers"));
  });
});
