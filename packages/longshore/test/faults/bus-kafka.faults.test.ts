// The bus on Kafka, with a broker that is down for a minute, and one that is killed repeatedly. No published record is lost, and consumers
// continue. Time is real here, because the broker's is.
import { expect, it, onTestFinished } from "vitest";
import { openKafkaBus } from "../../src/bus/kafka.ts";
import { kafkaMissing, ownKafka } from "../support/kafka.ts";
import { untilElsewhere as until } from "../support/until.ts";

const awayMs = 60_000;
const kills = 4;

it("continues after a broker that was down for a minute, and after one that is killed repeatedly", async (context) => {
  if (kafkaMissing !== undefined) return context.skip(`needs ${kafkaMissing}`);
  const kafka = await ownKafka();
  const bus = await openKafkaBus({ brokers: [kafka.broker], partitions: 4, patienceMs: 5_000 });
  onTestFinished(() => bus.close());
  const seen = new Set<number>();
  const consumers = ["a", "b"].map(() =>
    bus.subscribe({
      group: "g",
      topics: ["t"],
      from: "earliest",
      async handle(records) {
        for (const { value } of records) seen.add(Number(Buffer.from(value).toString()));
      },
    }),
  );
  for (const { ready } of consumers) await ready;
  let published = 0;
  let stop = false;
  const publishing = (async () => {
    while (!stop) {
      const value = String(published);
      const taken = await bus.publish([{ topic: "t", key: value, value }]).then(
        () => true,
        () => false,
      );
      if (taken) published++;
    }
  })();
  const more = async (count: number) => {
    const enough = published + count;
    await until(() => published >= enough);
  };
  await more(100);
  await kafka.down("SIGTERM");
  await new Promise((resolve) => setTimeout(resolve, awayMs));
  await kafka.up();
  for (let kill = 0; kill < kills; kill++) {
    await more(100);
    await kafka.down("SIGKILL");
    await kafka.up();
  }
  await more(100);
  stop = true;
  await publishing;
  await until(() => seen.size >= published);
  expect(seen.size).toBe(published);
  for (const consumer of consumers) await consumer.close();
});
