// A schema of a PostgreSQL database: its connections, its tables, and the right to write.

import { type Clock, clockOf, steadyTime } from "../../core/clock.ts";
import { LongshoreError } from "../../core/errors.ts";
import type { RowStore } from "../../engine/rows.ts";
import { PostgresBlobs } from "./blobs.ts";
import { inWords } from "./errors.ts";
import { type Call, Link, Unsent } from "./link.ts";
import { Owner } from "./owner.ts";
import { loadPg, type PgClient, type RawRow } from "./package.ts";
import { postgresRows } from "./row-store.ts";
import { migrate, readCatalog } from "./schema.ts";
import { Statements } from "./statements.ts";

export interface DatabaseOptions {
  /** As in postgres://user:password@host/database?schema=longshore. */
  readonly url: string;
  readonly node: string;
  readonly leaseMs?: number;
}

export interface PostgresDatabase {
  readonly rows: RowStore;
  readonly blobs: PostgresBlobs;
  /** PostgreSQL's, so that all servers on it agree. */
  readonly clock: Clock;
  readonly wasServed: boolean;
  close(): Promise<void>;
}

const schemaDefault = "longshore";
const connectMsMax = 5_000;
/** Connections that read. */
const readersMax = 4;
/**
 * A statement with arrays is planned for unknown arrays once, and by index: planned again at each execution, or for a table without statistics,
 * 20 rows took nine times as long.
 */
const plans = "-c plan_cache_mode=force_generic_plan -c enable_seqscan=off -c enable_hashjoin=off -c enable_mergejoin=off -c jit=off";

export async function openDatabase({ url, node, leaseMs }: DatabaseOptions): Promise<PostgresDatabase> {
  const { Client } = await loadPg();
  const { connectionString, schema } = partsOf(url);
  const connect = async (role: string, settings: string): Promise<PgClient> => {
    const application_name = `longshore ${role}`;
    const client = new Client({
      connectionString,
      application_name,
      options: settings,
      connectionTimeoutMillis: connectMsMax,
      keepAlive: true,
    });
    // An error without a listener would end the process. The caller that uses the connection gets it as well.
    client.on("error", () => {});
    await client.connect();
    return client;
  };
  const setup = await connect("setup", "");
  let catalog: Awaited<ReturnType<typeof readCatalog>>;
  try {
    await migrate(setup, schema);
    catalog = await readCatalog(setup, schema);
  } finally {
    await setup.end();
  }
  const settings = `${plans} -c search_path=${schema}`;
  const write = new Link(() => connect("write", settings));
  const lease = new Link(() => connect("lease", `-c search_path=${schema}`));
  const readers = Array.from({ length: readersMax }, () => new Link(() => connect("read", settings)));
  const statements = new Statements();
  const time = new ServerTime();
  const closeLinks = () => Promise.all([write, lease, ...readers].map((link) => link.close()));
  const read = (calls: readonly Call[]) => readOnce(leastBusy(readers), calls);
  try {
    const owner = await Owner.take({
      write,
      lease,
      statements,
      schema,
      node,
      leaseMs,
      heard: (timeMs, askedAt) => time.hear(timeMs, askedAt),
    });
    const rows = postgresRows({
      catalog,
      statements,
      commit: (calls) => owner.commit(calls),
      read,
      isOwned: () => owner.isOwned(),
      isGone: () => owner.isGone(),
    });
    const close = async () => {
      await owner.close();
      await closeLinks();
    };
    const blobs = new PostgresBlobs({ statements, run: (calls) => runOnce(leastBusy(readers), calls), now: time.now });
    await blobs.clean();
    return { rows, blobs, clock: clockOf(time.now), wasServed: owner.wasServed, close };
  } catch (error) {
    await closeLinks();
    throw error;
  }
}

/** What PostgreSQL's clock shows, followed by the steady clock of this machine between two times that were heard. */
class ServerTime {
  #aheadMs = 0;
  #now: (() => number) | null = null;

  hear(timeMs: number, askedAt: number): void {
    // It was read between both.
    const at = (askedAt + performance.now()) / 2;
    this.#aheadMs = timeMs - at;
    const wall = () => performance.now() + this.#aheadMs;
    // PostgreSQL's time includes sleep of this machine.
    this.#now ??= steadyTime({ wall, steady: () => performance.now(), uptime: () => performance.now() });
  }

  readonly now = (): number => this.#now?.() ?? Date.now();
}

async function runOnce(link: Link, calls: readonly Call[]): Promise<RawRow[][]> {
  try {
    return await link.run(calls);
  } catch (error) {
    throw inWords(error);
  }
}

/** A read changes nothing: one whose connection was lost is sent again. */
async function readOnce(link: Link, calls: readonly Call[]): Promise<RawRow[][]> {
  try {
    return await link.run(calls);
  } catch (first) {
    if (first instanceof Unsent || isOfStatement(first)) throw inWords(first);
    return runOnce(link, calls);
  }
}

function isOfStatement(error: unknown): boolean {
  return (error as { severity?: unknown }).severity === "ERROR";
}

function leastBusy(links: readonly Link[]): Link {
  return links.reduce((best, link) => (link.pending < best.pending ? link : best));
}

function partsOf(url: string): { connectionString: string; schema: string } {
  const parsed = new URL(url);
  const schema = parsed.searchParams.get("schema") ?? schemaDefault;
  parsed.searchParams.delete("schema");
  if (!/^[a-z_][a-z0-9_]{0,62}$/.test(schema))
    throw new LongshoreError(
      "LONGSHORE_BAD_CONFIG",
      `"${schema}" is no name of a schema: at most 63 small letters, digits and underscores, the first no digit.`,
    );
  return { connectionString: parsed.href, schema };
}
