// npm run bench -- NAME [--json] [--rounds N] [--quick] [--client undici|raw] [--only PART]
import { parseArgs } from "node:util";
import { describeMachine, enterNamespace, isInside, refuseMemoryDisk } from "./environment.ts";
import { CLIENTS } from "./http-connection.ts";
import { type Options, printReport, type Report } from "./report.ts";

interface Benchmark {
  readonly says: string;
  readonly rounds: number;
  /** Runs beside a peer that binds every address, so inside a private network. */
  readonly apart?: boolean;
  /** What can be measured by itself, with --only. */
  readonly parts?: readonly string[];
  /** Fetches peers while there is still a network. */
  prepare?(): Promise<void>;
  load(): Promise<(options: Options) => Promise<Report>>;
}

const BENCHMARKS: Record<string, Benchmark> = {
  embedded: {
    says: "in-process tasks beside BullMQ on a durable Redis and beside bare SQLite",
    rounds: 5,
    load: async () => (await import("./embedded.ts")).embedded,
  },
  "workflow-graph": {
    says: "claim and complete over HTTP beside the real in-memory server",
    rounds: 5,
    apart: true,
    load: async () => (await import("./workflow-graph.ts")).workflowGraph,
  },
  latency: {
    says: "time from start to handler on an idle server beside BullMQ",
    rounds: 5,
    load: async () => (await import("./latency.ts")).latency,
  },
  growth: {
    says: "cost of a task in a full file, and of a late step in a long run",
    rounds: 5,
    load: async () => (await import("./growth.ts")).growth,
  },
  functions: {
    says: "durable functions in one process and over HTTP beside Restate's server with its TypeScript SDK",
    rounds: 3,
    parts: ["rate", "growth", "sleeping"],
    load: async () => (await import("./functions.ts")).functions,
  },
  conductor: {
    says: "our worker beside the official SDK, our server beside Conductor 3.32.3",
    rounds: 1,
    parts: ["shapes"],
    load: async () => (await import("./conductor.ts")).conductor,
  },
  stepflow: {
    says: "our worker beside Stepflow's Python worker, our server beside the real orchestrator",
    rounds: 1,
    apart: true,
    parts: ["workers", "servers", "idle", "chain"],
    prepare: async () => void (await import("./stepflow-peers.ts")).stepflowPeers(),
    load: async () => (await import("./stepflow.ts")).stepflow,
  },
  flowkit: {
    says: "batches through our FlowKit worker and coordinator beside Kafka's client by itself",
    rounds: 1,
    parts: ["rate", "latency", "growth"],
    load: async () => (await import("./flowkit.ts")).flowkit,
  },
  postgres: {
    says: "the store on PostgreSQL beside our SQLite, graphile-worker and pg-boss; take-over; the nodes of a cluster",
    rounds: 3,
    parts: ["tasks", "chains", "take-over", "nodes"],
    load: async () => (await import("./postgres.ts")).postgres,
  },
  start: {
    says: "cold start, idle memory and idle CPU beside a bare Node server",
    rounds: 5,
    load: async () => (await import("./start.ts")).start,
  },
};

const QUICK_ROUNDS = 2;

function usage(): string {
  const names = Object.entries(BENCHMARKS).map(([name, { says }]) => `  ${name.padEnd(16)}${says}`);
  return ["usage: npm run bench -- NAME [--json] [--rounds N] [--quick] [--client undici|raw] [--only PART]", ...names, ""].join("\n");
}

async function main(): Promise<number> {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: {
      json: { type: "boolean" },
      quick: { type: "boolean" },
      rounds: { type: "string" },
      client: { type: "string" },
      only: { type: "string" },
      help: { type: "boolean" },
    },
  });
  const [name = "", ...rest] = positionals;
  const benchmark = BENCHMARKS[name];
  if (values.help || !benchmark || rest.length > 0) {
    process.stderr.write(usage());
    return values.help ? 0 : 2;
  }
  const quick = values.quick ?? false;
  const rounds = values.rounds === undefined ? (quick ? QUICK_ROUNDS : benchmark.rounds) : Number(values.rounds);
  if (!Number.isInteger(rounds) || rounds < 1) throw new Error(`--rounds must be a whole number from 1, not ${values.rounds}`);
  const client = CLIENTS.find((known) => known === (values.client ?? CLIENTS[0]));
  if (client === undefined) throw new Error(`--client must be one of ${CLIENTS.join(", ")}, not ${values.client}`);
  const { only } = values;
  const parts = benchmark.parts ?? [];
  if (only !== undefined && !parts.includes(only)) {
    throw new Error(`--only must be one of ${parts.join(", ") || "nothing: this benchmark has no parts"}, not ${only}`);
  }
  await refuseMemoryDisk();
  if (!isInside()) await benchmark.prepare?.();
  const inside = benchmark.apart ? enterNamespace() : undefined;
  if (inside !== undefined) return inside;

  const machine = describeMachine();
  const options = { rounds, quick, client, ...(only === undefined ? {} : { only }) };
  const report = await (await benchmark.load())(options);
  if (values.json) process.stdout.write(`${JSON.stringify({ name, machine, ...options, ...report }, null, 2)}\n`);
  else printReport(name, machine, options, report);
  return report.violations.length === 0 ? 0 : 1;
}

// When it is ended from outside, it must still end the servers that it started; they listen for this process's exit.
for (const signal of ["SIGINT", "SIGTERM"] as const) process.once(signal, () => process.exit(1));

process.exitCode = await main().catch((error: unknown) => {
  process.stderr.write(`bench: ${error instanceof Error ? error.message : String(error)}\n`);
  return 1;
});
