// Membership in a cluster: a row for each node, and the row of the shard, which names the owner. It has a connection of its own.

import type { Member, Members, Ownership } from "../../cluster/members.ts";
import { readAddress } from "./address.ts";
import { type Connect, connector } from "./connect.ts";
import { Link } from "./link.ts";
import { holding, lockOf } from "./owner.ts";
import type { Parameter, RawRow } from "./package.ts";
import { migrate } from "./schema.ts";
import { startError } from "./start-error.ts";
import { Statements } from "./statements.ts";

/** The row of a node that does not renew it for this long is removed. */
const goneAfter = "1 hour";
/** A node that has renewed its row within this time counts as running. */
const thereFor = "10 seconds";

export async function openMembers(url: string): Promise<Members> {
  const address = readAddress(url);
  const { schema } = address;
  const open = await connector(address);
  const { secret, own } = await setUp(open, schema).catch((error: unknown) => {
    throw startError(error, address);
  });
  const link = new Link(() => open({ role: "node", settings: `-c search_path=${schema}` }));
  const statements = new Statements();
  const run = async (sql: string, ...values: Parameter[]): Promise<RawRow[]> => {
    const [rows = []] = await link.run([{ statement: statements.of(sql), values }]);
    return rows;
  };
  return {
    secret,
    address: own,
    look: async () => ownershipOf(await run(lookSql(schema))),
    async announce({ id, url: at, version, speaks }) {
      await run(announceSql, id, at, version, `{${speaks.join(",")}}`);
      await run(`DELETE FROM node WHERE seen_at < now() - interval '${goneAfter}'`);
    },
    list: async () => (await run(listSql)).map(memberOf),
    async leave(id) {
      await run("DELETE FROM node WHERE id = ?", id);
    },
    close: () => link.close(),
  };
}

/** Creates the schema if it is missing. Reads the secret, and the address from which PostgreSQL sees this node connect. */
async function setUp(open: Connect, schema: string): Promise<{ secret: Uint8Array; own: string | null }> {
  const setup = await open({ role: "setup", settings: "" });
  try {
    await migrate(setup, schema);
    const { rows } = await setup.query(`SELECT encode(secret, 'hex') AS secret, host(inet_client_addr()) AS own FROM ${schema}.meta`);
    const [row] = rows;
    return { secret: Buffer.from(String(row?.secret), "hex"), own: typeof row?.own === "string" ? row.own : null };
  } finally {
    await setup.end();
  }
}

function lookSql(schema: string): string {
  const isLocked = `EXISTS (SELECT 1 FROM pg_locks WHERE ${holding(lockOf(schema))})`;
  return `SELECT shard.node, node.address, shard.epoch, shard.expires_at <= now() OR NOT ${isLocked} FROM shard LEFT JOIN node ON node.id = shard.node WHERE shard.id = 0`;
}

const announceSql = `INSERT INTO node (id, address, version, speaks, started_at, seen_at) VALUES (?, ?, ?, ?::int[], now(), now())
  ON CONFLICT (id) DO UPDATE SET address = excluded.address, version = excluded.version, speaks = excluded.speaks, seen_at = now()`;

const ms = (column: string) => `(extract(epoch FROM ${column}) * 1000)::bigint`;
const listSql = `SELECT node.id, address, version, array_to_string(speaks, ','), ${ms("started_at")}, ${ms("seen_at")}, shard.epoch,
  (extract(epoch FROM shard.expires_at - now()) * 1000)::bigint
  FROM node LEFT JOIN shard ON shard.node = node.id AND shard.expires_at > now() WHERE seen_at > now() - interval '${thereFor}' ORDER BY node.id`;

function ownershipOf([row]: readonly RawRow[]): Ownership {
  const [node = null, address = null, epoch, isFree] = row ?? [];
  const owner = node === null || address === null ? null : { node: String(node), url: String(address), epoch: Number(epoch) };
  return { owner, isFree: isFree === "t" };
}

function memberOf([id, url, version, speaks, startedAt, seenAt, epoch = null, leaseMs = null]: RawRow): Member {
  return {
    ...{ id: String(id), url: String(url), version: String(version) },
    speaks: String(speaks).split(",").map(Number),
    startedAt: Number(startedAt),
    seenAt: Number(seenAt),
    isOwner: epoch !== null,
    epoch: epoch === null ? null : Number(epoch),
    leaseMs: leaseMs === null ? null : Number(leaseMs),
  };
}
