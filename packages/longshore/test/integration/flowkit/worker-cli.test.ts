// `longshore work FILE` without other arguments, in an environment that names Kafka's brokers and the database.

import { randomUUID } from "node:crypto";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it, onTestFinished } from "vitest";
import { openKafkaBus } from "../../../src/bus/kafka.ts";
import { topicNamesDefault } from "../../../src/protocols/flowkit/wire/shapes.ts";
import { startLongshore, temporaryFolder } from "../../support/cli.ts";
import { FlowkitWorld } from "../../support/flowkit-played.ts";
import { kafkaMissing, sharedKafka, soonHeard } from "../../support/kafka.ts";
import { mongoMissing, sharedMongo } from "../../support/mongo.ts";

const missing = kafkaMissing ?? mongoMissing;

describe.skipIf(missing !== undefined)(`longshore work for FlowKit${missing === undefined ? "" : ` (needs ${missing})`}`, () => {
  it("accepts commands for the tasks of a file, and gives back unfinished work when it stops", async () => {
    const { brokers } = await sharedKafka();
    const { url, database } = await sharedMongo();
    const role = `cli-${randomUUID().slice(0, 8)}`;
    const bus = await openKafkaBus({ brokers, partitions: 1, ...soonHeard });
    onTestFinished(() => bus.close());
    const world = await new FlowkitWorld(bus, topicNamesDefault).listen([role]);
    const cwd = temporaryFolder();
    const source = `
      import { streamTask } from "longshore/flowkit";
      export const counting = streamTask(${JSON.stringify(role)}, {
        *iterBatches({ input_inline }) {
          for (let at = 0; at < input_inline.count; at++) yield { batchUid: "b" + at, payload: { at } };
        },
        processBatch: ({ payload }, ctx) => (payload.at < 2 ? { at: payload.at } : ctx.cancellable(new Promise(() => {}))),
        finalize: () => ({ done: true }),
      });`;
    writeFileSync(join(cwd, "worker.mjs"), source);
    const env = { KAFKA_BOOTSTRAP_SERVERS: brokers.join(","), FLOWKIT_MONGO_URL: `${url.replace(/\/$/, "")}/${database}` };
    const running = startLongshore(["work", "worker.mjs", "--drain", "1s"], { cwd, env });
    await world.find(({ payload }) => payload.kind === "WORKER_ONLINE" && payload.type === role);
    await world.start({ count: 2 }, { role });
    expect((await world.end()).payload).toMatchObject({ kind: "TASK_DONE", metrics: { done: true } });
    await world.start({ count: 3 }, { role, nodeId: "m" });
    await world.event("BATCH_OK", "m");
    running.kill("SIGTERM");
    expect((await world.end("m")).payload).toMatchObject({ kind: "CANCELLED", reason: "shutdown" });
    expect((await running.ended).code).toBe(0);
  });
});
