// A schema of a PostgreSQL database: its connections, its tables, and the right to write.

import { type Clock, clockOf, steadyTime } from "../../core/clock.ts";
import type { RowStore } from "../../engine/rows.ts";
import type { Lease } from "../../engine/store.ts";
import { incompleteName, type Marks, movedName, readMark, refuseMarked } from "../marks.ts";
import { readAddress } from "./address.ts";
import { PostgresBlobs } from "./blobs.ts";
import { connectMsMax, connector } from "./connect.ts";
import { type Call, Link, responseMsDefault } from "./link.ts";
import { leaseMsDefault, Owner } from "./owner.ts";
import type { Parameter, RawRow } from "./package.ts";
import { Readers } from "./readers.ts";
import { postgresRows } from "./row-store.ts";
import { type Catalog, migrate, readCatalog } from "./schema.ts";
import { readSettings, weaknessesOf } from "./settings.ts";
import { Statements } from "./statements.ts";

export interface DatabaseOptions {
  /** As in postgres://user:password@host/database?schema=longshore. */
  readonly url: string;
  readonly node: string;
  readonly leaseMs?: number;
  /** True to open even data that a migration has marked. Default: marked data is refused. */
  readonly acceptMarked?: boolean;
  /** How long PostgreSQL may take to respond. Replaced in tests. */
  readonly responseMs?: number;
}

export interface PostgresDatabase {
  readonly rows: RowStore;
  readonly blobs: PostgresBlobs;
  /** The clock of PostgreSQL, so that all servers on it have the same time. */
  readonly clock: Clock;
  readonly wasServed: boolean;
  lease(): Lease;
  /** A sentence for each setting of the database with which acknowledged work may be lost. */
  readonly weaknesses: readonly string[];
  readonly marks: Marks;
  readonly catalog: Catalog;
  /** Carries out statements as the owner, in one transaction. A `?` is a value. */
  commit(...statements: readonly Sql[]): Promise<void>;
  /** Reads what is committed. */
  query(sql: string, ...values: Parameter[]): Promise<RawRow[]>;
  close(): Promise<void>;
}

/** A statement and its values. */
export type Sql = readonly [text: string, ...values: Parameter[]];

/** Number of connections that read. */
const readersMax = 4;
/** Number of connections with which a server reads while another one owns the data. They stay open when it takes over. */
export const sharedReadersMax = 2;
/** Number of connections of one server: those that read, and one each that writes, has the lease, has the list of servers, and starts. */
export const connectionsOfServer: number = readersMax + sharedReadersMax + 4;
/**
 * A statement with arrays is planned only once, for arrays of any content, and uses an index. When it was planned again at each execution, or for a
 * table without statistics, 20 rows took nine times as long.
 */
export const planSettings: string =
  "-c plan_cache_mode=force_generic_plan -c enable_seqscan=off -c enable_hashjoin=off -c enable_mergejoin=off -c jit=off";

export async function openDatabase({
  url,
  node,
  leaseMs = leaseMsDefault,
  responseMs = responseMsDefault,
  acceptMarked = false,
}: DatabaseOptions): Promise<PostgresDatabase> {
  const address = readAddress(url);
  const { schema } = address;
  const open = await connector(address);
  const connect = (role: string, settings: string, withinMs?: number) => open({ role, settings, withinMs });
  const setup = await connect("setup", "");
  let catalog: Catalog;
  let weaknesses: string[];
  try {
    await migrate(setup, schema);
    catalog = await readCatalog(setup, schema);
    weaknesses = weaknessesOf(await readSettings(setup));
  } finally {
    await setup.end();
  }
  const settings = `${planSettings} -c search_path=${schema}`;
  const write = new Link(() => connect("write", settings), responseMs);
  // A connection that does not respond is replaced while the lease still lasts. But a connection that only waits for a locked row must not
  // be replaced, because its own lock would be lost. So the wait for a row has a shorter limit.
  const renewMs = leaseMs / 3;
  const waitMs = Math.ceil(Math.min(responseMs, renewMs) / 2);
  const lease = new Link(
    () => connect("lease", `-c search_path=${schema} -c lock_timeout=${waitMs}`, Math.min(connectMsMax, renewMs)),
    Math.min(responseMs, renewMs),
  );
  const readers = new Readers(readersMax, () => connect("read", settings), responseMs);
  const statements = new Statements();
  const time = new ServerTime();
  const closeLinks = () => Promise.all([write, lease, readers].map((link) => link.close()));
  let owner: Owner | undefined;
  try {
    const taken = await Owner.take({
      write,
      lease,
      statements,
      schema,
      node,
      leaseMs,
      heard: (timeMs, askedAt) => time.hear(timeMs, askedAt),
    });
    owner = taken;
    const callOf = ([text, ...values]: Sql): Call => ({ statement: statements.of(text), values });
    const query = async (...sql: Sql) => (await readers.read([callOf(sql)]))[0] ?? [];
    const marks = await readMarks(query);
    if (!acceptMarked) refuseMarked(address.shown, marks, undoOf(schema));
    const rows = postgresRows({
      catalog,
      statements,
      commit: (calls) => taken.commit(calls),
      read: (calls) => readers.read(calls),
      versions: taken,
      isOwned: () => taken.isOwned(),
      isGone: () => taken.isGone(),
    });
    const close = async () => {
      await taken.close();
      await closeLinks();
    };
    const blobs = new PostgresBlobs({ statements, run: (calls) => readers.run(calls), now: time.now });
    await blobs.clean();
    return {
      ...{ rows, blobs, clock: clockOf(time.now), wasServed: taken.wasServed, weaknesses, marks, catalog, query, close },
      lease: () => taken.lease(),
      commit: (...sql) => taken.commit(sql.map(callOf)),
    };
  } catch (error) {
    await owner?.close();
    await closeLinks();
    throw error;
  }
}

/** The statement that removes the mark of a schema whose data were moved. */
export function undoOf(schema: string): string {
  return `run: DELETE FROM ${schema}.property WHERE name = '${movedName}'`;
}

async function readMarks(query: PostgresDatabase["query"]): Promise<Marks> {
  const found = new Map(await query("SELECT name, value FROM property WHERE name IN (?, ?)", movedName, incompleteName).then(pairs));
  return { moved: readMark(found.get(movedName) ?? null), incomplete: readMark(found.get(incompleteName) ?? null) };
}

function pairs(rows: readonly RawRow[]): [string, string][] {
  return rows.map(([name, value]) => [name as string, value as string]);
}

/** The time of PostgreSQL. Between two times that PostgreSQL reported, it follows the steady clock of this machine. */
class ServerTime {
  #aheadMs = 0;
  #now: (() => number) | null = null;

  hear(timeMs: number, askedAt: number): void {
    // PostgreSQL has read its clock after the request was sent, and before now.
    const at = (askedAt + performance.now()) / 2;
    this.#aheadMs = timeMs - at;
    const wall = () => performance.now() + this.#aheadMs;
    // `uptime` must not include sleeps of this machine, because the time of PostgreSQL already includes them.
    this.#now ??= steadyTime({ wall, steady: () => performance.now(), uptime: () => performance.now() });
  }

  readonly now = (): number => this.#now?.() ?? Date.now();
}
