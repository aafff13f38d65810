// The bus on Kafka: the contract on a real broker.
import { describe, onTestFinished } from "vitest";
import { openKafkaBus } from "../../../src/bus/kafka.ts";
import { busSuite } from "../../contract/bus-suite.ts";
import { kafkaMissing, sharedKafka, soonHeard } from "../../support/kafka.ts";

describe.skipIf(kafkaMissing !== undefined)(`the bus on Kafka${kafkaMissing === undefined ? "" : ` (needs ${kafkaMissing})`}`, () => {
  busSuite(async () => {
    const { brokers, prefix } = await sharedKafka();
    return {
      prefix,
      async open() {
        const bus = await openKafkaBus({ brokers, partitions: 4, againMs: 10, ...soonHeard });
        onTestFinished(() => bus.close());
        return bus;
      },
    };
  });
});
