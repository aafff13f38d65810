// The worker half of FlowKit. Commands and reports are sent over the bus, with one consumer for each role; the data is in the artifact
// store. README.md of this protocol is the contract.
//
// A worker takes a command only with a slot for it, and commits its offset when the acceptance has been sent. So a busy or stopping worker
// leaves it to others. If a worker dies in between, another one gets the command again.

import { NoRoom, skipping } from "../../../bus/skip-records.ts";
import type { Backoff } from "../../../core/backoff.ts";
import type { Bus, BusConsumer, BusRecord } from "../../../core/bus/bus.ts";
import { pause } from "../../../core/clock.ts";
import { retry } from "../../../core/retry.ts";
import { untilAborted } from "../../../core/until-aborted.ts";
import type { Capabilities, Transport, TransportHost } from "../../../runner/transport.ts";
import { decodeEnvelope, onceEach, type Read, readCommand, readQuery, readSignal } from "../wire/decode.ts";
import { commandGroup, commandTopic, type Envelope, nodeKey, queryGroup, signalsGroup, statusTopic } from "../wire/shapes.ts";
import { Announcer } from "./announcer.ts";
import { type Connection, connect } from "./connect.ts";
import { Intake } from "./intake.ts";
import { type WorkerLog, workerLog } from "./log.ts";
import { checkRole, checkServed, type FlowkitOptions, type WorkerSettings, workerSettings } from "./options.ts";
import { ProcessedMessages } from "./processed-messages.ts";
import { answerQuery } from "./query-replies.ts";
import { resumeRuns, stateIds } from "./resume.ts";
import { FlowkitRun, type RunSurroundings } from "./run.ts";

/**
 * `await work({ tasks, on: flowkit("http://127.0.0.1:4500") })` for a Longshore server, or
 * `flowkit({ brokers: "kafka:9092", mongo: "mongodb://db/flowkit" })`.
 */
export function flowkit(target: string | URL | FlowkitOptions = {}, options: FlowkitOptions = {}): Transport {
  const given: FlowkitOptions =
    typeof target === "string" || target instanceof URL ? { ...options, url: target } : { ...target, ...options };
  return new FlowkitWorker(workerSettings(given), connect(given));
}

/** The wire carries neither log lines nor deferrals. */
const capabilities: Capabilities = { defer: false, progress: false, streams: true, logs: false, blobs: false, cancel: true };
const opening: Backoff = { kind: "exponential", delayMs: 500, maxMs: 15_000, jitter: 0.3 };
/** How long the start waits for the broker. If the broker is not reachable, the worker starts anyway and keeps trying. */
const startPatienceMs = 15_000;
/**
 * A command that is older than this is checked before it runs. Normally a command arrives within milliseconds, and by default no command
 * lapses within this time.
 */
const freshMs = 1_000;
/** Timeout of the leaving announcement, which is optional. */
const goodbyeMs = 1_000;

class FlowkitWorker implements Transport {
  readonly name: string;
  readonly capabilities = capabilities;
  readonly #settings: WorkerSettings;
  readonly #connection: Connection;
  readonly #running = new Map<string, FlowkitRun>();
  readonly #ending = new Set<Promise<void>>();
  readonly #freeStates: string[] = [];
  #host!: TransportHost;
  #bus!: Bus;
  #around!: RunSurroundings;
  #roles: readonly string[] = [];
  #seen!: ProcessedMessages;
  #intake!: Intake;
  #log: WorkerLog = () => {};
  #warn: (code: string, message: string) => void = () => {};
  #announcer: Announcer | undefined;
  readonly #commands = new Map<string, BusConsumer>();
  #others: BusConsumer[] = [];
  #serving: Promise<void> = Promise.resolve();

  constructor(settings: WorkerSettings, connection: Connection) {
    this.#settings = settings;
    this.#connection = connection;
    this.name = `flowkit ${connection.name}`;
  }

  async start(host: TransportHost): Promise<void> {
    const settings = this.#settings;
    this.#host = host;
    this.#roles = settings.roles ?? [...host.tasks.keys()];
    for (const role of this.#roles) checkRole(role);
    checkServed(this.#roles, host.tasks.keys());
    this.#log = workerLog(settings.log, host.clock, { role: "worker", worker_id: settings.workerId, version: settings.workerVersion });
    this.#log("info", "worker.init", { roles: this.#roles });
    this.#warn = onceEach((code, message) => {
      this.#log("warning", code, { reason: message });
      host.notice({ level: "warn", message: `${this.name}: ${message}` });
    });
    this.#seen = new ProcessedMessages(host.clock, settings.dedupCacheSize, settings.dedupTtlMs);
    if (settings.idIsGiven) this.#freeStates.push(...stateIds(settings.workerId, host.slots.total));
    this.#intake = new Intake(host);
    const { bus, artifacts } = await this.#connection.open(host);
    this.#bus = bus;
    this.#around = { settings, host, bus, artifacts };
    this.#log("info", "worker.start", { cfg: { ...settings, adapters: [...settings.adapters.keys()], log: undefined } });
    this.#serving = this.#serve();
    await Promise.race([this.#serving, pause(host.clock, startPatienceMs, host.draining)]);
  }

  /** Subscribes to everything first, then announces the worker, so that a coordinator can rely on the announcement. */
  async #serve(): Promise<void> {
    const { topics, workerId } = this.#settings;
    const host = this.#host;
    const perRole = this.#roles.flatMap((role) => [commandTopic(topics, role), statusTopic(topics, role)]);
    await this.#untilDone("topics", () => this.#bus.ensure([...perRole, topics.announce, topics.query, topics.reply, topics.signals]));
    if (host.draining.aborted) return;
    const signals = this.#listen(signalsGroup(workerId), topics.signals, (record) => this.#signal(record));
    const queries = this.#listen(queryGroup(workerId), topics.query, (record) => this.#query(record));
    this.#others = [signals, queries];
    // Unfinished runs of an earlier process are settled before new commands arrive.
    const resume = await this.#untilDone("worker state", () => resumeRuns(this.#around, this.#roles, this.#freeStates, this.#log));
    if (host.draining.aborted) return;
    for (const role of this.#roles) {
      const consumer = this.#listen(commandGroup(role), commandTopic(topics, role), (record) => this.#command(role, record));
      this.#commands.set(role, consumer);
      this.#intake.attach(consumer);
    }
    const joined = Promise.all([...this.#others, ...this.#commands.values()].map(({ ready }) => ready.catch(() => {})));
    await untilAborted(joined, host.draining).catch(() => {});
    if (host.draining.aborted) return;
    const { bus, settings } = this.#around;
    this.#announcer = new Announcer({ bus, settings, host, roles: this.#roles });
    await this.#untilDone("announcement", () => (this.#announcer as Announcer).online(resume ?? null));
    // Reported only now, because a bus that creates topics on demand was not used before.
    if (!host.draining.aborted) host.working("announcement");
    this.#log("info", "worker.started", { worker_id: workerId });
  }

  async drain(): Promise<void> {
    await Promise.all([...this.#commands.values()].map((consumer) => consumer.close()));
    await this.#serving;
    // Also closes consumers that were just being subscribed.
    await Promise.all([...this.#commands.values()].map((consumer) => consumer.close()));
    await this.#inTime(this.#announcer?.full());
  }

  async stop(): Promise<void> {
    await this.#inTime(Promise.all(this.#ending));
    await this.#inTime(this.#announcer?.offline());
    await Promise.all(this.#others.map((consumer) => consumer.close()));
    await this.#connection.close();
  }

  #listen(group: string, topic: string, handle: (record: BusRecord) => Promise<void>): BusConsumer {
    return this.#bus.subscribe({
      group,
      topics: [topic],
      from: "latest",
      // Each command is committed separately: it is ours when its acceptance was sent.
      maxRecords: 1,
      handle: skipping(handle, ({ place }, { message }) => this.#warn(`${topic}.refused`, `A record was skipped (${place}): ${message}`)),
    });
  }

  async #command(role: string, record: BusRecord): Promise<void> {
    const envelope = this.#read(`cmd.${role}`, record, decodeEnvelope(record.value));
    if (envelope === undefined || this.#seen.has(envelope.dedup_id)) return;
    const command = this.#read(`cmd.${role}`, record, readCommand(envelope));
    if (command === undefined) return;
    if (envelope.step_type !== role) {
      const why = `step_type is ${JSON.stringify(envelope.step_type)} in a command on the topic of ${role}, expected "${role}"`;
      return void this.#read(`cmd.${role}`, record, { ok: false, code: "payload.invalid", why });
    }
    if (command.cmd === "TASK_CANCEL") return this.#runOf(envelope)?.cancel(command.reason || "coordinator_cmd", null);
    if (command.cmd !== "TASK_START" || (await this.#isOvertaken(envelope))) return;
    const slot = this.#isFull(role) ? undefined : await this.#intake.take();
    if (slot === undefined) throw new NoRoom("No slot is free for a command; it is left where it was.");
    const stateId = this.#freeStates.shift();
    const run = new FlowkitRun(envelope, command, this.#around, stateId);
    try {
      this.#running.set(run.key, run);
      if (this.#isFull(role)) this.#intake.block(this.#commands.get(role) as BusConsumer);
      await run.accept();
    } catch (error) {
      this.#release(run, stateId);
      slot.release();
      throw error;
    }
    this.#seen.add(envelope.dedup_id);
    const ended: Promise<void> = slot
      .run(run)
      .then(() => run.over)
      .finally(() => {
        this.#release(run, stateId);
        this.#ending.delete(ended);
      });
    this.#ending.add(ended);
  }

  /**
   * Returns whether a later attempt than that of this command has begun or is about to begin. Only commands that seem old are checked.
   * After an outage, the topic has one command for each lapse. When clocks differ, the effect is an unnecessary check or stop signal, but
   * no command is lost.
   */
  async #isOvertaken({ task_id, node_id, attempt_epoch, ts_ms }: Envelope): Promise<boolean> {
    const { artifacts, host } = this.#around;
    if (host.clock.now() - ts_ms < freshMs) return false;
    // After a failed check the command is kept, because the epoch fences its attempt anyway.
    const newest = (await artifacts.epochOf(task_id, node_id).catch(() => null)) ?? 0;
    if (newest <= attempt_epoch) return false;
    this.#log("info", "worker.cmd.overtaken", { task_id, node_id, epoch: attempt_epoch, newest });
    return true;
  }

  #release(run: FlowkitRun, stateId: string | undefined): void {
    if (this.#running.get(run.key) === run) this.#running.delete(run.key);
    if (stateId !== undefined) this.#freeStates.push(stateId);
    const { step_type: role } = run.active;
    const consumer = this.#commands.get(role);
    if (consumer !== undefined && !this.#isFull(role)) this.#intake.unblock(consumer);
  }

  /** Whether the role has reached the concurrency of its task. */
  #isFull(role: string): boolean {
    const most = this.#host.tasks.get(role)?.concurrency;
    if (most === undefined) return false;
    let running = 0;
    for (const { active } of this.#running.values()) if (active.step_type === role) running++;
    return running >= most;
  }

  async #signal(record: BusRecord): Promise<void> {
    const envelope = this.#read("signals", record, decodeEnvelope(record.value));
    if (envelope === undefined) return;
    const target = envelope.target_worker_id;
    if (target !== null && target !== "" && target !== this.#settings.workerId) return;
    const signal = this.#read("signals", record, readSignal(envelope));
    if (signal !== undefined) this.#runOf(envelope)?.cancel(signal.reason, signal.deadline_ts_ms);
  }

  async #query(record: BusRecord): Promise<void> {
    const envelope = this.#read("query", record, decodeEnvelope(record.value));
    if (envelope === undefined || !this.#roles.includes(envelope.step_type)) return;
    if (this.#read("query", record, readQuery(envelope)) === undefined) return;
    await answerQuery(envelope, this.#running.get(nodeKey(envelope.task_id, envelope.node_id)), this.#around);
  }

  /** The run that a message belongs to; undefined for another epoch. */
  #runOf({ task_id, node_id, attempt_epoch }: Envelope): FlowkitRun | undefined {
    const run = this.#running.get(nodeKey(task_id, node_id));
    return run?.active.attempt_epoch === attempt_epoch ? run : undefined;
  }

  /** Undefined for an unreadable record, which is reported once and skipped. */
  #read<Value>(from: string, { place }: BusRecord, read: Read<Value>): Value | undefined {
    if (read.ok) return read.value;
    this.#warn(`${from}.${read.code}`, `A record was skipped (${place}): ${read.why}.`);
    return undefined;
  }

  /** Tries until the call succeeds; undefined when the worker drains. */
  async #untilDone<Value>(what: string, call: () => Promise<Value>): Promise<Value | undefined> {
    const { clock, draining, failing, working } = this.#host;
    const mayPass = () => true;
    try {
      const once = () => untilAborted(call(), draining);
      const value = await retry(once, { clock, signal: draining, backoff: opening, mayPass, failing: (error) => failing(what, error) });
      working(what);
      return value;
    } catch (error) {
      if (draining.aborted) return undefined;
      throw error;
    }
  }

  async #inTime(work: Promise<unknown> | undefined): Promise<void> {
    // This announcement is optional, so its failure is ignored.
    await Promise.race([work?.catch(() => {}), pause(this.#host.clock, goodbyeMs)]);
  }
}
