// Compares the recordings of Stepflow workers with the rows of the server, over each transport.

import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it, onTestFinished } from "vitest";
import type { JsonObject } from "../../../src/core/json/json.ts";
import type { RecordedLine, RecordedWork } from "../../../src/core/recording.ts";
import { task } from "../../../src/core/task.ts";
import { parseConfig } from "../../../src/protocols/stepflow/server/config/parse.ts";
import { stepflowGrpc, stepflowHttp, stepflowNats } from "../../../src/protocols/stepflow/worker/index.ts";
import type { Transport } from "../../../src/runner/transport.ts";
import { openDataFolder } from "../../../src/server/verify-data.ts";
import { openDatabase } from "../../../src/store/sqlite/driver.ts";
import { readRecording } from "../../../src/verify/read-recording.ts";
import { verify } from "../../../src/verify/verify.ts";
import { work } from "../../../src/work.ts";
import { natsMissing, TestNats } from "../../support/nats.ts";
import { temporaryFolder } from "../../support/parts.ts";
import { oneStep, type StepflowServer, startStepflow } from "../../support/stepflow-server.ts";

const tasks = [
  task("echo", (input: object) => input),
  task("fail", () => {
    throw new Error("on purpose");
  }),
];

interface Way {
  readonly name: string;
  readonly skip?: string | undefined;
  /** Lines with a promise: five hand-outs, and as many reports when the protocol has responses to reports. */
  readonly judged: number;
  start(record: string): Promise<{ server: StepflowServer; stop(): Promise<void> }>;
}

const serverWith = (plugin: object): Promise<StepflowServer> => {
  const text = JSON.stringify({ plugins: { w: plugin }, routes: { "/w": [{ plugin: "w" }] } });
  return startStepflow({ config: parseConfig(text, { file: "stepflow-config.yml", environment: {} }).config });
};

async function working(on: Transport, record: string): Promise<() => Promise<void>> {
  const handle = await work({ tasks, on, record, signals: false, logger: () => {} });
  onTestFinished(() => handle.stop({ force: true }));
  return () => handle.stop();
}

const ways: readonly Way[] = [
  {
    name: "gRPC",
    judged: 10,
    async start(record) {
      const server = await serverWith({ type: "grpc", queueName: "w" });
      return { server, stop: await working(stepflowGrpc(server.url, { queue: "w", env: {} }), record) };
    },
  },
  {
    name: "NATS",
    judged: 10,
    skip: natsMissing,
    async start(record) {
      const nats = await TestNats.start();
      const server = await serverWith({ type: "nats", url: nats.url, stream: "W" });
      return { server, stop: await working(stepflowNats(nats.url, { stream: "W", env: {} }), record) };
    },
  },
  {
    name: "HTTP",
    judged: 5,
    async start(record) {
      const transport = stepflowHttp({ announce: false, env: {} });
      const stop = await working(transport, record);
      return { server: await serverWith({ type: "stepflow", url: transport.url }), stop };
    },
  },
];

async function judge(data: string, record: string) {
  const { source, close } = await openDataFolder(data);
  try {
    return await verify(source, { recorded: readRecording(record), now: Date.now() });
  } finally {
    close();
  }
}

const recordedIn = (record: string): RecordedLine[] =>
  readFileSync(record, "utf8")
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line) as RecordedLine);

describe.each(ways)("a recording of a worker over $name", ({ skip, start, judged }) => {
  it("agrees with the rows of each item", async (context) => {
    if (skip) context.skip(`needs ${skip}`);
    const record = join(temporaryFolder(), "worker.jsonl");
    const { server, stop } = await start(record);
    const steps: JsonObject[] = [
      { id: "a", component: "/w/echo", input: { $input: "$" } },
      { id: "b", component: "/w/echo", input: { $step: "a" } },
    ];
    await server.run({ name: "two", steps, output: { $step: "b" } }, [{ n: 1 }, { n: 2 }]);
    await server.run(oneStep("/w/fail", { n: 3 }), [{}]);
    await stop();
    await server.close();
    expect(await judge(server.data, record)).toMatchObject({ total: 0, lines: { judged, tooOld: 0, unknown: 0 } });
    // The same recording with rows that lack the last task, or have an older hand-out of it.
    const last = recordedIn(record).findLast(({ kind }) => kind === "taken") as RecordedWork;
    const db = await openDatabase(join(server.data, "longshore.db"));
    db.exec(`UPDATE task SET grant_count = 0 WHERE id = '${last.taskId}'`);
    const found = async () => (await judge(server.data, record)).findings.map(({ rule, subject }) => [rule, subject]);
    expect(await found()).toContainEqual(["recorded-holds", last.taskId]);
    db.exec(`DELETE FROM task WHERE id = '${last.taskId}'`);
    expect(await found()).toContainEqual(["recorded-holds", last.taskId]);
    db.close();
  });
});
