// Two of our servers, each with its own store, publish to one NATS stream, and one pool of workers serves both. Either server may be killed:
// the runs of the other continue meanwhile, and its own runs continue when it is started again. Every run ends at the server that it was
// started on.
import { describe, it } from "vitest";
import type { Child } from "../src/child.ts";
import { openMarks } from "../src/marks.ts";
import { openStage, type Stage } from "../src/stage.ts";
import { startNats } from "./nats.ts";
import { operatorOf } from "./operator.ts";
import { type StepflowServer, startStepflowServer } from "./our-server.ts";
import { allMarked, someBegun, startMarks } from "./scenarios.ts";
import { type NatsAddresses, ourNatsWorker, pythonNatsWorker, type WorkerOptions } from "./workers.ts";

type StartWorker = (stage: Stage, addresses: NatsAddresses, options: WorkerOptions) => Child;

const pools: [string, StartWorker][] = [
  ["stepflow-py 0.13", (stage, addresses, options) => pythonNatsWorker(stage, "0.13", addresses, options)],
  ["our own", ourNatsWorker],
];

const WORKERS = 2;
/** Items of each run: enough that the kill happens while some are still open. */
const SOME = 60;

describe.concurrent("one pool of workers shared by two of our servers", () => {
  it.for(pools)("[S-QUEUE-21] %s: every run ends at its own server, whichever of the two is killed", async ([, startWorker], context) => {
    const stage = openStage(context);
    const marks = openMarks(stage);
    const { url: nats } = await startNats(stage);
    const plugin = { type: "nats", url: nats, stream: "STEPFLOW_TASKS" };
    const start = (before?: StepflowServer) =>
      startStepflowServer(stage, plugin, before === undefined ? {} : { data: before.data, port: Number(new URL(before.url).port) });
    let [one, two] = [await start(), await start()];
    const [operatorOne, operatorTwo] = [operatorOf(one.url, "0.13"), operatorOf(two.url, "0.13")];
    for (let worker = 0; worker < WORKERS; worker++) startWorker(stage, { nats, orchestrator: one.address }, { marks: marks.file });
    await Promise.all([operatorOne.knows("echo"), operatorTwo.knows("echo")]);

    const ofOne = await startMarks(operatorOne, SOME, 100);
    const ofTwo = await startMarks(operatorTwo, SOME, 100, SOME);
    await someBegun(marks, SOME / 2);
    await kill(one);
    await allMarked(operatorTwo, ofTwo, marks, SOME, SOME);

    one = await start(one);
    const nextOfTwo = await startMarks(operatorTwo, SOME, 100, 2 * SOME);
    await someBegun(marks, (9 * SOME) / 4);
    await kill(two);
    await allMarked(operatorOne, ofOne, marks, SOME);

    two = await start(two);
    await allMarked(operatorTwo, nextOfTwo, marks, SOME, 2 * SOME);
  });
});

async function kill({ child }: StepflowServer): Promise<void> {
  child.signal("SIGKILL");
  await child.ended;
}
