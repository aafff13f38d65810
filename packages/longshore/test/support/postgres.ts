// A real PostgreSQL for tests: a cluster of its own in a temporary folder, on a free loopback port, as an unprivileged user. Each test has a schema
// of its own in it.

import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { chownSync, existsSync, mkdtempSync, openSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { loadPg, type PgClient } from "../../src/store/postgres/package.ts";
import { freePort } from "./port.ts";

const debianFolder = "/usr/lib/postgresql";

function foundBinaries(): string | undefined {
  const versions = existsSync(debianFolder) ? readdirSync(debianFolder).sort((one, other) => Number(other) - Number(one)) : [];
  const folders = versions.map((version) => join(debianFolder, version, "bin"));
  return folders.find((folder) => existsSync(join(folder, "initdb")));
}

const binaries = foundBinaries();

/** What is missing on this machine; tests that need it skip themselves and name it. */
export const postgresMissing = binaries === undefined ? "PostgreSQL 15 or newer (Debian package postgresql)" : undefined;

/** A new cluster takes a second to make, and much longer on a machine that is busy. */
export const startMsMax = 120_000;

export interface PostgresOptions {
  /** Wait for the disk as in production. Most tests are about something else. */
  readonly durable?: boolean;
  /** Note how each statement is carried out, for `plans`. */
  readonly explains?: boolean;
}

/** PostgreSQL refuses to run as root. This user exists everywhere. */
const nobody = 65_534;
const isRoot = process.getuid?.() === 0;
/** In the private network of the conformance tests the only user is root, who looks like another one in a namespace within it. */
const isOnlyRoot = isRoot && !hasUser(nobody);
const asUser = isRoot && !isOnlyRoot ? { uid: nobody, gid: nobody } : {};
/** Texts are compared as bytes, whatever the language of the machine is. */
const environment = { ...process.env, LC_ALL: "C", TZ: "UTC" };

function hasUser(id: number): boolean {
  const file = "/proc/self/uid_map";
  if (!existsSync(file)) return true;
  // Each line is a range: its first id, that id outside, its length.
  const ranges = readFileSync(file, "utf8")
    .trim()
    .split("\n")
    .map((line) => line.trim().split(/\s+/).map(Number));
  return ranges.some(([first = 0, , count = 0]) => id >= first && id < first + count);
}

/** A program of PostgreSQL, with the arguments to start it. */
function program(name: string, args: readonly string[]): [string, string[]] {
  const path = join(binaries as string, name);
  if (!isOnlyRoot) return [path, [...args]];
  return ["unshare", ["--user", `--map-user=${nobody}`, `--map-group=${nobody}`, path, ...args]];
}

function newFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), "longshore-postgres-"));
  if ("uid" in asUser) chownSync(folder, nobody, nobody);
  return folder;
}

export class TestPostgres {
  readonly port: number;
  readonly #folder: string;
  readonly #options: PostgresOptions;
  #process: ChildProcess | undefined;
  #schemas = 0;

  private constructor(port: number, folder: string, options: PostgresOptions) {
    this.port = port;
    this.#folder = folder;
    this.#options = options;
  }

  static async start(options: PostgresOptions = {}): Promise<TestPostgres> {
    const folder = newFolder();
    const flags = ["-D", join(folder, "data"), "--username=longshore", "--auth=trust", "--encoding=UTF8", "--no-sync", "--no-instructions"];
    const made = spawnSync(...program("initdb", flags), { ...asUser, env: environment, cwd: folder, encoding: "utf8" });
    if (made.status !== 0) throw new Error(`initdb failed: ${made.stderr}`);
    const server = new TestPostgres(await freePort(), folder, options);
    await server.up();
    return server;
  }

  /** Follows this server and only reads, until it is promoted. */
  async standby(): Promise<TestPostgres> {
    const folder = newFolder();
    const flags = ["-D", join(folder, "data"), "-h", "127.0.0.1", "-p", String(this.port), "-U", "longshore", "-R", "--checkpoint=fast"];
    const made = spawnSync(...program("pg_basebackup", flags), {
      ...asUser,
      env: environment,
      cwd: folder,
      encoding: "utf8",
    });
    if (made.status !== 0) throw new Error(`pg_basebackup failed: ${made.stderr}`);
    const server = new TestPostgres(await freePort(), folder, this.#options);
    await server.up();
    return server;
  }

  get #log(): string {
    return join(this.#folder, "log");
  }

  /** How statements of the engine were carried out. */
  plans(): string[] {
    return readFileSync(this.#log, "utf8")
      .split(/^(?=\S.*LOG: )/m)
      .filter((entry) => entry.includes("plan:") && /unnest|wanted|\$1/.test(entry));
  }

  /** The address of a schema that no other test has. */
  newUrl(): string {
    return this.urlOf(`test_${++this.#schemas}`);
  }

  urlOf(schema: string): string {
    return `postgres://longshore@127.0.0.1:${this.port}/postgres?schema=${schema}`;
  }

  /** The test's own connection. */
  async connect(): Promise<PgClient> {
    const { Client } = await loadPg();
    const connectionString = `postgres://longshore@127.0.0.1:${this.port}/postgres`;
    const client = new Client({ connectionString, options: "", application_name: "test", connectionTimeoutMillis: 5_000, keepAlive: true });
    client.on("error", () => {});
    await client.connect();
    return client;
  }

  async query(sql: string): Promise<{ [column: string]: unknown }[]> {
    const client = await this.connect();
    try {
      return (await client.query(sql)).rows;
    } finally {
      await client.end();
    }
  }

  async up(): Promise<void> {
    // Committed data survives the end of the process in all cases.
    const fast = this.#options.durable ? [] : ["fsync=off", "full_page_writes=off"];
    const settings = [
      "listen_addresses=127.0.0.1",
      `port=${this.port}`,
      "unix_socket_directories=",
      "max_connections=100",
      ...fast,
      ...(this.#options.explains
        ? ["session_preload_libraries=auto_explain", "auto_explain.log_min_duration=0", "log_line_prefix=%a: "]
        : []),
    ];
    const flags = ["-D", join(this.#folder, "data"), ...settings.flatMap((each) => ["-c", each])];
    const child = spawn(...program("postgres", flags), {
      ...{ ...asUser, env: environment, cwd: this.#folder, stdio: ["ignore", "ignore", openSync(this.#log, "a")] },
    });
    this.#process = child;
    // A run may fail before the cluster is removed: it must end all the same.
    process.once("exit", () => child.kill("SIGQUIT"));
    for (;;) {
      const found = await this.query("SELECT 1 AS one").catch(() => null);
      if (found !== null) return;
      if (child.exitCode !== null) throw new Error(`postgres ended with ${child.exitCode}`);
      await new Promise((resolve) => setImmediate(resolve));
    }
  }

  /** SIGQUIT is an immediate end, like a crash. SIGINT ends sessions first. */
  async down(signal: "SIGQUIT" | "SIGINT" = "SIGQUIT"): Promise<void> {
    const child = this.#process;
    this.#process = undefined;
    if (child === undefined || child.exitCode !== null) return;
    const ended = new Promise((resolve) => child.once("exit", resolve));
    child.kill(signal);
    await ended;
  }

  async remove(): Promise<void> {
    await this.down();
    rmSync(this.#folder, { recursive: true, force: true });
  }
}
