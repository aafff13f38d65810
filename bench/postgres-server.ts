// A PostgreSQL of our own: a new cluster in a temporary folder, on a free loopback port, as an unprivileged user. Each answer follows a
// real fsync. It serves all sides of a benchmark; each measurement has a database of its own in it.
import { spawnSync } from "node:child_process";
import { chownSync, existsSync, readdirSync } from "node:fs";
import { join } from "node:path";
import pg from "pg";
import { freePort } from "./environment.ts";
import { start } from "./processes.ts";

const DEBIAN_FOLDER = "/usr/lib/postgresql";
/** PostgreSQL refuses to run as root: this user exists everywhere. */
const NOBODY = 65_534;
const SETTINGS = [
  "listen_addresses=127.0.0.1",
  "unix_socket_directories=",
  "max_connections=200",
  "fsync=on",
  "synchronous_commit=on",
  // A server that has run for a while writes its log into files that it has used before. A new server would create each file first, which
  // takes as long as thousands of commits.
  "min_wal_size=1GB",
  "max_wal_size=4GB",
  "checkpoint_timeout=30min",
  "shared_buffers=256MB",
] as const;
/** Files of the log that are made before the first measurement, 16 MiB each: more than a measurement writes. */
const LOG_FILES = 24;
const READY_TRIES_MAX = 600;

export interface PostgresServer {
  readonly pid: number;
  /** A new database. Removes the one before, so that nothing of it is written during the next measurement. */
  fresh(): Promise<string>;
  query(sql: string, url?: string): Promise<Record<string, unknown>[]>;
  stop(): Promise<void>;
}

export async function startPostgres(folder: string): Promise<PostgresServer> {
  const binaries = foundBinaries();
  const isRoot = process.getuid?.() === 0;
  const user = isRoot ? { uid: NOBODY, gid: NOBODY } : {};
  if (isRoot) chownSync(folder, NOBODY, NOBODY);
  // Texts are compared as bytes, whatever the language of the machine is.
  const env = { LC_ALL: "C", TZ: "UTC" };
  const data = join(folder, "data");
  const flags = ["-D", data, "--username=bench", "--auth=trust", "--encoding=UTF8", "--no-instructions"];
  const made = spawnSync(join(binaries, "initdb"), flags, { ...user, env: { ...process.env, ...env }, cwd: folder, encoding: "utf8" });
  if (made.status !== 0) throw new Error(`initdb failed: ${made.stderr}`);
  const port = await freePort();
  const settings = [...SETTINGS, `port=${port}`].flatMap((each) => ["-c", each]);
  const running = start(join(binaries, "postgres"), ["-D", data, ...settings], { cwd: folder, env, ...user, stopWith: "SIGINT" });
  const urlOf = (database: string) => `postgres://bench@127.0.0.1:${port}/${database}`;
  const query = async (sql: string, url = urlOf("postgres")): Promise<Record<string, unknown>[]> => {
    const client = new pg.Client({ connectionString: url });
    await client.connect();
    try {
      return (await client.query(sql)).rows;
    } finally {
      await client.end();
    }
  };
  await untilReady(query);
  for (let file = 0; file < LOG_FILES; file++)
    await query("SELECT pg_logical_emit_message(false, 'bench', 'fill'); SELECT pg_switch_wal()");
  await query("CHECKPOINT");
  let databases = 0;
  return {
    pid: running.pid,
    fresh: async () => {
      if (databases > 0) await query(`DROP DATABASE bench_${databases} WITH (FORCE)`);
      await query(`CREATE DATABASE bench_${++databases}`);
      await query("CHECKPOINT");
      return urlOf(`bench_${databases}`);
    },
    query,
    stop: running.stop,
  };
}

async function untilReady(query: (sql: string) => Promise<unknown>): Promise<void> {
  for (let tries = 0; ; tries++) {
    try {
      await query("SELECT 1");
      return;
    } catch (error) {
      if (tries === READY_TRIES_MAX) throw error;
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
  }
}

function foundBinaries(): string {
  const versions = existsSync(DEBIAN_FOLDER) ? readdirSync(DEBIAN_FOLDER).sort((one, other) => Number(other) - Number(one)) : [];
  const found = versions.map((version) => join(DEBIAN_FOLDER, version, "bin")).find((folder) => existsSync(join(folder, "initdb")));
  if (found === undefined) throw new Error("PostgreSQL is missing; get it with: apt-get install postgresql");
  return found;
}
