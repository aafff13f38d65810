// A server that answers as MongoDB does, for tests: one for all test files of a run, with a database of its own for each test. It proves
// that the driver's calls are understood, not what MongoDB would make of every one of them.
import { randomUUID } from "node:crypto";
import { javaMissing } from "./java-service.ts";
import { addressOf } from "./kafka.ts";

/** What is missing on this machine; tests that need it skip themselves and name it. */
export const mongoMissing = javaMissing;

export interface SharedMongo {
  readonly url: string;
  /** Unlike all others. */
  readonly database: string;
}

/** The first call of a run starts the server, which takes some seconds. */
export async function sharedMongo(): Promise<SharedMongo> {
  return { url: await addressOf("mongo"), database: `t${randomUUID().slice(0, 8)}` };
}
