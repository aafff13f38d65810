// The upper limit: the same SQLite driver with only the statements of a task's life.
import { join } from "node:path";
import { ownCpuMicroseconds } from "./processes.ts";

interface Statement {
  run(...values: (string | number)[]): unknown;
  get(...values: (string | number)[]): unknown;
}

interface Database {
  exec(sql: string): void;
  prepare(sql: string): Statement;
  close(): void;
}

const SCHEMA = `
  PRAGMA journal_mode = WAL;
  PRAGMA synchronous = FULL;
  CREATE TABLE task (id INTEGER PRIMARY KEY, state INTEGER NOT NULL, input TEXT NOT NULL, output TEXT, holder TEXT, until INTEGER, ended INTEGER) STRICT;
  CREATE INDEX task_open ON task (state, id) WHERE state < 2;
`;
const INPUT = JSON.stringify({ sequence: 0, padding: "i".repeat(170) });
const OUTPUT = JSON.stringify({ sequence: 0, padding: "o".repeat(50) });
const LEASE_MS = 30_000;

/** The package chooses the same module by the same rule. */
async function open(file: string): Promise<Database> {
  const [major = 0, minor = 0] = process.versions.node.split(".").map(Number);
  const name = major > 22 || (major === 22 && minor >= 13) ? "node:sqlite" : "@photostructure/sqlite";
  const { DatabaseSync } = (await import(name)) as { DatabaseSync: new (path: string) => Database };
  return new DatabaseSync(file);
}

export interface CeilingResult {
  readonly tasks: number;
  readonly perSecond: number;
  readonly cpuPerTask: number;
  readonly lost: number;
}

export interface CeilingOptions {
  readonly batch: number;
  readonly warmUpSeconds: number;
  readonly seconds: number;
}

/** Two commits for each batch, the fewest that a durable result after a durable submission can have. */
export async function bareSqlite(folder: string, options: CeilingOptions): Promise<CeilingResult> {
  const database = await open(join(folder, "ceiling.db"));
  database.exec(SCHEMA);
  const begin = database.prepare("BEGIN IMMEDIATE");
  const commit = database.prepare("COMMIT");
  const insert = database.prepare("INSERT INTO task (id, state, input) VALUES (?, 0, ?)");
  const claim = database.prepare("UPDATE task SET state = 1, holder = ?, until = ? WHERE id = ? AND state = 0");
  const complete = database.prepare("UPDATE task SET state = 2, output = ?, ended = ? WHERE id = ? AND state = 1");
  let next = 1;

  const oneBatch = (): void => {
    const first = next;
    next += options.batch;
    begin.run();
    for (let id = first; id < next; id++) insert.run(id, INPUT);
    for (let id = first; id < next; id++) claim.run("worker", Date.now() + LEASE_MS, id);
    commit.run();
    begin.run();
    for (let id = first; id < next; id++) complete.run(OUTPUT, Date.now(), id);
    commit.run();
  };
  const load = (seconds: number): void => {
    const until = performance.now() + seconds * 1000;
    while (performance.now() < until) oneBatch();
  };

  load(options.warmUpSeconds);
  const before = { tasks: next, cpu: ownCpuMicroseconds(), time: performance.now() };
  load(options.seconds);
  const elapsed = (performance.now() - before.time) / 1000;
  const tasks = next - before.tasks;
  const cpuPerTask = (ownCpuMicroseconds() - before.cpu) / tasks;
  const ended = database.prepare("SELECT count(*) AS n FROM task WHERE state = 2").get() as { n: number };
  database.close();
  return { tasks, perSecond: tasks / elapsed, cpuPerTask, lost: next - 1 - ended.n };
}
