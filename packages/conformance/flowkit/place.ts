// The services that the programs of a test share: a real Kafka, and a store that behaves like MongoDB. The tests of a file use the same
// services, and each test has its own names in them.
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
  /** A node type that only this test uses. The consumer groups of its workers have this name, too. */
  role(name: string): string;
}

/** Starts both services, which run until the stage is closed. Returns a function that makes a place for a test. */
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
