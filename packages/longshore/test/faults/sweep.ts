// The crash-point sweep: records every write of a process, and crashes it after each of them.
import { spawnSync } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { checkAfterCrash, type Findings, type Known } from "./sweep-check.ts";
import { CRASHES, digestOf, SweepDisk, writeFiles } from "./sweep-disk.ts";
import { type Op, readOps, straceOf } from "./sweep-trace.ts";

const PROGRAM = fileURLToPath(new URL("./sweep-process.ts", import.meta.url));
/** Thousands of copies of the data folder are made, in memory if possible. */
const PLACE = existsSync("/dev/shm") ? "/dev/shm" : tmpdir();

export const missingForSweep = spawnSync("strace", ["-V"]).status === 0 ? undefined : "the command strace (Debian package strace)";

export interface SweepReport extends Findings {
  /** Moments after which the process was crashed. */
  points: number;
  /** States of the disk that a crash at one of them may leave, each different from the others. */
  crashes: number;
  /** Facts that were acknowledged at the end. */
  answered: number;
}

interface Recording {
  data: string;
  ledger: string;
  ops: Op[];
}

/** For tests of the sweep: a disk that `lies` about its syncs, and a crash only at `every` so many points. */
interface SweepOptions {
  lies?: boolean;
  every?: number;
}

export async function sweep(rounds: number, options: SweepOptions = {}): Promise<SweepReport> {
  const folder = mkdtempSync(join(PLACE, "longshore-sweep-"));
  try {
    const recording = record(folder, rounds);
    return await crashEverywhere(recording, folder, options);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

function record(folder: string, rounds: number): Recording {
  const [data, ledger, trace] = ["data", "ledger", "trace"].map((name) => join(folder, name)) as [string, string, string];
  const [strace = "", ...parameters] = [...straceOf(trace), process.execPath, "--import", "tsx", PROGRAM, data, ledger, String(rounds)];
  const { status, stderr } = spawnSync(strace, parameters, { encoding: "utf8" });
  if (status !== 0) throw new Error(`The workload ended with ${status}: ${stderr}`);
  // The index of the write-ahead log is made again at each start.
  const wanted = (path: string) => path === ledger || (path.startsWith(`${data}/`) && !path.endsWith("-shm")) || path === data;
  return { data, ledger, ops: readOps(readFileSync(trace, "utf8"), wanted) };
}

async function crashEverywhere({ data, ledger, ops }: Recording, folder: string, options: SweepOptions): Promise<SweepReport> {
  const { lies = false, every = 1 } = options;
  const disk = new SweepDisk(data, lies);
  const told = new Told();
  const seen = new Set<string>();
  const report: SweepReport = { points: 0, crashes: 0, answered: 0, lost: [], duplicated: [] };
  for (const op of ops) {
    if (op.path === ledger) {
      if (op.kind === "write") told.read(op.data.toString());
      continue;
    }
    disk.apply(op);
    if (++report.points % every !== 0) continue;
    for (const crash of CRASHES) {
      const files = disk.after(crash);
      const digest = `${told.version} ${digestOf(files)}`;
      if (seen.has(digest)) continue;
      seen.add(digest);
      report.crashes++;
      const place = join(folder, `crash-${report.crashes}`);
      writeFiles(place, files);
      const where = `${crash} after ${op.kind} ${report.points} of ${op.path.slice(data.length + 1)}`;
      const found = await checkAfterCrash(place, told.known()).catch((error: Error) => ({ lost: [error.message], duplicated: [] }));
      report.lost.push(...found.lost.map((what) => `${where}: ${what}`));
      report.duplicated.push(...found.duplicated.map((what) => `${where}: ${what}`));
      rmSync(place, { recursive: true, force: true });
    }
  }
  report.answered = told.known().facts.size;
  return report;
}

/** The content of the ledger so far. */
class Told {
  readonly #facts = new Map<string, string>();
  #doubt: Known["doubt"] = null;
  version = 0;

  read(lines: string): void {
    for (const line of lines.split("\n")) {
      if (line === "") continue;
      if (line !== "answered") this.#doubt = JSON.parse(line) as Known["doubt"];
      else if (this.#doubt !== null) {
        this.#facts.set(this.#doubt.key, this.#doubt.value);
        this.#doubt = null;
        this.version++;
      }
    }
  }

  known(): Known {
    return { facts: this.#facts, doubt: this.#doubt };
  }
}

export function describeSweep({ points, crashes, answered, lost, duplicated }: SweepReport): string {
  return `sweep: ${points} points covered, ${crashes} crashes, ${answered} answered facts, lost ${lost.length}, duplicated ${duplicated.length}`;
}
