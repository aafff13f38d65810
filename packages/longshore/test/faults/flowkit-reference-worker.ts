// A model of the reference's worker, step by step under a clock of the test. It has the habits that matter when something is away. It runs
// every command that it reads, whatever its epoch, and reads the next one when it is done. It claims batches without an epoch. It believes
// MongoDB about the end of a source, and keeps no partial artifact there, because MongoDB refuses its way of writing. It dies silently.

import type { Bus, BusConsumer } from "../../src/core/bus/bus.ts";
import { commandGroup, commandTopic, topicNamesDefault } from "../../src/protocols/flowkit/wire/shapes.ts";
import type { TestClock } from "../../src/testing/clock.ts";
import { type Command, ScriptedWorker } from "../support/flowkit-world.ts";
import { itemsOf, madeOf } from "./flowkit-shape.ts";
import type { Happening } from "./history.ts";

/** What workers share: the part of MongoDB that they use. */
export interface SharedStore {
  readonly claims: Set<string>;
  readonly complete: Set<string>;
  /** The parts of a node that are stored so far. */
  partials(taskId: string, node: string): Promise<readonly { uid: string; items: readonly string[] }[]>;
}

export interface ReferenceWorkerParts {
  readonly bus: Bus;
  readonly clock: TestClock;
  readonly store: SharedStore;
  readonly batches: number;
  note(happening: Happening): void;
}

interface Run {
  readonly command: Command;
  /** Batches of its last claim that are not processed yet. */
  readonly made: { uid: string; items: readonly string[] }[];
  next: number;
  tokens: number;
}

/** It sends a heartbeat once in this many steps. */
const BEAT_STEPS = 5;

export class ReferenceWorker {
  readonly id: string;
  readonly role: string;
  readonly #parts: ReferenceWorkerParts;
  readonly #says: ScriptedWorker;
  #commands: BusConsumer | undefined;
  #run: Run | undefined;
  #steps = 0;
  #alive = true;

  constructor(id: string, role: string, parts: ReferenceWorkerParts) {
    this.id = id;
    this.role = role;
    this.#parts = parts;
    this.#says = new ScriptedWorker(id, [role], { bus: parts.bus, clock: parts.clock, changed: () => {}, capacity: 1 });
    this.#says.leaseMs = 20_000;
  }

  async start(): Promise<void> {
    await this.#says.announce();
    const topic = commandTopic(topicNamesDefault, this.role);
    const handle = async ([record]: readonly { value: Uint8Array }[]) => {
      const command = JSON.parse(Buffer.from(record?.value ?? []).toString()) as Command;
      if (this.#run !== undefined || !this.#alive) return;
      this.#commands?.pause();
      this.#run = { command, made: [], next: 0, tokens: 0 };
      const { task_id: task, node_id: node, attempt_epoch: epoch } = command;
      this.#parts.note({ kind: "node-begun", task, node, epoch });
      await this.#says.accepts(command);
    };
    this.#commands = this.#parts.bus.subscribe({
      group: commandGroup(this.role),
      topics: [topic],
      from: "earliest",
      maxRecords: 1,
      handle,
    });
    await this.#commands.ready;
  }

  /** Processes one batch, or looks for more. */
  async step(): Promise<void> {
    const run = this.#run;
    if (run === undefined || !this.#alive) return;
    if (this.#steps++ % BEAT_STEPS === 0) await this.#says.beat(run.command);
    const batch = await this.#next(run);
    if (batch === "wait") return;
    if (batch === "end") return this.#end(run);
    const { task_id: task, node_id: node, attempt_epoch: epoch } = run.command;
    const token = `${this.id}-${epoch}-${run.tokens++}`;
    this.#parts.note({ kind: "batch-processed", task, node, epoch, uid: batch.uid, token });
    await this.#says.batch(run.command, batch.uid, { skus: [...batch.items], count: batch.items.length, token });
  }

  /** As by `kill -9`. */
  async kill(): Promise<void> {
    this.#alive = false;
    this.#run = undefined;
    await this.#commands?.close();
  }

  async #next(run: Run): Promise<{ uid: string; items: readonly string[] } | "wait" | "end"> {
    const { store, batches } = this.#parts;
    const { task_id, node_id, payload } = run.command;
    const { input_args } = (payload.input_inline ?? {}) as { input_args?: { from_nodes: string[] } };
    if (input_args === undefined) return run.next < batches ? { uid: `b${run.next}`, items: itemsOf(run.next++) } : "end";
    const left = run.made.shift();
    if (left !== undefined) return left;
    for (const source of input_args.from_nodes) {
      for (const { uid, items } of await store.partials(task_id, source)) {
        const claim = JSON.stringify([task_id, node_id, source, uid]);
        if (store.claims.has(claim)) continue;
        store.claims.add(claim);
        for (const [made, cut] of madeOf(node_id, source, uid, items)) run.made.push({ uid: made, items: cut });
        return run.made.shift() ?? "wait";
      }
    }
    return input_args.from_nodes.every((source) => store.complete.has(JSON.stringify([task_id, source]))) ? "end" : "wait";
  }

  async #end(run: Run): Promise<void> {
    const { task_id, node_id } = run.command;
    this.#parts.store.complete.add(JSON.stringify([task_id, node_id]));
    await this.#says.done(run.command, {});
    this.#run = undefined;
    this.#commands?.resume();
  }
}
