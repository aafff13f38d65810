// An operator of simulated functions: pauses, resumes, cancels and retries runs and ends their delays at random times. None of these commands
// changes the final result of a function.

import { isRunOpen, type Run } from "../../src/engine/run/run.ts";
import type { Random } from "../faults/random.ts";
import type { Disk } from "./simulation-disk.ts";
import type { Process } from "./simulation-process.ts";
import { cancelledNames, type Program, racesSleep } from "./simulation-programs.ts";

/** The number of orders in one story. */
const ordersMax = 12;

export class Operator {
  readonly #random: Random;
  readonly #disk: Disk;
  /** Programs that will be cancelled. The operator does not touch what they run, because its end would change their own end. */
  readonly #cancelled: readonly string[];
  readonly #hastens: readonly "hasten"[];
  readonly #say: (what: string) => void;
  given = 0;

  constructor(random: Random, disk: Disk, program: Program, say: (what: string) => void) {
    this.#random = random;
    this.#disk = disk;
    this.#cancelled = cancelledNames(program);
    this.#hastens = racesSleep(program) ? [] : ["hasten"];
    this.#say = say;
  }

  get isDone(): boolean {
    return this.given === ordersMax;
  }

  /** One order to a run that it applies to. */
  async order(process: Process): Promise<void> {
    const run = this.#random.pick([...this.#disk.read().runs.values()]);
    if (run === undefined || this.isDone) return;
    this.given++;
    const kind = this.#random.pick(this.#kindsFor(run));
    if (kind === undefined) return;
    this.#say(`${kind} ${run.id} of ${run.workflow}, which is ${run.state}`);
    if (kind === "hasten") await process.runs.hasten(run.id);
    else await process.runs.tell(run.id, { kind });
  }

  /** Continues everything that a command has stopped. Returns false when there is nothing. */
  async bringOn(process: Process, main: string): Promise<boolean> {
    let found = false;
    for (const { id, state } of this.#disk.read().runs.values()) {
      const isOver = id === main && !isRunOpen(state) && state !== "succeeded";
      if (state !== "paused" && !isOver) continue;
      found = true;
      this.#say(`bring on ${id}, which is ${state}`);
      await process.runs.tell(id, { kind: isOver ? "retry" : "resume" });
    }
    return found;
  }

  #kindsFor({ state, workflow }: Run): readonly ("pause" | "resume" | "cancel" | "retry" | "hasten")[] {
    const cancels = this.#cancelled.some((name) => workflow.startsWith(`${name}.`)) ? [] : (["cancel", "cancel"] as const);
    if (state === "paused") return ["resume", "resume", "resume", ...cancels, ...this.#hastens];
    if (isRunOpen(state)) return ["pause", "pause", ...cancels, ...this.#hastens];
    return state === "succeeded" ? [] : ["retry"];
  }
}
