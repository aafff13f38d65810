// A FlowKit worker on the embedded bus. The test acts as the coordinator: it sends commands and reads the worker's events.

import { randomUUID } from "node:crypto";
import { onTestFinished } from "vitest";
import { EmbeddedBus } from "../../src/bus/embedded-bus.ts";
import type { Bus } from "../../src/core/bus/bus.ts";
import { type Clock, systemClock } from "../../src/core/clock.ts";
import type { Json, JsonObject } from "../../src/core/json/json.ts";
import type { Task } from "../../src/core/task.ts";
import { LocalBus } from "../../src/engine/bus/local-bus.ts";
import { GroupCommit } from "../../src/engine/commit.ts";
import { StoredBytes } from "../../src/engine/stored-bytes.ts";
import type { ArtifactStore } from "../../src/protocols/flowkit/wire/artifacts/artifacts.ts";
import { decodeEnvelope } from "../../src/protocols/flowkit/wire/decode.ts";
import { dedupIds } from "../../src/protocols/flowkit/wire/hash.ts";
import {
  commandTopic,
  type Envelope,
  encodeEnvelope,
  nodeKey,
  statusTopic,
  topicNamesDefault,
} from "../../src/protocols/flowkit/wire/shapes.ts";
import type { FlowkitOptions } from "../../src/protocols/flowkit/worker/options.ts";
import { flowkit } from "../../src/protocols/flowkit/worker/worker.ts";
import type { Notice } from "../../src/runner/notices.ts";
import { openDatabase } from "../../src/store/sqlite/driver.ts";
import { sqliteRows } from "../../src/store/sqlite/row-store.ts";
import { migrate } from "../../src/store/sqlite/schema.ts";
import { type WorkHandle, type WorkOptions, work } from "../../src/work.ts";
import { MemoryArtifacts } from "./flowkit-memory.ts";

export interface Told {
  readonly topic: string;
  readonly key: string | null;
  readonly envelope: Envelope;
  readonly payload: { readonly [field: string]: Json };
}

export interface Command {
  readonly role?: string;
  readonly taskId?: string;
  readonly nodeId?: string;
  readonly epoch?: number;
  readonly payload?: JsonObject;
  readonly change?: { readonly [field: string]: unknown };
}

async function memoryBus(): Promise<Bus> {
  const db = await openDatabase(":memory:", { synchronous: "NORMAL" });
  migrate(db);
  const rows = sqliteRows(db, () => null);
  const commit = new GroupCommit(rows, () => systemClock.now());
  const log = new LocalBus({ store: rows, commit, stored: new StoredBytes(rows, commit), clock: systemClock });
  await log.recover();
  const bus = new EmbeddedBus(log, { againMs: 1 });
  onTestFinished(async () => {
    await bus.close();
    void commit.close();
    db.close();
  });
  return bus;
}

export interface WorldOptions {
  readonly roles?: readonly string[];
  readonly bus?: Bus;
  readonly topics?: Partial<typeof topicNamesDefault>;
}

export async function flowkitWorld(options: WorldOptions = {}) {
  const bus = options.bus ?? (await memoryBus());
  return new FlowkitWorld(bus, { ...topicNamesDefault, ...options.topics }).listen(options.roles ?? ["probe"]);
}

export class FlowkitWorld {
  readonly bus: Bus;
  readonly topics: typeof topicNamesDefault;
  readonly artifacts = new MemoryArtifacts();
  readonly told: Told[] = [];
  readonly logs: { readonly [field: string]: unknown }[] = [];
  readonly notices: Notice[] = [];
  readonly taskId = randomUUID();
  readonly #watchers = new Set<() => void>();

  constructor(bus: Bus, topics: typeof topicNamesDefault) {
    this.bus = bus;
    this.topics = topics;
  }

  async listen(roles: readonly string[]): Promise<this> {
    const topics = [...roles.map((role) => statusTopic(this.topics, role)), this.topics.announce, this.topics.reply];
    await this.bus.ensure([...topics, ...roles.map((role) => commandTopic(this.topics, role)), this.topics.query, this.topics.signals]);
    const consumer = this.bus.subscribe({
      group: `coord.${randomUUID().slice(0, 6)}`,
      topics,
      from: "earliest",
      handle: async (records) => {
        for (const { topic, key, value } of records) {
          const read = decodeEnvelope(value);
          if (!read.ok) throw new Error(read.why);
          this.told.push({ topic, key, envelope: read.value, payload: read.value.payload });
        }
        for (const watcher of [...this.#watchers]) watcher();
      },
    });
    onTestFinished(() => consumer.close());
    await consumer.ready;
    return this;
  }

  /** A worker with these tasks, on the memory's artifacts by default. */
  async worker(
    tasks: readonly Task[],
    options: FlowkitOptions = {},
    runner: Partial<WorkOptions> & { readonly clock?: Clock } = {},
  ): Promise<WorkHandle> {
    const { topics } = this;
    const names: FlowkitOptions = {
      topicCmdFmt: topics.cmd,
      topicStatusFmt: topics.status,
      topicWorkerAnnounce: topics.announce,
      topicQuery: topics.query,
      topicReply: topics.reply,
      topicSignals: topics.signals,
    };
    const artifacts: ArtifactStore = options.artifacts ?? this.artifacts;
    const told: FlowkitOptions = { dbCancelPollMs: 0, ...names, log: (entry) => void this.logs.push(entry), ...options };
    const handle = await work({
      tasks,
      on: flowkit({ ...told, bus: options.bus ?? this.bus, artifacts }),
      signals: false,
      logger: (notice) => void this.notices.push(notice),
      ...runner,
    });
    onTestFinished(() => handle.stop({ force: true }));
    return handle;
  }

  /** Sends a command. */
  async start(inputInline: JsonObject | null = null, command: Command = {}): Promise<void> {
    const { role = "probe", payload } = command;
    const start = { cmd: "TASK_START", input_ref: null, input_inline: inputInline, batching: null, cancel_token: randomUUID(), ...payload };
    await this.send(commandTopic(this.topics, role), "cmd", start, command);
  }

  async cancel(reason: string, worker: string, command: Command & { readonly deadlineMs?: number } = {}): Promise<void> {
    const payload = { sig: "CANCEL", reason, cancel_token: null, deadline_ts_ms: command.deadlineMs ?? null };
    const change = { target_worker_id: worker, ...command.change };
    await this.send(this.topics.signals, "event", payload, { ...command, change });
  }

  async discover(command: Command = {}): Promise<void> {
    await this.send(this.topics.query, "query", { query: "TASK_DISCOVER", want_epoch: command.epoch ?? 1 }, command);
  }

  async send(topic: string, type: "cmd" | "event" | "query", payload: JsonObject, command: Command): Promise<void> {
    const { role = "probe", taskId = this.taskId, nodeId = "n", epoch = 1, change = {} } = command;
    const key = { task_id: taskId, node_id: nodeId, attempt_epoch: epoch };
    const envelope = {
      msg_type: type,
      role: "coordinator" as const,
      corr_id: randomUUID(),
      dedup_id: type === "cmd" ? dedupIds.start(key) : randomUUID(),
      ...key,
      step_type: role,
      ts_ms: Date.now(),
      payload,
      target_worker_id: null,
      ...change,
    };
    await this.bus.publish([{ topic, key: nodeKey(taskId, nodeId), value: encodeEnvelope(envelope) }]);
  }

  /** What was told about a node, in order, without heartbeats. */
  events(nodeId = "n"): Told[] {
    return this.told.filter(({ envelope, payload }) => envelope.node_id === nodeId && payload.kind !== "TASK_HEARTBEAT");
  }

  kinds(nodeId = "n"): Json[] {
    return this.events(nodeId).map(({ payload }) => payload.kind as Json);
  }

  /** The sum of a metric over the batches of a node. */
  sum(metric: string, nodeId = "n"): number {
    return this.events(nodeId)
      .filter(({ payload }) => payload.kind === "BATCH_OK")
      .reduce((sum, { payload }) => sum + Number((payload.metrics as JsonObject)[metric] ?? 0), 0);
  }

  /** Waits for the first event of this kind. */
  async event(kind: string, nodeId = "n"): Promise<Told> {
    return this.find(({ envelope, payload }) => payload.kind === kind && (envelope.node_id === nodeId || envelope.node_id === "*"));
  }

  /** Waits for what ends a node. */
  async end(nodeId = "n", epoch = 1): Promise<Told> {
    const ends: readonly unknown[] = ["TASK_DONE", "TASK_FAILED", "CANCELLED"];
    return this.find(
      ({ envelope, payload }) => envelope.node_id === nodeId && envelope.attempt_epoch === epoch && ends.includes(payload.kind),
    );
  }

  async find(wanted: (told: Told) => boolean): Promise<Told> {
    for (;;) {
      const found = this.told.find(wanted);
      if (found !== undefined) return found;
      await new Promise<void>((resolve) => {
        const wake = () => {
          this.#watchers.delete(wake);
          resolve();
        };
        this.#watchers.add(wake);
      });
    }
  }

  logged(event: string): { readonly [field: string]: unknown }[] {
    return this.logs.filter((entry) => entry.event === event);
  }
}
