// Our worker on the real Conductor server: every way a task can end, thousands of tasks, and a kill of either side.
import { beforeAll, describe, expect, it } from "vitest";
import { openMarks } from "../src/marks.ts";
import { openFileStage, openStage } from "../src/stage.ts";
import { until } from "../src/until.ts";
import { type Operator, operatorOf } from "./operator.ts";
import { type ReferenceServer, startReferenceServer } from "./reference.ts";
import { allCompleted, defineScenarios, everyEnding, everyTaskOnce, startMany } from "./scenarios.ts";
import { ourWorker } from "./workers.ts";

/** Thousands of tasks, which the reference can serve within a minute. */
const MANY = 2_000;
/** Enough tasks to keep three workers busy at the same time. */
const SHARED = 90;

const fileStage = openFileStage();
let server: ReferenceServer;
let operator: Operator;

beforeAll(async () => {
  server = await startReferenceServer(fileStage);
  operator = operatorOf(server.url);
  await defineScenarios(operator);
});

describe("our worker on the real server", () => {
  it("[C-TEST-08] completes, fails, retries, gives up, defers, and works longer than its lease", async (context) => {
    await ourWorker(openStage(context), server.url);
    await everyEnding(operator);
  });

  it("does the same on a server without update-v2", async (context) => {
    await ourWorker(openStage(context), server.url, { updateV2: false });
    await everyEnding(operator);
  });

  it("[C-TEST-08] executes thousands of tasks once each", async (context) => {
    await everyTaskOnce(openStage(context), operator, ourWorker, MANY);
  });

  it("[C-TEST-08, C-ARCH-13] shares the tasks of one type with other workers of ours", async (context) => {
    const stage = openStage(context);
    // When a busy machine responds to a poll too late, the task is handed out but no worker has it. Only another attempt repairs this.
    await operator.defineTask("mark", { responseTimeoutSeconds: 20, retryCount: 10 });
    const marks = openMarks(stage);
    await Promise.all([1, 2, 3].map(() => ourWorker(stage, server.url, { marks: marks.file })));
    const ids = await startMany(operator, SHARED, { ms: 500 });
    await allCompleted(operator, ids);
    expect(marks.counts().size).toBe(SHARED);
    const runs = await Promise.all(ids.map((id) => operator.run(id)));
    expect(new Set(runs.map(({ tasks }) => tasks.at(-1)?.workerId)).size).toBeGreaterThan(1);
    await operator.defineTask("mark");
  });

  it("aborts a handler whose run was terminated", async (context) => {
    const worker = await ourWorker(openStage(context), server.url);
    const id = await operator.start("endless");
    await worker.printed(/endless begins/);
    await operator.terminate(id);
    await worker.printed(/endless aborted: LONGSHORE_CANCELLED/);
    expect(await operator.status(id)).toBe("TERMINATED");
  });

  it("loses no task when it is killed in the middle", async (context) => {
    const stage = openStage(context);
    await operator.defineTask("mark", { responseTimeoutSeconds: 5, retryCount: 10 });
    const marks = openMarks(stage);
    const ids = await startMany(operator, 200, { ms: 200 });
    const first = await ourWorker(stage, server.url, { marks: marks.file });
    await until("some of the tasks", () => (marks.counts().size > 50 ? true : undefined));
    first.signal("SIGKILL");
    await first.ended;
    await ourWorker(stage, server.url, { marks: marks.file });
    await allCompleted(operator, ids);
    expect(marks.counts().size).toBe(200);
    await operator.defineTask("mark");
  });

  // The last test, because it ends the server that the tests share.
  it("loses no task when the server is killed in the middle", async (context) => {
    const stage = openStage(context);
    await operator.defineTask("mark", { responseTimeoutSeconds: 20, retryCount: 10 });
    const marks = openMarks(stage);
    const ids = await startMany(operator, 200, { ms: 100 });
    await ourWorker(stage, server.url, { marks: marks.file });
    await until("some of the tasks", () => (marks.counts().size > 50 ? true : undefined));
    server.child.signal("SIGKILL");
    await server.child.ended;
    server = await startReferenceServer(fileStage, { data: server.data, port: server.port });
    await allCompleted(operator, ids);
    expect(marks.counts().size).toBe(200);
  });
});
