// Compares the store on PostgreSQL with others. Tasks: with our store on SQLite, and with graphile-worker and pg-boss on the same
// PostgreSQL. Runs of three steps: with SQLite. Also measures the nodes of a cluster (cluster.ts), and a take-over: how long it takes until
// a worker has one of many open tasks.
import { cluster } from "./cluster.ts";
import { withFolder } from "./environment.ts";
import { type PostgresReportInput, postgresReport } from "./postgres-report.ts";
import { type PostgresServer, startPostgres } from "./postgres-server.ts";
import type { PostgresLoop, PostgresRequest, SideName, TakeOver } from "./postgres-side.ts";
import { measureApart } from "./processes.ts";
import type { Options, Report } from "./report.ts";

export const CONCURRENCIES = [1, 10, 100] as const;
const SIDES = {
  tasks: ["sqlite", "postgres", "graphile-worker", "pg-boss"],
  chains: ["sqlite", "postgres"],
} as const satisfies Record<string, readonly SideName[]>;
const OPEN_TASKS = { full: [20_000, 200_000], quick: [2_000] } as const;
const TAKE_OVERS = 3;

const ask = <T>(request: PostgresRequest) => measureApart<T>("postgres-side.js", request);

export async function postgres(options: Options): Promise<Report> {
  const stores = options.only === "nodes" ? [] : [await measureStores(options)];
  const nodes = options.only === undefined || options.only === "nodes" ? [await cluster(options)] : [];
  const reports = [...stores, ...nodes];
  return {
    tables: reports.flatMap(({ tables }) => tables),
    targets: reports.flatMap(({ targets }) => targets),
    violations: reports.flatMap(({ violations }) => violations),
    checked: reports.reduce((sum, { checked }) => sum + checked, 0),
    rounds: { stores: stores[0]?.rounds, nodes: nodes[0]?.rounds },
  };
}

function measureStores(options: Options): Promise<Report> {
  return withFolder(async (folder) => {
    const server = await startPostgres(folder);
    try {
      return postgresReport({
        tasks: await loops(server, "tasks", options),
        chains: await loops(server, "chains", options),
        takeOvers: options.only === undefined || options.only === "take-over" ? await takeOvers(server, options) : [],
      });
    } finally {
      await server.stop();
    }
  });
}

async function loops(server: PostgresServer, kind: keyof typeof SIDES, options: Options): Promise<PostgresReportInput["tasks"]> {
  const rounds: PostgresReportInput["tasks"][number][] = [];
  if (options.only !== undefined && options.only !== kind) return rounds;
  const times = options.quick ? { warmUpSeconds: 0.3, seconds: 0.7 } : { warmUpSeconds: 1, seconds: 2 };
  for (let round = 0; round < options.rounds; round++) {
    for (const concurrency of CONCURRENCIES) {
      const sides = new Map<SideName, PostgresLoop>();
      for (const side of SIDES[kind]) {
        const url = await server.fresh();
        sides.set(side, await ask<PostgresLoop>({ kind, side, url, serverPid: server.pid, concurrency, ...times }));
      }
      rounds.push({ concurrency, sides });
    }
  }
  return rounds;
}

async function takeOvers(server: PostgresServer, { quick }: Options): Promise<PostgresReportInput["takeOvers"]> {
  const measured: PostgresReportInput["takeOvers"][number][] = [];
  for (const open of OPEN_TASKS[quick ? "quick" : "full"]) {
    const url = await server.fresh();
    await ask<null>({ kind: "post", url });
    await copyTask(server, url, open - 1);
    const times: TakeOver[] = [];
    for (let time = 0; time < TAKE_OVERS; time++) times.push(await ask<TakeOver>({ kind: "takeOver", url }));
    measured.push({ open, times });
  }
  return measured;
}

/** Makes copies of the one task that there is, each with an id and a place of its own. */
async function copyTask(server: PostgresServer, url: string, copies: number): Promise<void> {
  const columns = await server.query(
    "SELECT column_name FROM information_schema.columns WHERE table_schema = 'longshore' AND table_name = 'task'",
    url,
  );
  const names = columns.map(({ column_name }) => String(column_name));
  const made: Record<string, string> = { id: "id || '-' || copy", sequence: "sequence + copy" };
  const values = names.map((name) => made[name] ?? name).join(", ");
  const copied = `SELECT ${values} FROM longshore.task, generate_series(1, ${copies}) AS copy`;
  await server.query(`INSERT INTO longshore.task (${names.join(", ")}) ${copied}`, url);
  // PostgreSQL cleans up after the copying now, so that this work does not slow the take-over.
  await server.query("VACUUM ANALYZE longshore.task", url);
  await server.query("CHECKPOINT", url);
}
