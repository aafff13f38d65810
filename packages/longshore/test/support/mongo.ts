// A server that behaves like MongoDB, for tests: one for all test files of a run, with a separate database for each test. It shows that the
// driver's calls are understood, but not how MongoDB would behave in every case.
import { randomUUID } from "node:crypto";
import { javaMissing } from "./java-service.ts";
import { addressOf } from "./kafka.ts";

/** What is missing on this machine; tests that need it skip themselves and name it. */
export const mongoMissing = javaMissing;

export interface SharedMongo {
  readonly url: string;
  /** A name that no other test has. */
  readonly database: string;
}

/** The first call of a run starts the server, which takes some seconds. */
export async function sharedMongo(): Promise<SharedMongo> {
  return { url: await addressOf("mongo"), database: `t${randomUUID().slice(0, 8)}` };
}
