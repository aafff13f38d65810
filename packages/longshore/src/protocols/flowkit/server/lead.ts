// Starts FlowKit's coordinator on a server's engine: with the configured brokers, else on the bus in the data file.

import { EmbeddedBus } from "../../../bus/embedded-bus.ts";
import { kafkaSecurityIn } from "../../../bus/kafka/environment.ts";
import type { KafkaBusOptions } from "../../../bus/kafka/options.ts";
import { Outbox } from "../../../bus/outbox.ts";
import { BusReach } from "../../../bus/reachability.ts";
import type { Bus } from "../../../core/bus/bus.ts";
import type { Environment } from "../../../core/environment.ts";
import type { FailureListener } from "../../../core/failure-listener.ts";
import type { DeadLetterSource } from "../../../engine/board/dead-letter.ts";
import type { Carrier } from "../../../engine/board/wait-reason.ts";
import type { ProtocolEngine, ProtocolLog } from "../../server-half.ts";
import { dialectName } from "../dialect/compile.ts";
import { type IsSensitive, loadDetector } from "../dialect/sensitive-values.ts";
import { brokersOf } from "../wire/brokers.ts";
import { commandGroup, type TopicNames } from "../wire/shapes.ts";
import type { MirrorOptions } from "./artifacts/mirror.ts";
import { clusterOf } from "./coordinator/cluster.ts";
import { type CoordinatorSettings, readCoordinatorConfig } from "./coordinator/config.ts";
import { Coordinator } from "./coordinator/coordinator.ts";
import { shownDeadLetters } from "./coordinator/dead-letters.ts";
import { directOutbox } from "./coordinator/direct-outbox.ts";
import type { FlowkitHandle, FlowkitOptions } from "./options.ts";
import { isOfTopic } from "./topic-rules.ts";

export interface FlowkitConfig {
  readonly settings: CoordinatorSettings;
  /** The Kafka credentials, when there are brokers. */
  readonly security: ReturnType<typeof kafkaSecurityIn>;
  readonly isSensitive?: IsSensitive;
}

/** The options are read before anything is opened: a mistake must not leave a server half started. */
export async function readFlowkitConfig(
  { config, brokers, sensitiveDetector }: FlowkitOptions,
  { environment, log }: { readonly environment: Environment; readonly log: ProtocolLog },
): Promise<FlowkitConfig> {
  const settings = readCoordinatorConfig(config, environment, (message) => log.warn(message));
  const addresses = typeof brokers === "string" ? brokers.split(",") : (brokers ?? settings.brokers);
  const list = addresses.every((broker) => broker.trim() === "") ? [] : brokersOf(addresses);
  return {
    settings: { ...settings, brokers: list },
    security: list.length > 0 ? kafkaSecurityIn(environment) : {},
    ...(sensitiveDetector === undefined ? {} : { isSensitive: await loadDetector(sensitiveDetector) }),
  };
}

export interface Flowkit extends FlowkitHandle {
  readonly coordinator: Coordinator;
  readonly bus: Bus;
  /** Where workers connect, when that is not this server itself. */
  readonly busElsewhere: string | undefined;
  readonly topics: TopicNames;
  /** Null when the bus is in the data file, because messages then need no outbox. */
  readonly outbox: Pick<Outbox, "pending" | "failed"> | null;
  /** Whether the last attempt to reach the bus succeeded. */
  isReachable(): boolean;
  close(): Promise<void>;
}

export interface FlowkitDeps {
  readonly engine: ProtocolEngine;
  readonly log: ProtocolLog;
  readonly trouble: FailureListener;
  /** True when nothing may be started or connected. */
  readonly isIdle?: boolean;
}

export async function openFlowkit(
  { engine, log, trouble, isIdle = false }: FlowkitDeps,
  { settings, security, isSensitive }: FlowkitConfig,
  options: FlowkitOptions,
): Promise<Flowkit> {
  const { clock, makeId } = engine;
  const failed = (what: string, error: unknown) => trouble.failing(`FlowKit: ${what}`, error);
  const { brokers } = settings;
  const cluster = await clusterOf(settings.cluster, engine.documents);
  const reach = new BusReach(trouble, clock);
  const reporting = { clock, trouble: reach };
  const bus = reach.watch(
    brokers.length > 0 && !isIdle
      ? await kafkaBus(
          brokers,
          { ...security, ...options.kafka },
          { ...reporting, readersOf: (topic) => readersOf(settings.topics, topic) },
        )
      : new EmbeddedBus(engine.busLog, reporting),
  );
  // A bus in the data file needs no second copy of its messages.
  const outbox =
    brokers.length > 0
      ? new Outbox({
          ...settings.outbox,
          bus,
          store: engine.outboxStore,
          owner: makeId(clock.now()),
          clock,
          trouble,
          // A command that could not be sent is replaced by the command of the next epoch; only the newest counts.
          newestOnly: (topic) => isOfTopic(settings.topics.cmd, topic),
          failed: (message, error) =>
            void coordinator.undeliverable(message, error).catch((reason) => failed("a message given up", reason)),
        })
      : null;
  const { functions } = options;
  const mirroring =
    options.mongo === undefined || isIdle
      ? null
      : await openMirror(options.mongo, engine, { cluster, trouble, roster: () => coordinator.roster() });
  const coordinator: Coordinator = new Coordinator({
    engine,
    bus,
    outbox: outbox ?? directOutbox(bus),
    settings: { ...settings, cluster },
    log,
    failed,
    functions,
    isSensitive,
    results: mirroring?.mirror,
  });
  const carrier: Carrier = {
    protocol: "flowkit",
    trouble: () => (reach.out === null ? null : { what: bus.name, ...reach.out }),
    carries: (task) => coordinator.carries(task),
  };
  engine.carriers.add(carrier);
  const letters: DeadLetterSource = {
    dialect: dialectName,
    deadLetters: (task) => shownDeadLetters(engine.documents, task),
  };
  engine.deadLetterSources.add(letters);
  if (!isIdle) {
    await outbox?.start();
    await coordinator.start();
    mirroring?.mirror.start();
  }
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
      // Both are closed at the same time: the coordinator waits for calls to MongoDB, and closing the mirror ends calls that get no reply.
      const mirrored = mirroring?.close();
      await coordinator.stop();
      // Both are closed together. The outbox waits for messages that are being sent. Closing the bus ends those that cannot reach their
      // broker.
      await Promise.all([outbox?.close(), bus.close(), mirrored]);
    },
  };
}

/** The worker group that reads a command topic; undefined for any other topic. */
function readersOf({ cmd }: TopicNames, topic: string): string | undefined {
  if (!isOfTopic(cmd, topic)) return undefined;
  const [before = "", after = ""] = cmd.split("{type}");
  return commandGroup(topic.slice(before.length, topic.length - after.length));
}

/** Loaded only with a database. */
async function openMirror(
  url: string,
  engine: ProtocolEngine,
  more: { cluster: string; trouble: FailureListener; roster: MirrorOptions["roster"] },
) {
  const [{ connectMongo }, { Mirror }] = await Promise.all([import("../wire/artifacts/mongo-db.ts"), import("./artifacts/mirror.ts")]);
  const { db, close } = await connectMongo({ url });
  const { cluster: server, trouble, roster } = more;
  const { clock, runs, reader, parts, documents, plan, listen } = engine;
  const mirror = new Mirror({ clock, runs, reader, parts, documents, plan, listen, db, server, trouble, roster });
  return {
    mirror,
    async close() {
      await mirror.close();
      await close();
    },
  };
}

/** Loaded only with brokers. */
async function kafkaBus(brokers: readonly string[], kafka: FlowkitOptions["kafka"], parts: Omit<KafkaBusOptions, "brokers">): Promise<Bus> {
  const { openKafkaBus } = await import("../../../bus/kafka.ts");
  return openKafkaBus({ ...kafka, ...parts, brokers });
}
