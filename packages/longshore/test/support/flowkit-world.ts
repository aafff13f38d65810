// FlowKit's coordinator on a real store and the embedded bus, with a test clock and workers whose messages the test writes.

import { randomUUID } from "node:crypto";
import { onTestFinished } from "vitest";
import { EmbeddedBus } from "../../src/bus/embedded-bus.ts";
import { Outbox } from "../../src/bus/outbox.ts";
import type { Bus, BusConsumer } from "../../src/core/bus/bus.ts";
import type { Json, JsonObject } from "../../src/core/json/json.ts";
import type { TaskRow } from "../../src/engine/board/task.ts";
import type { Part } from "../../src/engine/part/store.ts";
import type { Run } from "../../src/engine/run/run.ts";
import { flowkitDialect } from "../../src/protocols/flowkit/dialect/dialect.ts";
import { varsOf } from "../../src/protocols/flowkit/dialect/resolve.ts";
import { type CoordinatorConfig, readCoordinatorConfig } from "../../src/protocols/flowkit/server/coordinator/config.ts";
import { Coordinator } from "../../src/protocols/flowkit/server/coordinator/coordinator.ts";
import { directOutbox } from "../../src/protocols/flowkit/server/coordinator/direct-outbox.ts";
import type { ForeignResults } from "../../src/protocols/flowkit/server/coordinator/foreign-results.ts";
import type { CoordinatorFunction } from "../../src/protocols/flowkit/server/coordinator/functions.ts";
import { decodeEnvelope } from "../../src/protocols/flowkit/wire/decode.ts";
import { dedupIds } from "../../src/protocols/flowkit/wire/hash.ts";
import {
  commandGroup,
  commandTopic,
  type Envelope,
  encodeEnvelope,
  nodeKey,
  signalsGroup,
  statusTopic,
  topicNamesDefault,
} from "../../src/protocols/flowkit/wire/shapes.ts";
import { type Engine, openEngine } from "../../src/server/engine.ts";
import { plainDialects } from "../../src/server/protocols.ts";
import { TestClock } from "../../src/testing/clock.ts";

/** An empty database of foreign workers. */
const noResults: ForeignResults = {
  completed: async () => null,
  adopt: async () => {},
  release: async () => {},
  caughtUp: async () => {},
  reopen: async () => {},
};

export interface FlowkitWorldOptions {
  readonly directory?: string;
  readonly config?: CoordinatorConfig;
  readonly functions?: { readonly [name: string]: CoordinatorFunction };
  /** Wraps the bus to cause faults, or replaces it. */
  readonly bus?: (bus: Bus) => Bus;
  /** Messages go through the outbox of the data file. */
  readonly outbox?: boolean;
  /** What the coordinator asks about results that workers of other implementations store. */
  readonly results?: Partial<ForeignResults>;
}

/** A command as a worker reads it. */
export interface Command extends Envelope {
  readonly payload: JsonObject & { readonly input_inline: JsonObject | null; readonly dead_letters?: string[] };
}

export async function openFlowkit(options: FlowkitWorldOptions = {}) {
  const clock = new TestClock();
  const closers: (() => Promise<unknown>)[] = [];
  onTestFinished(async () => {
    for (const close of closers.splice(0).reverse()) await close();
  });
  const warnings: string[] = [];
  let engine!: Engine;
  let bus!: Bus;
  let coordinator!: Coordinator;
  const changes = new Set<() => void>();

  async function open(): Promise<void> {
    const settings = readCoordinatorConfig(options.config, {}, (message) => warnings.push(message));
    const dialects = [...(await plainDialects()), flowkitDialect({ limits: settings.limits })];
    engine = await openEngine({ directory: options.directory ?? null, clock, random: () => 0.5, dialects });
    const own = new EmbeddedBus(engine.busLog, { clock });
    bus = options.bus?.(own) ?? own;
    engine.listen({ task: tell, run: tell });
    closers.push(() => engine.close());
    closers.push(() => bus.close());
    await openCoordinator();
  }

  async function openCoordinator(): Promise<void> {
    const settings = readCoordinatorConfig(options.config, {}, () => {});
    const quiet = { debug: () => {}, info: () => {}, warn: (message: string) => warnings.push(message) };
    const failed = (what: string, error: unknown) => warnings.push(`${what}: ${String(error)}`);
    const given = {
      bus,
      owner: randomUUID(),
      clock,
      failed: (message: { value: string }, why: string) => void coordinator.undeliverable(message, why),
    };
    const outbox = options.outbox ? new Outbox({ ...given, store: engine.outboxStore }) : null;
    await outbox?.start();
    if (outbox !== null) closers.push(() => outbox.close());
    coordinator = new Coordinator({
      engine,
      bus,
      outbox: outbox ?? directOutbox(bus),
      settings,
      log: quiet,
      failed,
      functions: options.functions,
      ...(options.results === undefined ? {} : { results: { ...noResults, ...options.results } }),
    });
    await coordinator.start();
    await coordinator.ready;
    const mine = coordinator;
    closers.push(() => mine.stop());
  }

  function tell(): void {
    for (const changed of [...changes]) changed();
  }

  /** Waits for a state of the store, which is checked after every change. */
  async function until<Value>(look: () => Promise<Value | undefined | null | false>): Promise<Value> {
    for (;;) {
      let again = false;
      const changed = () => {
        again = true;
      };
      changes.add(changed);
      const found = await look();
      changes.delete(changed);
      if (found) return found;
      if (!again) await new Promise((resolve) => setImmediate(resolve));
    }
  }

  const task = async (run: Run | string, node: string): Promise<TaskRow | undefined> => {
    const place = await coordinator.places.find({ task_id: typeof run === "string" ? run : run.id, node_id: node });
    return place === undefined ? undefined : engine.board.task(place.taskId);
  };

  const partRows = async (run: Run | string, node: string): Promise<Part[]> => {
    const found = await task(run, node);
    return found === undefined ? [] : (await engine.parts.read(found.id, 0, 1_000)).parts;
  };

  await open();
  return {
    clock,
    warnings,
    get engine() {
      return engine;
    },
    get bus() {
      return bus;
    },
    get coordinator() {
      return coordinator;
    },
    until,
    task,
    submit: (graph: unknown, params: JsonObject = {}) => coordinator.tasks.create({ params, graph }),
    /** The run once it has ended. */
    ended: async (run: Run): Promise<Run> => (await engine.runs.result(run.id)) as Run,
    run: async (id: string): Promise<Run> => (await engine.runs.run(id)) as Run,
    vars: async (run: Run): Promise<JsonObject> => {
      const { variables } = (await engine.runs.run(run.id)) as Run;
      return varsOf(variables === null ? {} : (JSON.parse(variables) as { [name: string]: Json }));
    },
    /** Waits until a node is in this state. */
    inState: (run: Run, node: string, state: TaskRow["state"]): Promise<TaskRow> =>
      until(async () => {
        const found = await task(run, node);
        return found?.state === state ? found : undefined;
      }),
    partsOf: async (run: Run, node: string): Promise<JsonObject[]> =>
      (await partRows(run, node)).map(({ value }) => JSON.parse(value) as JsonObject),
    partRows,
    worker: (id: string, roles: string[], more: { capacity?: number; mute?: boolean } = {}) => startWorker(id, roles, more),
    /** Only the coordinator stops and starts again; workers and the bus continue. */
    async restartCoordinator(whileAway: () => Promise<void> = async () => {}): Promise<void> {
      await coordinator.stop();
      await whileAway();
      await openCoordinator();
    },
    /** Records that every reader of a topic would see. */
    async spy(topics: readonly string[]): Promise<Envelope[]> {
      const seen: Envelope[] = [];
      const consumer = bus.subscribe({
        group: `spy-${randomUUID()}`,
        topics,
        from: "latest",
        handle: async (records) => {
          for (const record of records) seen.push(envelopeIn(record.value));
          tell();
        },
      });
      closers.push(() => consumer.close());
      await consumer.ready;
      return seen;
    },
  };

  async function startWorker(id: string, roles: string[], more: { capacity?: number; mute?: boolean }): Promise<ScriptedWorker> {
    const worker = new ScriptedWorker(id, roles, { bus, clock, changed: tell, capacity: more.capacity ?? 1 });
    await worker.start();
    if (!more.mute) await worker.announce();
    closers.push(() => worker.stop());
    return worker;
  }
}

/** Sends the messages of a worker, as the test requests. Accepts as many commands at the same time as its capacity. */
export class ScriptedWorker {
  readonly id: string;
  readonly commands: Command[] = [];
  readonly signals: Envelope[] = [];
  readonly #roles: string[];
  readonly #parts: { bus: Bus; clock: TestClock; changed: () => void; capacity: number };
  readonly #consumers: BusConsumer[] = [];
  readonly #busy = new Set<string>();
  leaseMs = 60_000;

  constructor(id: string, roles: string[], parts: { bus: Bus; clock: TestClock; changed: () => void; capacity: number }) {
    this.id = id;
    this.#roles = roles;
    this.#parts = parts;
  }

  async start(): Promise<void> {
    const { bus, changed } = this.#parts;
    await bus.ensure(this.#roles.map((role) => commandTopic(topicNamesDefault, role)));
    for (const role of this.#roles) {
      this.#subscribe(commandGroup(role), commandTopic(topicNamesDefault, role), (envelope) => {
        this.commands.push(envelope as Command);
        changed();
      });
    }
    this.#subscribe(signalsGroup(this.id), topicNamesDefault.signals, (envelope) => {
      if (envelope.target_worker_id === this.id) this.signals.push(envelope);
      changed();
    });
    await Promise.all(this.#consumers.map(({ ready }) => ready));
  }

  async announce(payload: JsonObject = {}): Promise<void> {
    const { capacity } = this.#parts;
    const told = { worker_id: this.id, type: this.#roles.join(","), version: "2.0.0", capacity: { tasks: capacity } };
    await this.#announce({ kind: "WORKER_ONLINE", ...told, capabilities: { roles: this.#roles }, resume: null, ...payload });
  }

  /** `agoMs`: it was sent this long ago, but arrives only now. */
  async goOffline({ agoMs = 0 } = {}): Promise<void> {
    await this.#announce({ kind: "WORKER_OFFLINE", worker_id: this.id }, agoMs);
  }

  /** The next command that it has not received yet. */
  async next(count = 1): Promise<Command> {
    const wanted = this.#taken + count;
    while (this.commands.length < wanted) await new Promise((resolve) => setImmediate(resolve));
    this.#taken = wanted;
    return this.commands[wanted - 1] as Command;
  }

  #taken = 0;

  /** Accepts the next command and reports this. */
  async accept(): Promise<Command> {
    const command = await this.next();
    await this.accepts(command);
    return command;
  }

  accepts(command: Command): Promise<void> {
    this.#busy.add(nodeKey(command.task_id, command.node_id));
    return this.says(command, "TASK_ACCEPTED", this.#lease());
  }

  beat(command: Command): Promise<void> {
    return this.says(command, "TASK_HEARTBEAT", this.#lease());
  }

  batch(command: Command, uid: string, metrics: JsonObject): Promise<void> {
    return this.says(command, "BATCH_OK", { batch_uid: uid, metrics, artifacts_ref: null });
  }

  batchFailed(command: Command, uid: string, reason: string, permanent = false): Promise<void> {
    return this.says(command, "BATCH_FAILED", {
      batch_uid: uid,
      reason_code: reason,
      permanent,
      error: `${uid} went wrong`,
      artifacts_ref: null,
    });
  }

  done(command: Command, metrics: JsonObject = {}): Promise<void> {
    return this.says(command, "TASK_DONE", { metrics, artifacts_ref: null, final_uid: "__final__" });
  }

  failed(command: Command, reason: string, permanent: boolean): Promise<void> {
    return this.says(command, "TASK_FAILED", { reason_code: reason, permanent, error: null });
  }

  cancelled(command: Command, reason = "cancelled"): Promise<void> {
    return this.says(command, "CANCELLED", { reason });
  }

  /** Waits for a signal that is about this command. */
  async signal(command: Command): Promise<Envelope> {
    const isIt = (signal: Envelope) =>
      signal.task_id === command.task_id && signal.node_id === command.node_id && signal.attempt_epoch === command.attempt_epoch;
    while (!this.signals.some(isIt)) await new Promise((resolve) => setImmediate(resolve));
    return this.signals.find(isIt) as Envelope;
  }

  /** Sends any message about a command; `change` adds a fault. */
  async says(command: Command, kind: string, payload: JsonObject, change: Partial<Envelope> = {}): Promise<void> {
    await this.#parts.bus.publish([this.record(command, kind, payload, change)]);
  }

  record(command: Command, kind: string, payload: JsonObject, change: Partial<Envelope> = {}) {
    const { task_id, node_id, step_type, attempt_epoch } = command;
    const value = encodeEnvelope({
      msg_type: "event",
      role: "worker",
      corr_id: randomUUID(),
      dedup_id: dedupIds.batchOk(command, `${kind}${JSON.stringify(payload)}`),
      task_id,
      node_id,
      step_type,
      attempt_epoch,
      ts_ms: this.#parts.clock.now(),
      payload: { kind, worker_id: this.id, ...payload },
      target_worker_id: null,
      ...change,
    });
    return { topic: statusTopic(topicNamesDefault, step_type), key: nodeKey(task_id, node_id), value };
  }

  /** Without a sign-off, like a process that was killed. */
  async stop(): Promise<void> {
    await Promise.all(this.#consumers.splice(0).map((consumer) => consumer.close()));
  }

  #lease() {
    return { lease_id: `lease-${this.id}`, lease_deadline_ts_ms: this.#parts.clock.now() + this.leaseMs };
  }

  #subscribe(group: string, topic: string, take: (envelope: Envelope) => void): void {
    const handle = async (records: readonly { value: Uint8Array }[]) => {
      for (const { value } of records) take(envelopeIn(value));
    };
    this.#consumers.push(this.#parts.bus.subscribe({ group, topics: [topic], from: "earliest", maxRecords: 1, handle }));
  }

  async #announce(payload: JsonObject, agoMs = 0): Promise<void> {
    const { bus, clock } = this.#parts;
    const value = encodeEnvelope({
      msg_type: "event",
      role: "worker",
      corr_id: randomUUID(),
      dedup_id: dedupIds.announce(String(payload.kind), this.id, clock.now()),
      task_id: "*",
      node_id: "*",
      step_type: "*",
      attempt_epoch: 0,
      ts_ms: clock.now() - agoMs,
      payload,
      target_worker_id: null,
    });
    await bus.ensure([topicNamesDefault.announce]);
    await bus.publish([{ topic: topicNamesDefault.announce, key: null, value }]);
  }
}

function envelopeIn(bytes: Uint8Array): Envelope {
  const read = decodeEnvelope(bytes);
  if (!read.ok) throw new Error(read.why);
  return read.value;
}
