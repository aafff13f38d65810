// A real Apache Kafka for tests. One broker serves all test files of a run, with different names for each test; a test may have a separate
// broker that it kills.
import { randomUUID } from "node:crypto";
import { inject, onTestFinished } from "vitest";
import { JavaKafka, javaMissing } from "./java-service.ts";

/** What is missing on this machine; tests that need Kafka skip themselves and name it. */
export const kafkaMissing = javaMissing;

/**
 * Members of a group find each other soon, and none counts as dead on a busy machine. Uncommitted records of a dead member are delivered
 * again.
 */
export const soonHeard = { sessionMs: 30_000, beatMs: 250 } as const;

export interface SharedKafka {
  readonly brokers: readonly string[];
  /** Different for each test: a prefix for every topic and group. */
  readonly prefix: string;
}

/** The first call of a run starts the broker, which takes some seconds. */
export async function sharedKafka(): Promise<SharedKafka> {
  return { brokers: [await addressOf("kafka")], prefix: `t${randomUUID().slice(0, 8)}.` };
}

/** A broker that the test may stop, kill and freeze. */
export async function ownKafka(options: Parameters<typeof JavaKafka.start>[0] = {}): Promise<JavaKafka> {
  const kafka = await JavaKafka.start(options);
  onTestFinished(() => kafka.remove());
  return kafka;
}

export async function addressOf(service: "kafka" | "mongo"): Promise<string> {
  const response = await fetch(`${inject("sharedServices")}/${service}`);
  const text = await response.text();
  if (!response.ok) throw new Error(`${service} could not be started: ${text}`);
  return text;
}
