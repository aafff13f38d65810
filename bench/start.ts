// Cold start to a healthy answer, idle memory and idle CPU of `longshore dev`, beside a Node process with an empty HTTP server.
import { get } from "node:http";
import { freePort, withFolder } from "./environment.ts";
import { command } from "./ours.ts";
import { cpuMicroseconds, type Running, residentBytes, start as startProcess } from "./processes.ts";
import type { Cell, Options, Report } from "./report.ts";
import { median, ratioByRound } from "./stats.ts";

const ASK_EVERY_MS = 2;
const HEALTHY_LIMIT_MS = 30_000;
// After this time what belongs to starting up is over.
const SETTLE_MS = 2_000;
const IDLE_MS = 30_000;
const QUICK_IDLE_MS = 3_000;

const BARE_SERVER = 'require("node:http").createServer((q, s) => s.end("{}")).listen(Number(process.argv[1]), "127.0.0.1")';

interface Figures {
  readonly healthyMs: number;
  readonly residentMib: number;
  readonly idleCpuMsPerSecond: number;
}

interface Round {
  readonly ours: Figures;
  readonly bare: Figures;
}

export async function start(options: Options): Promise<Report> {
  const idle = options.quick ? QUICK_IDLE_MS : IDLE_MS;
  const rounds: Round[] = [];
  for (let round = 0; round < options.rounds; round++) {
    const ours = await withFolder((folder) => measure((port) => [command, "dev", "--port", String(port), "--data", folder], folder, idle));
    const bare = await withFolder((folder) => measure((port) => ["-e", BARE_SERVER, String(port)], folder, idle));
    rounds.push({ ours, bare });
  }
  return summarise(rounds, idle);
}

async function measure(args: (port: number) => string[], folder: string, idleMs: number): Promise<Figures> {
  const port = await freePort();
  const before = performance.now();
  const running: Running = startProcess(process.execPath, args(port), { cwd: folder });
  try {
    await healthy(port, before);
    const healthyMs = performance.now() - before;
    await pause(SETTLE_MS);
    const cpuBefore = cpuMicroseconds(running.pid);
    const idleBefore = performance.now();
    await pause(idleMs);
    const idleSeconds = (performance.now() - idleBefore) / 1000;
    const idleCpuMsPerSecond = (cpuMicroseconds(running.pid) - cpuBefore) / 1000 / idleSeconds;
    return { healthyMs, residentMib: residentBytes(running.pid) / 2 ** 20, idleCpuMsPerSecond };
  } finally {
    await running.stop();
  }
}

const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

async function healthy(port: number, since: number): Promise<void> {
  while (!(await answers(port))) {
    if (performance.now() - since > HEALTHY_LIMIT_MS) throw new Error(`no healthy answer on port ${port} after ${HEALTHY_LIMIT_MS} ms`);
    await pause(ASK_EVERY_MS);
  }
}

const answers = (port: number): Promise<boolean> =>
  new Promise((resolve) => {
    const request = get({ host: "127.0.0.1", port, path: "/health", agent: false }, (response) => {
      response.resume();
      resolve(response.statusCode === 200);
    });
    request.once("error", () => resolve(false));
  });

function summarise(rounds: readonly Round[], idleMs: number): Report {
  const row = (label: string, pick: (figures: Figures) => number): Cell[] => {
    const ours = rounds.map((round) => pick(round.ours));
    const bare = rounds.map((round) => pick(round.bare));
    return [label, median(ours), median(bare), ratioByRound(ours, bare).median];
  };
  const rows = [
    row("cold start to a healthy answer, ms", (figures) => figures.healthyMs),
    row("idle memory, MiB resident", (figures) => figures.residentMib),
    row(`idle CPU over ${idleMs / 1000} s, ms a second`, (figures) => figures.idleCpuMsPerSecond),
  ];
  const table = {
    title: "longshore dev beside a bare node:http server, medians over rounds",
    columns: ["figure", "longshore dev", "bare Node", "ratio"],
    rows,
  };
  return { tables: [table], targets: [], violations: [], checked: 0, rounds };
}
