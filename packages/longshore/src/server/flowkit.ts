// FlowKit's coordinator on this server's engine: with a configured broker, else on the bus in the data file.

import type { Bus } from "../bus/bus.ts";
import { EmbeddedBus } from "../bus/embedded.ts";
import { kafkaSecurityIn } from "../bus/kafka/environment.ts";
import type { KafkaBusOptions } from "../bus/kafka/options.ts";
import { Outbox } from "../bus/outbox.ts";
import { BusReach } from "../bus/reachability.ts";
import type { DeadLetterSource } from "../engine/board/dead-letter.ts";
import type { Hold } from "../engine/board/task.ts";
import type { Carrier } from "../engine/board/wait-reason.ts";
import type { JsonObject } from "../json.ts";
import { type IsSensitive, loadDetector } from "../protocols/flowkit/dialect/sensitive.ts";
import type { MirrorOptions } from "../protocols/flowkit/server/artifacts/mirror.ts";
import { clusterOf } from "../protocols/flowkit/server/coordinator/cluster.ts";
import { type CoordinatorSettings, readCoordinatorConfig } from "../protocols/flowkit/server/coordinator/config.ts";
import { Coordinator } from "../protocols/flowkit/server/coordinator/coordinator.ts";
import { shownDeadLetters } from "../protocols/flowkit/server/coordinator/dead-letters.ts";
import { directOutbox } from "../protocols/flowkit/server/coordinator/direct-outbox.ts";
import type { WireName } from "../protocols/flowkit/server/places.ts";
import { isOfTopic } from "../protocols/flowkit/server/topic-rules.ts";
import { commandGroup, type TopicNames } from "../protocols/flowkit/wire/shapes.ts";
import { brokersOf } from "../protocols/flowkit/worker/connect.ts";
import type { FlowkitOptions } from "./config.ts";
import type { Engine } from "./engine.ts";
import { FailureLog } from "./failure-log.ts";
import type { Logger } from "./logger.ts";

export interface FlowkitConfig {
  readonly settings: CoordinatorSettings;
  /** How to be let in by Kafka, where there are brokers. */
  readonly security: ReturnType<typeof kafkaSecurityIn>;
  readonly isSensitive?: IsSensitive;
}

/** Read before anything is opened: a mistake in it must not leave a server half started. */
export async function readFlowkitConfig({ config, brokers, sensitiveDetector }: FlowkitOptions, logger: Logger): Promise<FlowkitConfig> {
  const settings = readCoordinatorConfig(config, process.env, (message) => logger.warn(message));
  const told = typeof brokers === "string" ? brokers.split(",") : (brokers ?? settings.brokers);
  const list = told.every((broker) => broker.trim() === "") ? [] : brokersOf(told);
  return {
    settings: { ...settings, brokers: list },
    security: list.length > 0 ? kafkaSecurityIn(process.env) : {},
    ...(sensitiveDetector === undefined ? {} : { isSensitive: await loadDetector(sensitiveDetector) }),
  };
}

/** FlowKit for the program that runs the server. */
export interface FlowkitHandle {
  /** Submits a graph; returns the `task_id`, which is the id of a run. */
  createTask(task: { graph: unknown; params?: JsonObject }): Promise<string>;
  /** False when there is no such task. */
  cancelTask(taskId: string, reason?: string): Promise<boolean>;
}

export interface Flowkit extends FlowkitHandle {
  readonly coordinator: Coordinator;
  readonly bus: Bus;
  /** Where workers connect, when that is not this server itself. */
  readonly busElsewhere: string | undefined;
  readonly topics: TopicNames;
  /** Null where messages need none, because the bus is in the data file. */
  readonly outbox: Pick<Outbox, "pending" | "failed"> | null;
  /** Whether the bus could be reached last. */
  isReachable(): boolean;
  close(): Promise<void>;
}

export async function openFlowkit(
  engine: Engine,
  { settings, security, isSensitive }: FlowkitConfig,
  options: FlowkitOptions,
  logger: Logger,
): Promise<Flowkit> {
  const { clock, makeId } = engine;
  const trouble = new FailureLog(logger, clock);
  const failed = (what: string, error: unknown) => trouble.failing(`FlowKit: ${what}`, error);
  const { brokers } = settings;
  const cluster = await clusterOf(settings.cluster, engine.documents);
  const reach = new BusReach(trouble, clock);
  const told = { clock, trouble: reach };
  const bus = reach.watch(
    brokers.length > 0
      ? await kafkaBus(brokers, { ...security, ...options.kafka }, { ...told, readersOf: (topic) => readersOf(settings.topics, topic) })
      : new EmbeddedBus(engine.busLog, told),
  );
  // What is stored in the data file anyway needs no second place in it.
  const outbox =
    brokers.length > 0
      ? new Outbox({
          ...settings.outbox,
          bus,
          store: engine.outboxStore,
          owner: makeId(clock.now()),
          clock,
          trouble,
          // A command that could not be sent is followed by the next epoch's, which is the only one that counts.
          newestOnly: (topic) => isOfTopic(settings.topics.cmd, topic),
          failed: (message, error) =>
            void coordinator.undeliverable(message, error).catch((reason) => failed("a message given up", reason)),
        })
      : null;
  const { functions } = options;
  const parts = { engine, bus, settings: { ...settings, cluster }, log: logger, failed, functions, isSensitive };
  const mirror =
    options.mongo === undefined ? null : await openMirror(options.mongo, engine, { cluster, trouble, roster: () => coordinator.roster() });
  const results = mirror === null ? {} : mirror.results;
  const coordinator: Coordinator = new Coordinator({ ...parts, ...results, outbox: outbox ?? directOutbox(bus) });
  const carrier: Carrier = {
    protocol: "flowkit",
    trouble: () => (reach.out === null ? null : { what: bus.name, ...reach.out }),
    carries: (task) => coordinator.carries(task),
  };
  engine.carriers.add(carrier);
  const letters: DeadLetterSource = { deadLetters: (task) => shownDeadLetters(engine.documents, task) };
  engine.deadLetterSources.add(letters);
  await outbox?.start();
  await coordinator.start();
  mirror?.start();
  return {
    coordinator,
    bus,
    busElsewhere: brokers.length > 0 ? bus.name : undefined,
    topics: settings.topics,
    outbox,
    isReachable: () => reach.out === null,
    createTask: async (task) => (await coordinator.tasks.create(task)).id,
    cancelTask: async (taskId, reason) => (await coordinator.tasks.cancel(taskId, reason)) !== undefined,
    async close() {
      engine.carriers.delete(carrier);
      engine.deadLetterSources.delete(letters);
      await coordinator.stop();
      // Together: the outbox waits for what is being sent, which a bus whose broker is away ends by being closed.
      await Promise.all([outbox?.close(), bus.close()]);
      await mirror?.close();
    },
  };
}

/** The group of workers that reads a topic of commands; undefined for any other topic. */
function readersOf({ cmd }: TopicNames, topic: string): string | undefined {
  if (!isOfTopic(cmd, topic)) return undefined;
  const [before = "", after = ""] = cmd.split("{type}");
  return commandGroup(topic.slice(before.length, topic.length - after.length));
}

/** Loaded where there is a database. */
async function openMirror(url: string, engine: Engine, more: { cluster: string; trouble: FailureLog; roster: MirrorOptions["roster"] }) {
  const [{ connectMongo }, { Mirror }] = await Promise.all([
    import("../protocols/flowkit/wire/artifacts/mongo-db.ts"),
    import("../protocols/flowkit/server/artifacts/mirror.ts"),
  ]);
  const { db, close } = await connectMongo({ url });
  const { cluster: server, trouble, roster } = more;
  const mirror = new Mirror({ ...engine, db, server, trouble, roster });
  return {
    start: () => mirror.start(),
    results: {
      completed: (name: WireName) => mirror.completed(name),
      adopt: (name: WireName, hold: Hold) => mirror.adopt(name, hold),
      release: (name: WireName, epoch: number) => mirror.release(name, epoch),
      caughtUp: (taskId: string) => mirror.caughtUp(taskId),
      reopen: (name: WireName) => mirror.reopen(name),
    },
    async close() {
      await mirror.close();
      await close();
    },
  };
}

/** Loaded where there is a broker. */
async function kafkaBus(brokers: readonly string[], kafka: FlowkitOptions["kafka"], parts: Omit<KafkaBusOptions, "brokers">): Promise<Bus> {
  const { openKafkaBus } = await import("../bus/kafka.ts");
  return openKafkaBus({ ...kafka, ...parts, brokers });
}
