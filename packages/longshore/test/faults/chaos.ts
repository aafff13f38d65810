// A schedule of faults from a seed, and the code that performs it.
//
// The same seed gives the same schedule, but not the same effects: the operating system decides what each process does when a fault hits it.
import { setTimeout as pause } from "node:timers/promises";
import type { Link } from "./link.ts";
import type { ManagedProcess } from "./processes.ts";
import { type Random, seededRandom } from "./random.ts";

export type Fault =
  /** Each stumble is a process that is killed this long after its start. */
  | { atMs: number; do: "kill-server"; downMs: number; stumblesMs: number[] }
  /** SIGTERM: a graceful stop. */
  | { atMs: number; do: "end-server"; downMs: number }
  | { atMs: number; do: "stop-server"; stopMs: number }
  | { atMs: number; do: "kill-worker"; worker: number; downMs: number }
  | { atMs: number; do: "stop-worker"; worker: number; stopMs: number }
  | { atMs: number; do: "silence-link"; link: number; silentMs: number }
  | { atMs: number; do: "cut-link"; link: number }
  | { atMs: number; do: "cancel-run" };

export type FaultCounts = Record<Fault["do"], number>;

export interface ChaosOptions {
  seed: number;
  durationMs: number;
  workers: number;
  links: number;
  /** The term of the workers' leases: a stop lasts longer. */
  termMs: number;
  /** The number of each fault, spread over the whole time. */
  counts: FaultCounts;
}

interface ChaosTargets {
  server: ManagedProcess;
  workers: ManagedProcess[];
  links: (Link & { name: string })[];
  cancelOne(random: Random): Promise<void>;
  note(kind: "link-silent" | "link-restored" | "link-cut", name: string): void;
}

/** A process is down for up to about half a term: some leases last longer than this and some do not. */
const DOWN_MS_MAX = 600;
/** Even when a loaded machine is late, a restarted process runs for some time before the next fault. */
const UP_MS_MIN = 400;
/** The shortest and longest time that a stopped worker sleeps beyond its term: when it wakes, others hold its leases. */
const OVERSLEEP_MS: [number, number] = [300, 1500];
/** Every third kill of the server is followed by one or two more while it starts, which takes about this long. */
const STUMBLE_CHANCE = 1 / 3;
const STUMBLES_MAX = 2;
const STUMBLE_MS_MAX = 500;

export function planFaults({ seed, durationMs, workers, links, termMs, counts }: ChaosOptions): Fault[] {
  const random = seededRandom(seed);
  const atMs = (): number => random.between(0, durationMs);
  const downMs = (): number => random.between(0, DOWN_MS_MAX);
  const pastTermMs = (): number => termMs + random.between(...OVERSLEEP_MS);
  const worker = (): number => random.between(0, workers - 1);
  const link = (): number => random.between(0, links - 1);
  const stumblesMs = (): number[] => {
    const count = random.chance(STUMBLE_CHANCE) ? random.between(1, STUMBLES_MAX) : 0;
    return Array.from({ length: count }, () => random.between(0, STUMBLE_MS_MAX));
  };
  const make: Record<Fault["do"], () => Fault> = {
    "kill-server": () => ({ atMs: atMs(), do: "kill-server", downMs: downMs(), stumblesMs: stumblesMs() }),
    "end-server": () => ({ atMs: atMs(), do: "end-server", downMs: downMs() }),
    "stop-server": () => ({ atMs: atMs(), do: "stop-server", stopMs: pastTermMs() }),
    "kill-worker": () => ({ atMs: atMs(), do: "kill-worker", worker: worker(), downMs: downMs() }),
    "stop-worker": () => ({ atMs: atMs(), do: "stop-worker", worker: worker(), stopMs: pastTermMs() }),
    "silence-link": () => ({ atMs: atMs(), do: "silence-link", link: link(), silentMs: pastTermMs() }),
    "cut-link": () => ({ atMs: atMs(), do: "cut-link", link: link() }),
    "cancel-run": () => ({ atMs: atMs(), do: "cancel-run" }),
  };
  const kinds = Object.keys(make) as Fault["do"][];
  return kinds.flatMap((kind) => Array.from({ length: counts[kind] }, make[kind])).sort((a, b) => a.atMs - b.atMs);
}

/**
 * Performs a schedule to its end. Afterwards everything works again. Faults of one target follow each other, and those of other targets
 * happen at the same time.
 */
export async function playFaults(faults: readonly Fault[], seed: number, targets: ChaosTargets): Promise<void> {
  const random = seededRandom(seed);
  const queues = new Map<string, Promise<void>>();
  const began = Date.now();
  for (const fault of faults) {
    await pause(Math.max(0, began + fault.atMs - Date.now()));
    const target = targetOf(fault);
    queues.set(
      target,
      (queues.get(target) ?? Promise.resolve()).then(() => play(fault, targets, random)),
    );
  }
  await Promise.all(queues.values());
}

function targetOf(fault: Fault): string {
  if ("worker" in fault) return `worker ${fault.worker}`;
  if ("link" in fault) return `link ${fault.link}`;
  return fault.do === "cancel-run" ? "runs" : "server";
}

async function play(fault: Fault, { server, workers, links, cancelOne, note }: ChaosTargets, random: Random): Promise<void> {
  switch (fault.do) {
    case "kill-server":
      await server.kill();
      for (const afterMs of fault.stumblesMs) await server.stumble(afterMs);
      return comeBack(server, fault.downMs);
    case "end-server":
      await server.end();
      return comeBack(server, fault.downMs);
    case "stop-server":
      return doze(server, fault.stopMs);
    case "kill-worker":
      await workers[fault.worker]?.kill();
      return comeBack(workers[fault.worker], fault.downMs);
    case "stop-worker":
      return doze(workers[fault.worker], fault.stopMs);
    case "silence-link": {
      const link = links[fault.link];
      if (!link) return;
      link.silence();
      note("link-silent", link.name);
      await pause(fault.silentMs);
      note("link-restored", link.name);
      return link.restore();
    }
    case "cut-link":
      links[fault.link]?.cut();
      return note("link-cut", links[fault.link]?.name ?? "");
    case "cancel-run":
      return cancelOne(random);
  }
}

/** How long a service besides the server and its workers stays down. */
const AWAY_MS_MAX = 500;

/** The service is killed and started again until the signal aborts. Afterwards it runs. */
export function killAgainAndAgain(
  name: string,
  service: { down(signal: NodeJS.Signals): Promise<void>; up(): Promise<void> },
  seed: number,
  lifeMs: [number, number],
): (over: AbortSignal) => Promise<void> {
  return async (over) => {
    const random = seededRandom(seed);
    let kills = 0;
    while (!over.aborted) {
      await pause(random.between(...lifeMs), undefined, { signal: over }).catch(() => {});
      if (over.aborted) break;
      await service.down("SIGKILL");
      await pause(random.between(0, AWAY_MS_MAX));
      await service.up();
      kills++;
    }
    process.stdout.write(`faults: ${name} was killed ${kills} times\n`);
  };
}

async function comeBack(target: ManagedProcess | undefined, downMs: number): Promise<void> {
  await pause(downMs);
  await target?.start();
  await pause(UP_MS_MIN);
}

async function doze(target: ManagedProcess | undefined, stopMs: number): Promise<void> {
  target?.pause();
  await pause(stopMs);
  target?.resume();
}
