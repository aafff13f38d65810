// Paused lanes and cordoned workers, as rows and in memory. A paused lane is not in the tree in which claims look for tasks, so it costs
// nothing.

import type { Clock } from "../../core/clock.ts";
import { LongshoreError } from "../../core/errors.ts";
import { type AuditKind, type AuditValue, laneTarget } from "../audit/audit.ts";
import type { Audit } from "../audit/local-audit.ts";
import { Additions, eachRow } from "../cached-rows.ts";
import type { GroupCommit } from "../commit.ts";
import type { Once } from "../request-marks.ts";
import { lastText, type RowStore, type TableRows } from "../rows.ts";
import { type Property, propertyTable } from "../tables/endings.ts";
import type { Tx } from "../tx.ts";
import type { Halt, HaltOrder, Halts } from "./halts.ts";
import { type Lanes, laneOf } from "./lanes.ts";
import type { ReadyQueues } from "./ready-queues.ts";
import type { Lane } from "./task.ts";

/** Paused lanes, and cordoned workers: more than an operator orders by hand. */
const haltsMax = 1_000;
/** Names of rows are in an index, whose entries have a maximum length. */
const nameCharsMax = 1_500;

const pausedPrefix = "paused ";
const cordonedPrefix = "cordoned ";

export interface LocalHaltsDeps {
  readonly store: RowStore;
  readonly commit: GroupCommit;
  readonly performed: Once;
  readonly clock: Clock;
  readonly lanes: Lanes;
  readonly queues: ReadyQueues;
  readonly audit: Audit;
}

interface Change {
  readonly name: string;
  /** Null to remove it. */
  readonly halt: Halt | null;
}

export class LocalHalts implements Halts {
  readonly #deps: LocalHaltsDeps;
  readonly #rows: TableRows<Property>;
  readonly #changes: Additions<Change>;
  readonly #cordons = new Map<string, Halt>();
  #changed: (worker: string) => void = () => {};

  constructor(deps: LocalHaltsDeps) {
    this.#deps = deps;
    this.#rows = deps.store.table(propertyTable);
    this.#changes = new Additions(deps.commit, ({ name, halt }) => {
      if (halt === null) this.#rows.remove([name]);
      else this.#rows.write({ name, value: JSON.stringify(halt) });
    });
  }

  /** Must be called once, before tasks are put on their lanes. */
  async recover(): Promise<void> {
    const { commit, lanes } = this.#deps;
    const each = (prefix: string, take: (name: string, halt: Halt) => void) =>
      eachRow(
        commit,
        this.#rows,
        { by: ["name"], below: [`${prefix}${lastText}`] },
        {
          from: [prefix],
          at: ({ name }) => [name],
          take: ({ name, value }) => take(name.slice(prefix.length), JSON.parse(value) as Halt),
        },
      );
    await each(pausedPrefix, (name, halt) => lanes.pause(laneNamed(name), halt));
    await each(cordonedPrefix, (worker, halt) => this.#cordons.set(worker, halt));
  }

  pause(lane: Lane, order: HaltOrder): Promise<Halt | undefined> {
    const { lanes } = this.#deps;
    const name = nameOf(lane);
    return this.#once(
      name,
      (tx) => {
        const known = lanes.pauseOf(lane);
        if (known !== undefined) return known;
        refuseMany(lanes.paused.size, "lanes are paused");
        const halt = this.#halt(tx, name, order);
        lanes.pause(lane, halt);
        tx.undo(() => lanes.resume(lane));
        this.#note(tx, "pause", "queue", laneTarget(lane), null, halt);
        return halt;
      },
      () => lanes.pauseOf(lane),
    );
  }

  async resume(lane: Lane): Promise<boolean> {
    const { commit, lanes, queues, clock, performed } = this.#deps;
    const name = nameOf(lane);
    const resume = (tx: Tx) => {
      const halt = lanes.pauseOf(lane);
      if (halt === undefined) return false;
      lanes.resume(lane);
      tx.undo(() => lanes.pause(lane, halt));
      this.#changes.add(tx, { name, halt: null });
      this.#note(tx, "resume", "queue", laneTarget(lane), halt, null);
      return true;
    };
    const resumed = await performed.once(`resume ${name}`, resume, (_, before) => before);
    // Many claims may wait: they are served in slices.
    for (let more = resumed; more; ) more = await commit.run((tx) => queues.serve(tx, lane, clock.now()));
    return resumed;
  }

  paused(): readonly (readonly [Lane, Halt])[] {
    return [...this.#deps.lanes.paused.values()];
  }

  pauseOf(lane: Lane): Halt | undefined {
    return this.#deps.lanes.pauseOf(lane);
  }

  cordon(worker: string, order: HaltOrder): Promise<Halt | undefined> {
    const name = cordonedPrefix + worker;
    return this.#once(
      name,
      (tx) => {
        const known = this.#cordons.get(worker);
        if (known !== undefined) return known;
        refuseMany(this.#cordons.size, "workers are cordoned");
        const halt = this.#halt(tx, name, order);
        this.#cordons.set(worker, halt);
        tx.undo(() => this.#cordons.delete(worker));
        tx.after(() => this.#changed(worker));
        this.#note(tx, "cordon", "worker", worker, null, halt);
        return halt;
      },
      () => this.#cordons.get(worker),
    );
  }

  uncordon(worker: string): Promise<boolean> {
    const { performed } = this.#deps;
    const name = cordonedPrefix + worker;
    const end = (tx: Tx) => {
      const halt = this.#cordons.get(worker);
      if (halt === undefined) return false;
      this.#cordons.delete(worker);
      tx.undo(() => this.#cordons.set(worker, halt));
      this.#changes.add(tx, { name, halt: null });
      tx.after(() => this.#changed(worker));
      this.#note(tx, "uncordon", "worker", worker, halt, null);
      return true;
    };
    return performed.once(`end ${name}`, end, (_, before) => before);
  }

  cordonOf(worker: string): Halt | undefined {
    return this.#cordons.get(worker);
  }

  onCordon(changed: (worker: string) => void): void {
    this.#changed = changed;
  }

  async #once(name: string, order: (tx: Tx) => Halt, now: () => Halt | undefined): Promise<Halt | undefined> {
    if (name.length > nameCharsMax) {
      throw new LongshoreError(
        "LONGSHORE_BAD_INPUT",
        `The name with its labels has ${name.length} characters; ${nameCharsMax} are allowed.`,
      );
    }
    return this.#deps.performed.once<Halt | undefined>(`begin ${name}`, order, now);
  }

  #note(tx: Tx, verb: string, kind: AuditKind, target: string, was: Halt | null, became: Halt | null): void {
    // The caller and the reason of a halt that begins are those of the entry.
    const now: AuditValue | null = became && { [kind === "queue" ? "paused" : "cordoned"]: true };
    this.#deps.audit.note(tx, { verb, kind, target, was: was && { ...was }, became: now, reason: became?.reason ?? null });
  }

  #halt(tx: Tx, name: string, { reason, by }: HaltOrder): Halt {
    const halt: Halt = { reason, by, at: this.#deps.clock.now() };
    this.#changes.add(tx, { name, halt });
    return halt;
  }
}

function nameOf({ name, labels }: Lane): string {
  return pausedPrefix + JSON.stringify([name, ...labels]);
}

function laneNamed(text: string): Lane {
  const [name, ...labels] = JSON.parse(text) as [string, ...string[]];
  return laneOf(name, labels);
}

function refuseMany(count: number, what: string): void {
  if (count < haltsMax) return;
  throw new LongshoreError("LONGSHORE_LIMIT", `${haltsMax} ${what} already, which is the limit.`);
}
