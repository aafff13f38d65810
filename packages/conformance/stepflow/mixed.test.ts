// One flow, three protocols: a Stepflow worker in Python, a worker of a Conductor SDK and a handler of ours do its steps.
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";
import { javascriptWorker } from "../conductor/workers.ts";
import { startOurWorker } from "../src/longshore.ts";
import { type Marks, openMarks } from "../src/marks.ts";
import { openStage } from "../src/stage.ts";
import { startNats } from "./nats.ts";
import { type Operator, operatorOf } from "./operator.ts";
import { QUEUE, startStepflowServer } from "./our-server.ts";
import { everyItemOnce } from "./scenarios.ts";
import { ourGrpcWorker, ourNatsWorker, pythonGrpcWorker, pythonNatsWorker } from "./workers.ts";

const handlers = fileURLToPath(new URL("./programs/letters.mjs", import.meta.url));
const MANY = 400;

it("a Stepflow worker, a Conductor worker and a handler of ours each do one step of a flow", async (context) => {
  const stage = openStage(context);
  const { url, address } = await startStepflowServer(stage, QUEUE);
  pythonGrpcWorker(stage, "0.13", address);
  await javascriptWorker(stage, url);
  startOurWorker(stage, url, { file: handlers });
  const steps = [
    { id: "upper", component: "/python/upper", input: { text: { $input: "name" } } },
    { id: "greet", component: "/longshore/greet", input: { input: { name: { $step: "upper", path: "text" } } } },
    { id: "count", component: "/longshore/letters", input: { text: { $step: "greet", path: "text" } } },
  ];
  const flow = {
    name: "mixed",
    description: "three workers",
    steps,
    output: { greeting: { $step: "greet" }, letters: { $step: "count" } },
  };
  const { status, items } = await operatorOf(url, "0.13").run(flow, [{ name: "ann" }, { name: "bob" }]);
  expect(items.map(({ output, details }) => output ?? details)).toEqual([
    { greeting: { text: "Hello, ANN!" }, letters: { letters: 11 } },
    { greeting: { text: "Hello, BOB!" }, letters: { letters: 11 } },
  ]);
  expect(status).toBe("completed");
});

describe("a Python worker and our worker in one pool", () => {
  /** Long enough that each worker gets a share. */
  const ITEM_MS = 20;

  it("share a queue over gRPC", async (context) => {
    const stage = openStage(context);
    const [theirs, ours] = [openMarks(stage), openMarks(stage)];
    const { url, address } = await startStepflowServer(stage, QUEUE);
    const operator = operatorOf(url, "0.13");
    pythonGrpcWorker(stage, "0.12", address, { marks: theirs.file });
    await operator.knows("echo");
    ourGrpcWorker(stage, address, { marks: ours.file });
    await sharedOut(operator, theirs, ours);
  });

  it("share a stream of NATS", async (context) => {
    const stage = openStage(context);
    const [theirs, ours] = [openMarks(stage), openMarks(stage)];
    const { url: nats } = await startNats(stage);
    const { url, address } = await startStepflowServer(stage, { type: "nats", url: nats, stream: "STEPFLOW_TASKS" });
    const operator = operatorOf(url, "0.13");
    pythonNatsWorker(stage, "0.13", { nats, orchestrator: address }, { marks: theirs.file });
    await operator.knows("echo");
    ourNatsWorker(stage, { nats, orchestrator: address }, { marks: ours.file });
    await sharedOut(operator, theirs, ours);
  });

  /** Every item is done once, by one of the two workers, and both do some. */
  async function sharedOut(operator: Operator, theirs: Marks, ours: Marks): Promise<void> {
    const both: Marks = { file: "", counts: () => merged(theirs.counts(), ours.counts()) };
    await everyItemOnce(operator, both, MANY, ITEM_MS);
    expect(theirs.counts().size).toBeGreaterThan(0);
    expect(ours.counts().size).toBeGreaterThan(0);
  }

  function merged(some: Map<number, number>, others: Map<number, number>): Map<number, number> {
    const all = new Map(some);
    for (const [n, times] of others) all.set(n, (all.get(n) ?? 0) + times);
    return all;
  }
});
