// Cleans up when a run ends: callbacks in reverse order, then processes, then files. Failures are ignored, so that the rest is still done.

import { rm } from "node:fs/promises";
import { type Clock, pause } from "../../../core/clock.ts";

export interface Killable {
  readonly pid?: number | undefined;
  readonly exitCode?: number | null;
  kill(signal?: NodeJS.Signals): boolean;
}

/** How long a process may take to end after SIGTERM. */
const graceMs = 1_000;

export class Cleanup {
  readonly #clock: Clock;
  readonly #calls: (() => unknown)[] = [];
  readonly #processes: Killable[] = [];
  readonly #paths: string[] = [];

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  call(fn: () => unknown): void {
    this.#calls.push(fn);
  }

  subprocess(child: Killable): void {
    this.#processes.push(child);
  }

  path(path: string): void {
    this.#paths.push(path);
  }

  /** Never rejects. Forgets everything that was registered. */
  async run(): Promise<void> {
    for (const fn of this.#calls.splice(0).reverse()) await quietly(fn);
    const alive = this.#processes.splice(0).filter(({ exitCode }) => exitCode === undefined || exitCode === null);
    for (const child of alive) await quietly(() => child.kill("SIGTERM"));
    if (alive.length > 0) await pause(this.#clock, graceMs);
    for (const child of alive) if (child.exitCode === null || child.exitCode === undefined) await quietly(() => child.kill("SIGKILL"));
    for (const path of this.#paths.splice(0)) await quietly(() => rm(path, { recursive: true, force: true }));
  }
}

async function quietly(fn: () => unknown): Promise<void> {
  try {
    await fn();
  } catch {
    // The run is over. A failure must not prevent the rest of the cleanup.
  }
}
