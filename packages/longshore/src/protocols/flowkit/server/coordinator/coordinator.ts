// FlowKit's coordinator on the board and the runs of this server: it sends tasks to workers, receives their events, and sends them stop
// signals. The state of the tasks is in the board.

import { inSlices } from "../../../../bus/record-slices.ts";
import { type Bus, type BusConsumer, recordBytesMax, type Subscription } from "../../../../core/bus/bus.ts";
import { pause } from "../../../../core/clock.ts";
import { toError } from "../../../../core/errors.ts";
import type { Json } from "../../../../core/json/json.ts";
import { parseExact } from "../../../../core/json/json-exact.ts";
import { untilAborted } from "../../../../core/until-aborted.ts";
import { LaneFailure, LaneWorker } from "../../../../engine/board/lane-worker.ts";
import { isOpen, type TaskRow, type TaskRowHead } from "../../../../engine/board/task.ts";
import type { GraphChecks } from "../../dialect/check.ts";
import { functionLane } from "../../dialect/compile.ts";
import { decodeEnvelope, onceEach } from "../../wire/decode.ts";
import { commandGroup, commandTopic, statusTopic } from "../../wire/shapes.ts";
import { Places } from "../task-addresses.ts";
import { Announcements } from "./announcements.ts";
import { Attempts } from "./attempts.ts";
import { BatchRecords } from "./batches.ts";
import { clusterOf } from "./cluster.ts";
import type { CoordinatorSettings } from "./config.ts";
import { Discovery } from "./discovery.ts";
import { Dispatcher } from "./dispatcher.ts";
import type { ForeignResults } from "./foreign-results.ts";
import { type CoordinatorFunction, Functions } from "./functions.ts";
import { InputCheck } from "./input-check.ts";
import { LateAccepts } from "./late-accepts.ts";
import {
  type CoordinatorCounts,
  type CoordinatorEngine,
  type CoordinatorLog,
  noCounts,
  type Outbox,
  type OutgoingMessage,
  tasksIn,
} from "./parts.ts";
import { Registry } from "./registry.ts";
import { Signals } from "./signals.ts";
import { StatusReader } from "./status.ts";
import { FlowkitTasks } from "./tasks.ts";

export interface CoordinatorOptions {
  readonly engine: CoordinatorEngine;
  readonly bus: Bus;
  readonly outbox: Outbox;
  readonly settings: CoordinatorSettings;
  readonly log: CoordinatorLog;
  /** Called with errors that are retried. */
  failed(what: string, error: unknown): void;
  readonly functions?: { readonly [name: string]: CoordinatorFunction };
  readonly isSensitive?: GraphChecks["isSensitive"];
  /** The database of other implementations' workers, if there is one. */
  readonly results?: ForeignResults | undefined;
}

/** The pause before creating topics is retried. */
const retryMs = 1_000;
/** Concurrent functions: they read the data file. */
const slots = 8;

export class Coordinator {
  readonly tasks: FlowkitTasks;
  readonly places: Places;
  readonly counts: CoordinatorCounts = noCounts();
  readonly #options: CoordinatorOptions;
  readonly #registry: Registry;
  readonly #signals: Signals;
  readonly #attempts: Attempts;
  readonly #dispatcher: Dispatcher;
  readonly #batches: BatchRecords;
  readonly #late: LateAccepts;
  readonly #functions: LaneWorker;
  readonly #warn: (code: string, message: string) => void;
  readonly #stopping = new AbortController();
  readonly #consumers: BusConsumer[] = [];
  /** Roles whose topics exist and are consumed, and those in preparation. */
  readonly #served = new Set<string>();
  readonly #serving = new Map<string, Promise<void>>();
  #opening: Promise<void> = Promise.resolve();
  #cluster = "";
  #started = false;
  #opened = false;
  #working = false;
  #stopListening: () => void = () => {};

  constructor(options: CoordinatorOptions) {
    const { engine, outbox, settings, log, failed, functions = {}, isSensitive, results } = options;
    const { clock, board, runs, reader, workers, documents, parts } = engine;
    const { topics, leaseMs, offerMs, cancelGraceMs, strict } = settings;
    const { counts } = this;
    this.#options = options;
    this.#warn = onceEach((code, message) => log.warn(message, { event: `coord.${code}` }));
    this.places = new Places({ runs, board, plan: (definition) => engine.plan(definition) });
    const { places } = this;
    const checks = { reserved: engine.board.reserved, functions: new Set(Object.keys(functions)), isSensitive };
    this.tasks = new FlowkitTasks({ runs: engine.runs, log, checks, strict });
    const registry = new Registry({
      clock,
      workers,
      documents,
      log,
      changed: (roles) => this.#roomChanged(roles),
      came: (roles) => this.#share(roles),
    });
    this.#batches = new BatchRecords(engine.documents);
    this.#late = new LateAccepts(engine.documents);
    const batches = this.#batches;
    const input = new InputCheck({ board, parts, places, batches, log, results });
    this.#registry = registry;
    this.#signals = new Signals({ clock, board, runs, reader, places, registry, outbox, topics, counts, failed, cancelGraceMs });
    this.#attempts = new Attempts({ board, parts, places, batches, input, counts, results, signals: this.#signals, late: this.#late });
    const isServed = (role: string) => this.#served.has(role);
    const readers = readersOf(options.bus);
    this.#dispatcher = new Dispatcher({
      ...{ clock, board, reader, places, batches, input, registry, outbox, topics, counts, log, failed },
      ...{ isServed, leaseMs, offerMs, results, readers },
    });
    const perform = performer(new Functions({ clock, board, parts, places, own: functions }));
    this.#functions = new LaneWorker({
      ...{ clock, board, workers, failed },
      lane: functionLane,
      holder: "flowkit-functions",
      protocol: "flowkit",
      slots,
      own: true,
      perform,
    });
  }

  /** Resolves when all stored state is loaded. Keeps trying while the bus cannot be reached: see `ready`. */
  async start(): Promise<void> {
    const { engine, settings } = this.#options;
    this.#cluster = await clusterOf(settings.cluster, engine.documents);
    this.#stopListening = engine.listen({ task: (task) => this.#taskChanged(task) });
    await this.#registry.load();
    for await (const task of tasksIn(engine.reader, "held")) this.#registry.taskChanged(task);
    await this.#functions.recover(engine.reader);
    if (((await engine.reader.queued()).get(functionLane) ?? 0) > 0) this.#workOnFunctions();
    await this.#forgetEnded();
    await this.#signals.recover();
    this.#started = true;
    this.#opening = this.#open().catch((error) => this.#options.failed("start of the coordinator", error));
  }

  /** Resolves when it sends and receives, or was stopped. */
  get ready(): Promise<void> {
    return this.#opening;
  }

  /** The current workers. */
  roster(): ReturnType<Registry["roster"]> {
    return this.#registry.roster();
  }

  /** Whether it has sent this task, or will once the bus is available, and no worker has claimed it. */
  carries(task: TaskRowHead): boolean {
    if (this.#dispatcher.carries(task)) return true;
    return !this.#opened && task.state === "offered" && task.lane !== null && this.#registry.roles.has(task.lane.name);
  }

  /** Sent commands stay valid: workers continue, and their events are read at the next start. */
  async stop(): Promise<void> {
    this.#started = false;
    this.#stopping.abort();
    this.#signals.close();
    this.#registry.close();
    await this.#opening;
    await Promise.all([this.#dispatcher.close(), this.#functions.close(0), ...this.#serving.values()]);
    await Promise.all(this.#consumers.map((consumer) => consumer.close()));
    this.#stopListening();
  }

  async #open(): Promise<void> {
    await Promise.all([this.#serveAll(), ...this.#roles().map((role) => this.#serve(role))]);
    if (!this.#stopping.signal.aborted) await this.#dispatcher.start(this.#served);
    this.#opened = true;
  }

  /** Counts batches that were stored without an event. */
  batchesKept(count: number): void {
    this.counts.batches += count;
  }

  /**
   * Handles a message that could not be sent: a task that can never be sent fails with the reason; others are sent again with the next
   * epoch.
   */
  async undeliverable(message: Pick<OutgoingMessage, "value">, error: string): Promise<void> {
    const { board } = this.#options.engine;
    const read = decodeEnvelope(Buffer.from(message.value), parseExact);
    if (!read.ok || read.value.msg_type !== "cmd") return;
    const place = await this.places.find(read.value);
    if (place === undefined) return;
    const hold = { taskId: place.taskId, grant: read.value.attempt_epoch };
    if (Buffer.byteLength(message.value) > recordBytesMax) await board.fail(hold, { error, retryable: false });
    else await board.retract(hold);
  }

  #taskChanged(task: TaskRow): void {
    this.#registry.taskChanged(task);
    this.#dispatcher.taskChanged(task);
    this.#signals.taskChanged(task);
    this.#functions.changed(task);
    if (task.lane?.name === functionLane && task.state === "queued") this.#workOnFunctions();
    if (!isOpen(task.state)) this.#ended(task);
  }

  /** Claims begin when the first task of a function is queued, so a server without such tasks makes no claims. */
  #workOnFunctions(): void {
    if (this.#working) return;
    this.#working = true;
    this.#functions.resume();
  }

  /** Removes the records of an ended task, because its output contains them. A record that cannot be removed is found at the next start. */
  #ended({ id }: TaskRow): void {
    // Nearly all tasks have neither. This is called for every ended task of every protocol.
    if (this.#batches.has(id)) void this.#batches.drop(id).catch(() => {});
    if (this.#late.has(id)) void this.#late.drop(id).catch(() => {});
  }

  async #forgetEnded(): Promise<void> {
    for (const kept of [this.#batches, this.#late]) {
      for (const taskId of await kept.load()) {
        const task = await this.#options.engine.board.task(taskId);
        if (task === undefined || !isOpen(task.state)) await kept.drop(taskId);
      }
    }
  }

  #roles(): string[] {
    return [...new Set([...this.#options.settings.types, ...this.#registry.roles])];
  }

  #roomChanged(roles: readonly string[]): void {
    if (!this.#started) return;
    for (const role of roles) if (!this.#serving.has(role)) void this.#serve(role);
    this.#dispatcher.fill(roles);
  }

  /** Called when these roles have one more worker: each worker needs a partition to get commands. */
  #share(roles: readonly string[]): void {
    const { topics } = this.#options.settings;
    for (const role of roles) {
      if (this.#served.has(role)) void this.#ensure([commandTopic(topics, role)], this.#registry.countOf(role));
    }
  }

  /** Serves the topics that all types share. */
  async #serveAll(): Promise<void> {
    const { settings, outbox } = this.#options;
    const { topics } = settings;
    const { clock, reader } = this.#options.engine;
    const { places, counts } = this;
    const [attempts, registry, warn] = [this.#attempts, this.#registry, this.#warn];
    const announcements = new Announcements({ attempts, registry, counts, warn });
    const discovery = new Discovery({ clock, reader, attempts, registry, places, counts, warn, outbox, topics });
    if (!(await this.#ensure([topics.announce, topics.query, topics.reply, topics.signals]))) return;
    this.#subscribe("announce", topics.announce, announcements.handle);
    this.#subscribe("reply", topics.reply, discovery.handle);
    await discovery.ask();
  }

  /** Prepares the topics of a role and reads its events. Further calls for the same role return the first promise. */
  #serve(role: string): Promise<void> {
    const known = this.#serving.get(role);
    if (known !== undefined) return known;
    const serving = this.#listenTo(role).catch((error) => this.#options.failed(`listening to workers of ${role}`, error));
    this.#serving.set(role, serving);
    return serving;
  }

  async #listenTo(role: string): Promise<void> {
    const { topics } = this.#options.settings;
    const topic = statusTopic(topics, role);
    const status = new StatusReader({
      attempts: this.#attempts,
      registry: this.#registry,
      counts: this.counts,
      warn: this.#warn,
      log: this.#options.log,
    });
    if (!(await this.#ensure([topic]))) return;
    if (!(await this.#ensure([commandTopic(topics, role)], this.#registry.countOf(role)))) return;
    const heard = this.#subscribe(`status.${role}`, topic, (records) => status.handle(records));
    // Events of running workers must be read before the coordinator decides about an offer or a lease. So nothing is sent to a role whose
    // events are not consumed yet.
    await untilAborted(heard.ready, this.#stopping.signal).catch(() => {});
    if (this.#stopping.signal.aborted) return;
    this.#served.add(role);
    this.#dispatcher.fill([role]);
  }

  /** Returns false when the coordinator was stopped first. */
  async #ensure(topics: readonly string[], sharedBy?: number): Promise<boolean> {
    const { bus, engine, failed, log } = this.#options;
    const { signal } = this.#stopping;
    const widened = (topic: string, before: number, now: number) => {
      const why = `The topic ${topic} had ${before} of ${now} partitions, so at most ${before} workers were given its commands. The missing partitions were added`;
      log.warn(`${why}. Workers read them when they next look: ours within a minute, those of the reference within five.`, {
        event: "coord.topic.widened",
        topic,
      });
    };
    while (!signal.aborted) {
      try {
        await untilAborted(bus.ensure(topics, sharedBy === undefined ? {} : { sharedBy, widened }), signal);
        return true;
      } catch (error) {
        if (signal.aborted) return false;
        failed(`the topics ${topics.join(", ")}`, error);
        await pause(engine.clock, retryMs, signal);
      }
    }
    return false;
  }

  /** Durable groups from the earliest record: events that workers sent while the server was down are read. */
  #subscribe(what: string, topic: string, handle: Subscription["handle"]): BusConsumer {
    const group = `coord.${this.#cluster}.${what}`;
    const consumer = this.#options.bus.subscribe({ group, topics: [topic], from: "earliest", handle: inSlices(handle) });
    this.#consumers.push(consumer);
    return consumer;
  }
}

/** An error of a function is retried by the policy of its node. */
function performer(functions: Functions) {
  return async ({ task, signal }: { task: TaskRow; signal: AbortSignal }): Promise<Json> => {
    try {
      return (await functions.perform(task, signal)) ?? null;
    } catch (error) {
      throw new LaneFailure({ error: toError(error).message, retryable: true }, { cause: error });
    }
  };
}

function readersOf(bus: Bus): ((role: string) => Promise<number>) | undefined {
  return bus.members === undefined ? undefined : async (role) => (await bus.members?.(commandGroup(role))) ?? 0;
}
