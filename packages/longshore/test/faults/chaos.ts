// A schedule of faults drawn from a seed, and the hands that carry it out.
//
// The schedule is the same for the same seed. What it meets is not: the operating system decides what each process was doing when it was hit.
import { setTimeout as pause } from "node:timers/promises";
import type { ManagedProcess } from "./processes.ts";
import { type Random, seededRandom } from "./random.ts";

export type Fault =
  | { atMs: number; do: "kill-server"; downMs: number }
  | { atMs: number; do: "kill-worker"; worker: number; downMs: number }
  | { atMs: number; do: "stop-worker"; worker: number; stopMs: number }
  | { atMs: number; do: "cancel-run" };

export interface ChaosOptions {
  seed: number;
  durationMs: number;
  workers: number;
  /** The term of the workers' leases: a stop lasts longer. */
  termMs: number;
  /** How many of each, spread over the whole time. */
  counts: Record<Fault["do"], number>;
}

interface ChaosTargets {
  server: ManagedProcess;
  workers: ManagedProcess[];
  cancelOne(random: Random): Promise<void>;
}

/** A process is away for a moment up to about half a term, so that some leases outlive it and some do not. */
const DOWN_MS_MAX = 600;
/** How far past its term a stopped worker sleeps, at least and at most: it wakes to leases that others hold by now. */
const OVERSLEEP_MS: [number, number] = [300, 1500];

export function planFaults({ seed, durationMs, workers, termMs, counts }: ChaosOptions): Fault[] {
  const random = seededRandom(seed);
  const moment = (): number => random.between(0, durationMs);
  const down = (): number => random.between(0, DOWN_MS_MAX);
  const worker = (): number => random.between(0, workers - 1);
  const make: Record<Fault["do"], () => Fault> = {
    "kill-server": () => ({ atMs: moment(), do: "kill-server", downMs: down() }),
    "kill-worker": () => ({ atMs: moment(), do: "kill-worker", worker: worker(), downMs: down() }),
    "stop-worker": () => ({ atMs: moment(), do: "stop-worker", worker: worker(), stopMs: termMs + random.between(...OVERSLEEP_MS) }),
    "cancel-run": () => ({ atMs: moment(), do: "cancel-run" }),
  };
  const kinds = Object.keys(make) as Fault["do"][];
  return kinds.flatMap((kind) => Array.from({ length: counts[kind] }, make[kind])).sort((a, b) => a.atMs - b.atMs);
}

/** Plays a schedule to its end; afterwards every process runs again. Faults of one process follow each other, those of others go on beside. */
export async function playFaults(faults: readonly Fault[], seed: number, { server, workers, cancelOne }: ChaosTargets): Promise<void> {
  const random = seededRandom(seed);
  const queues = new Map<string, Promise<void>>();
  const began = Date.now();
  const enqueue = (name: string, act: () => Promise<void>): void => {
    queues.set(name, (queues.get(name) ?? Promise.resolve()).then(act));
  };
  for (const fault of faults) {
    await pause(Math.max(0, began + fault.atMs - Date.now()));
    if (fault.do === "kill-server") enqueue("server", () => restart(server, fault.downMs));
    else if (fault.do === "cancel-run") enqueue("cancel", () => cancelOne(random));
    else {
      const worker = workers[fault.worker];
      if (worker) enqueue(worker.name, () => (fault.do === "kill-worker" ? restart(worker, fault.downMs) : doze(worker, fault.stopMs)));
    }
  }
  await Promise.all(queues.values());
}

async function restart(target: ManagedProcess, downMs: number): Promise<void> {
  await target.kill();
  await pause(downMs);
  await target.start();
}

async function doze(target: ManagedProcess, stopMs: number): Promise<void> {
  target.pause();
  await pause(stopMs);
  target.resume();
}
