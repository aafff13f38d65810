// Where the programs of a test meet: a real Kafka and a store that answers as MongoDB does, shared by the tests of a file, with names of its own for
// each test.
import { randomUUID } from "node:crypto";
import { JavaKafka, JavaMongo } from "../../longshore/test/support/java-service.ts";
import type { Stage } from "../src/stage.ts";

export interface Place {
  readonly kafka: JavaKafka;
  readonly brokers: string;
  readonly mongo: string;
  readonly database: string;
  /** Put before the name of every topic. */
  readonly prefix: string;
  /** A type of nodes for this test alone: groups of workers are named after it. */
  role(name: string): string;
}

/** Both services, for as long as the stage is open. Returns what makes a place for a test. */
export async function openPlaces(stage: Stage, options: Parameters<typeof JavaKafka.start>[0] = {}): Promise<() => Place> {
  const [kafka, mongo] = await Promise.all([JavaKafka.start(options), JavaMongo.start()]);
  stage.onClose(() => kafka.remove());
  stage.onClose(() => mongo.remove());
  return () => {
    const mark = `t${randomUUID().slice(0, 8)}`;
    const own = { prefix: `${mark}.`, database: mark, role: (name: string) => `${name}-${mark}` };
    return { kafka, brokers: kafka.broker, mongo: mongo.url, ...own };
  };
}
