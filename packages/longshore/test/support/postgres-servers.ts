// Servers on a real PostgreSQL that all tests of a `describe` block share.

import { afterAll, beforeAll, onTestFinished } from "vitest";
import { type Server, serve } from "../../src/server/index.ts";
import { startMsMax, TestPostgres } from "./postgres.ts";

/** Call it in a `describe` block: PostgreSQL runs from before its first test until after its last. */
export function sharedPostgres() {
  let started: TestPostgres;
  beforeAll(async () => {
    started = await TestPostgres.start();
  }, startMsMax);
  afterAll(() => started.remove(), startMsMax);
  return {
    postgres: (): TestPostgres => started,
    /** Opens a server with its data at this address. It is closed at the end of the test. */
    async open(store: string): Promise<Server> {
      const server = await serve({ store, port: 0 });
      onTestFinished(() => server.close(0));
      return server;
    },
  };
}
