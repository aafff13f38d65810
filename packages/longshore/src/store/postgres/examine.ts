// Examines a PostgreSQL for `longshore doctor`, without changing anything in it.

import { incompleteName, type Marks, movedName, readMark } from "../marks.ts";
import { type PostgresAddress, readAddress } from "./address.ts";
import { type Connect, connector } from "./connect.ts";
import { connectionsOfServer } from "./database.ts";
import { holding, lockOf } from "./owner.ts";
import type { PgClient } from "./package.ts";
import { schemaVersion } from "./schema.ts";
import { readSettings, type Settings } from "./settings.ts";
import { startError } from "./start-error.ts";

export interface PostgresExamination {
  readonly version: string;
  readonly settings: Settings;
  readonly isVacuumOn: boolean;
  /** `ahead` is the time of PostgreSQL minus that of this machine. `roundTrip` is how long the request took. */
  readonly clockMs: { readonly ahead: number; readonly roundTrip: number };
  /** Whether a session uses the same process of PostgreSQL in all transactions. */
  readonly keepsSessions: boolean;
  readonly connections: { readonly max: number; readonly used: number; readonly needed: number };
  /** The first missing right of the role; null when it has all rights. */
  readonly missingRight: string | null;
  /** Null when there is no schema yet. */
  readonly data: PostgresData | null;
}

export interface PostgresData {
  readonly schemaVersion: number;
  readonly knownVersion: number;
  readonly oldestReader: number;
  readonly owner: { readonly node: string | null; readonly epoch: number; readonly leaseMs: number; readonly hasLock: boolean };
  readonly marks: Marks;
}

/** Throws LONGSHORE_BAD_CONFIG or LONGSHORE_STORE_UNAVAILABLE, with what to do, for a PostgreSQL that a server could not use. */
export async function examinePostgres(url: string): Promise<PostgresExamination> {
  const address = readAddress(url);
  try {
    return await examine(address);
  } catch (error) {
    throw startError(error, address);
  }
}

async function examine(address: PostgresAddress): Promise<PostgresExamination> {
  const connect = await connector(address);
  const client = await connect({ role: "doctor", settings: "-c search_path=pg_catalog" });
  try {
    const { schema } = address;
    const [row = {}] = (
      await client.query(`SELECT current_setting('server_version') AS version, current_setting('autovacuum') AS vacuum,
        current_setting('track_counts') AS counts`)
    ).rows;
    return {
      version: String(row.version),
      settings: await readSettings(client),
      isVacuumOn: row.vacuum === "on" && row.counts === "on",
      clockMs: await compareClocks(client),
      keepsSessions: await keepsSessions(connect),
      connections: await countConnections(client),
      missingRight: await missingRight(client, schema),
      data: await readData(client, schema),
    };
  } finally {
    // The connection is not needed any more, so a failure of its end has no effect.
    await client.end().catch(() => {});
  }
}

async function compareClocks(client: PgClient): Promise<PostgresExamination["clockMs"]> {
  const askedAt = performance.now();
  const wall = Date.now();
  const { rows } = await client.query("SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint::text AS now");
  const roundTrip = performance.now() - askedAt;
  return { ahead: Math.round(Number(rows[0]?.now) - wall - roundTrip / 2), roundTrip };
}

/**
 * A pooler in transaction mode assigns a process of PostgreSQL to a session for one transaction only. Here two sessions begin and end
 * transactions in a changing order. So behind such a pooler, a session gets another process than before, in whichever order the pool
 * assigns them.
 */
async function keepsSessions(connect: Connect): Promise<boolean> {
  const sessions: PgClient[] = [];
  const pidOf = async (client: PgClient) => (await client.query("SELECT pg_backend_pid() AS pid")).rows[0]?.pid;
  try {
    for (let at = 0; at < 2; at++) sessions.push(await connect({ role: "doctor", settings: "" }));
    const [one, other] = sessions as [PgClient, PgClient];
    const pids = new Map<PgClient, Set<unknown>>(sessions.map((client) => [client, new Set()]));
    for (const order of [
      [one, other],
      [one, other],
      [other, one],
      [one, other],
    ]) {
      for (const client of order) {
        await client.query("BEGIN");
        pids.get(client)?.add(await pidOf(client));
      }
      for (const client of order) await client.query("COMMIT");
    }
    return [...pids.values()].every((seen) => seen.size === 1);
  } finally {
    for (const client of sessions) await client.end().catch(() => {});
  }
}

async function countConnections(client: PgClient): Promise<PostgresExamination["connections"]> {
  const { rows } = await client.query(`
    SELECT least(
        current_setting('max_connections')::int - current_setting('superuser_reserved_connections')::int,
        (SELECT CASE WHEN rolconnlimit < 0 THEN NULL ELSE rolconnlimit END FROM pg_catalog.pg_roles WHERE rolname = current_user),
        (SELECT CASE WHEN datconnlimit < 0 THEN NULL ELSE datconnlimit END FROM pg_catalog.pg_database WHERE datname = current_database())
      ) AS max,
      (SELECT count(*)::int FROM pg_catalog.pg_stat_activity WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()) AS used`);
  return { max: Number(rows[0]?.max), used: Number(rows[0]?.used), needed: connectionsOfServer };
}

async function missingRight(client: PgClient, schema: string): Promise<string | null> {
  const { rows } = await client.query(`
    SELECT to_regnamespace('${schema}') IS NOT NULL AS there,
      has_database_privilege(current_database(), 'CREATE') AS "mayCreate",
      coalesce((SELECT has_schema_privilege(oid, 'CREATE, USAGE') FROM pg_catalog.pg_namespace WHERE nspname = '${schema}'), false) AS "mayUse",
      coalesce((SELECT bool_and(has_table_privilege(c.oid, 'SELECT') AND has_table_privilege(c.oid, 'INSERT') AND has_table_privilege(c.oid, 'UPDATE')
          AND has_table_privilege(c.oid, 'DELETE'))
        FROM pg_catalog.pg_class AS c JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace WHERE n.nspname = '${schema}' AND c.relkind = 'r'),
        true) AS "mayWrite"`);
  const [row = {}] = rows;
  if (row.there !== true) return row.mayCreate === true ? null : "create a schema in this database";
  if (row.mayUse !== true) return `use the schema ${schema} and create tables in it`;
  return row.mayWrite === true ? null : `read and write the tables of the schema ${schema}`;
}

async function readData(client: PgClient, schema: string): Promise<PostgresData | null> {
  const there = await client
    .query(
      `SELECT to_regclass('${schema}.meta') IS NOT NULL AND to_regclass('${schema}.shard') IS NOT NULL
       AND has_table_privilege('${schema}.meta', 'SELECT') AND has_table_privilege('${schema}.shard', 'SELECT') AS there`,
    )
    .catch(() => ({ rows: [{ there: false }] }));
  if (there.rows[0]?.there !== true) return null;
  const { rows } = await client.query(`
    SELECT schema_version, oldest_reader, epoch::text, node, CASE WHEN isfinite(expires_at) THEN (extract(epoch FROM expires_at - now()) * 1000)::float8 END AS lease,
      EXISTS (SELECT 1 FROM pg_catalog.pg_locks WHERE ${holding(lockOf(schema))}) AS locked,
      (SELECT value FROM ${schema}.property WHERE name = '${movedName}') AS moved,
      (SELECT value FROM ${schema}.property WHERE name = '${incompleteName}') AS incomplete
    FROM ${schema}.meta, ${schema}.shard WHERE id = 0`);
  const [row = {}] = rows;
  const mark = (value: unknown) => readMark(typeof value === "string" ? value : null);
  return {
    schemaVersion: Number(row.schema_version),
    knownVersion: schemaVersion,
    oldestReader: Number(row.oldest_reader),
    owner: {
      node: (row.node as string | null) ?? null,
      epoch: Number(row.epoch),
      leaseMs: Math.round(Number(row.lease)),
      hasLock: row.locked === true,
    },
    marks: { moved: mark(row.moved), incomplete: mark(row.incomplete) },
  };
}
