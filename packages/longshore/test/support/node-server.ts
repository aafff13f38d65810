// Replaces server/index.ts and server/server.ts when tests run with LONGSHORE_TEST_SERVER=node (vitest.config.ts). The server that a test
// opens is then a node of a cluster on PostgreSQL that does not own the data. Everything that clients send and receive passes over the
// link.

import type { ServeOptions } from "../../src/server/config.ts";
import type { Server } from "../../src/server/handle.ts";
import { serve as serveAlone } from "../../src/server/server.ts";
import { postgresMissing, TestPostgres } from "./postgres.ts";

export { dataDefault, portDefault } from "../../src/server/index.ts";

let started: Promise<TestPostgres> | undefined;
/** A folder that is opened again has the same data. */
const stores = new Map<string, string>();

async function storeOf(data: string | undefined): Promise<string> {
  if (postgresMissing !== undefined) throw new Error(`needs ${postgresMissing}`);
  started ??= TestPostgres.start();
  const postgres = await started;
  const known = data === undefined ? undefined : stores.get(data);
  const store = known ?? postgres.newUrl();
  if (data !== undefined) stores.set(data, store);
  return store;
}

export async function serve({ data, ...options }: ServeOptions = {}): Promise<Server> {
  const isAlone = options.port === null || options.store !== undefined || options.clock !== undefined;
  if (isAlone) return serveAlone({ ...options, ...(data === undefined ? {} : { data }) });
  const { ephemeral: _, acceptDamage: __, ...rest } = options;
  const store = await storeOf(data);
  const owner = await serveAlone({ ...rest, store, port: 0 });
  const node = await serveAlone({ ...rest, store }).catch(async (error: unknown) => {
    await owner.close(0);
    throw error;
  });
  const close = async (deadlineMs?: number) => {
    await node.close(deadlineMs);
    await owner.close(deadlineMs);
  };
  return { ...node, close, [Symbol.asyncDispose]: () => close() };
}
