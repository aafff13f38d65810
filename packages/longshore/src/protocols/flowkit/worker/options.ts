// The options of a worker, checked once: `flowkit(...)` takes these options, and the WorkerConfig of the reference has the same under its
// own names.

import { randomBytes } from "node:crypto";
import type { Bus } from "../../../bus/bus.ts";
import type { KafkaBusOptions } from "../../../bus/kafka.ts";
import type { Environment } from "../../../core/environment.ts";
import { LongshoreError } from "../../../core/errors.ts";
import { isObject } from "../../../core/json/json.ts";
import type { ArgDefaults } from "../wire/adapter-args.ts";
import { type Adapters, adaptersWith, type InputAdapter } from "../wire/adapters/adapter.ts";
import type { ArtifactStore } from "../wire/artifacts/artifacts.ts";
import { bad } from "../wire/brokers.ts";
import { type TopicNames, topicNamesDefault } from "../wire/shapes.ts";
import { type Classified, classifyError } from "./classify.ts";
import { type LogSink, logFromEnvironment } from "./log.ts";

/** The settings of the reference's WorkerConfig, in JavaScript's spelling. */
export interface WorkerOptions {
  /** The tasks that this worker takes commands for; all that it has by default. */
  readonly roles?: readonly string[];
  /**
   * No two workers may have the same. `w-` and eight hex digits by default; a worker with a fixed one finds its runs again after a restart.
   */
  readonly workerId?: string | null;
  readonly workerVersion?: string;
  /** How long a run is this worker's without a heartbeat. */
  readonly leaseTtlSec?: number;
  /** A third of the lease by default, never above 20. */
  readonly hbIntervalSec?: number;
  readonly announceIntervalSec?: number;
  /** How many commands are remembered, so that one that comes twice is done once, and for how long. */
  readonly dedupCacheSize?: number;
  readonly dedupTtlMs?: number;
  /** For adapters whose arguments do not set it, on stores that cannot wake their readers. */
  readonly pullPollMsDefault?: number;
  readonly pullEmptyBackoffMsMax?: number;
  /** How often the coordinator's flags are looked at; 0 for never. 500 with a MongoDB, else 5000: there a cancel comes as a signal. */
  readonly dbCancelPollMs?: number;
  /** Whether rechunking must name the list to cut. */
  readonly strictInputAdapters?: boolean;
  readonly topicCmdFmt?: string;
  readonly topicStatusFmt?: string;
  readonly topicWorkerAnnounce?: string;
  readonly topicQuery?: string;
  readonly topicReply?: string;
  readonly topicSignals?: string;
}

/** The options of `flowkit()`. */
export interface FlowkitOptions extends WorkerOptions {
  /** Kafka's brokers, such as `kafka:9092`. */
  readonly brokers?: string | readonly string[];
  /** How to reach them besides: `ssl`, `sasl`, `clientId`, and how topics are made. */
  readonly kafka?: KafkaConnection;
  /** A Longshore server, which is broker and store in one. */
  readonly url?: string | URL;
  /** Sent to it as `authorization: Bearer ...`. */
  readonly token?: string;
  /** The database that coordinator and workers share: its address, or a `Db` of the `mongodb` package. */
  readonly mongo?: string | object;
  /** The database's name, where its address has none. */
  readonly database?: string;
  /** Instead of brokers or a server. */
  readonly bus?: Bus;
  /** Instead of a database or a server. */
  readonly artifacts?: ArtifactStore;
  /** Further input adapters. */
  readonly adapters?: readonly InputAdapter[];
  /** The default name of a handler's error. */
  readonly classifyError?: (error: unknown) => Classified;
  /** Called with events, under the names of the reference; lines on standard output where FLOWKIT_LOG_STDOUT is set. */
  readonly log?: LogSink;
  /** Where to look for variables; the process's environment by default. */
  readonly env?: Environment;
}

/** As `openKafkaBus` takes it, without the worker's own options. */
export type KafkaConnection = Omit<KafkaBusOptions, "brokers" | "trouble" | "clock">;

export interface WorkerSettings {
  /** Undefined: whatever tasks the worker has. */
  readonly roles: readonly string[] | undefined;
  readonly workerId: string;
  /** Whether a later process will have the same id. */
  readonly idIsGiven: boolean;
  readonly workerVersion: string;
  readonly leaseTtlMs: number;
  readonly heartbeatMs: number;
  readonly announceMs: number;
  readonly dedupCacheSize: number;
  readonly dedupTtlMs: number;
  readonly cancelPollMs: number;
  readonly topics: TopicNames;
  readonly adapters: Adapters;
  readonly argDefaults: ArgDefaults;
  readonly classifyError: (error: unknown) => Classified;
  readonly log: LogSink | undefined;
}

export const workerDefaults = {
  workerVersion: "2.0.0",
  leaseTtlSec: 60,
  hbIntervalSec: 20,
  announceIntervalSec: 60,
  dedupCacheSize: 10_000,
  dedupTtlMs: 3_600_000,
  pullPollMsDefault: 300,
  pullEmptyBackoffMsMax: 4_000,
  dbCancelPollMs: 500,
} as const;

/** Only for a signal that was lost: each read of our own store costs it a request. */
const ownCancelPollMs = 5_000;
/** A day: more is a mistake of units. */
const secondsMax = 86_400;
const msMax = secondsMax * 1_000;
/** A million ids are about 100 MB. */
const cacheMax = 1_000_000;

export function workerSettings(options: FlowkitOptions): WorkerSettings {
  const { env = process.env, workerId, roles, adapters, classifyError: classify = classifyError } = options;
  const leaseTtlMs = seconds(options, "leaseTtlSec");
  // In a lease that is shorter than usual two heartbeats may be lost as well.
  const hbIntervalSec = options.hbIntervalSec ?? Math.min(workerDefaults.hbIntervalSec, leaseTtlMs / 3_000);
  const heartbeatMs = seconds({ hbIntervalSec }, "hbIntervalSec");
  if (heartbeatMs >= leaseTtlMs) {
    throw bad("hbIntervalSec", `${heartbeatMs / 1_000} s`, `less than leaseTtlSec, which is ${leaseTtlMs / 1_000} s`);
  }
  return {
    roles: roles === undefined ? undefined : rolesOf(roles),
    workerId: text("workerId", workerId ?? undefined) ?? `w-${randomBytes(4).toString("hex")}`,
    idIsGiven: workerId !== undefined && workerId !== null,
    workerVersion: text("workerVersion", options.workerVersion) ?? workerDefaults.workerVersion,
    leaseTtlMs,
    heartbeatMs,
    announceMs: seconds(options, "announceIntervalSec"),
    dedupCacheSize: whole(options, "dedupCacheSize", 1, cacheMax),
    dedupTtlMs: whole(options, "dedupTtlMs", 1, msMax),
    cancelPollMs: whole({ dbCancelPollMs: options.dbCancelPollMs ?? cancelPollMsFor(options) }, "dbCancelPollMs", 0, msMax),
    topics: topicsOf(options),
    adapters: adaptersWith(adapters),
    argDefaults: {
      pollMs: whole(options, "pullPollMsDefault", 1, msMax),
      backoffMaxMs: whole(options, "pullEmptyBackoffMsMax", 1, msMax),
      strict: options.strictInputAdapters ?? false,
    },
    classifyError: classify,
    log: options.log ?? logFromEnvironment(env, (line) => void process.stdout.write(line)),
  };
}

function cancelPollMsFor({ mongo, env = process.env }: FlowkitOptions): number {
  return mongo !== undefined || env.FLOWKIT_MONGO_URL !== undefined ? workerDefaults.dbCancelPollMs : ownCancelPollMs;
}

/** What Kafka takes as part of a topic's name. */
const roleShape = /^[A-Za-z0-9._-]{1,200}$/;

/** A role is part of topics and groups. */
export function checkRole(role: string): void {
  if (!roleShape.test(role)) throw bad("roles", JSON.stringify(role), "letters, digits and . _ - (it is part of the names of topics)");
}

function rolesOf(roles: readonly string[]): readonly string[] {
  if (!Array.isArray(roles) || roles.length === 0) throw bad("roles", JSON.stringify(roles), "a list of at least one role");
  for (const role of roles) checkRole(role);
  return [...new Set(roles)];
}

/** What a worker takes for a role without a handler fails permanently, though another worker may have one: so it does not begin. */
export function checkServed(roles: readonly string[], handlers: Iterable<string>): void {
  const known = [...handlers];
  const unserved = roles.filter((role) => !known.includes(role));
  if (unserved.length === 0) return;
  const expected = known.length === 0 ? "a handler for each of them" : `roles among those that have one: ${quoted(known)}`;
  throw new LongshoreError("LONGSHORE_BAD_CONFIG", `roles has ${quoted(unserved)} without a handler, expected ${expected}.`, {
    detail: { field: "roles", expected },
  });
}

function quoted(names: readonly string[]): string {
  return names.map((name) => JSON.stringify(name)).join(", ");
}

function topicsOf(options: WorkerOptions): TopicNames {
  const named = (field: keyof WorkerOptions, otherwise: string) => text(field, options[field] as string | undefined) ?? otherwise;
  const perType = (field: keyof WorkerOptions, otherwise: string) => {
    const name = named(field, otherwise);
    if (!name.includes("{type}")) throw bad(field, JSON.stringify(name), 'a name with "{type}" in it');
    return name;
  };
  return {
    cmd: perType("topicCmdFmt", topicNamesDefault.cmd),
    status: perType("topicStatusFmt", topicNamesDefault.status),
    announce: named("topicWorkerAnnounce", topicNamesDefault.announce),
    query: named("topicQuery", topicNamesDefault.query),
    reply: named("topicReply", topicNamesDefault.reply),
    signals: named("topicSignals", topicNamesDefault.signals),
  };
}

/** Fractions are fine. */
function seconds(options: WorkerOptions, field: "leaseTtlSec" | "hbIntervalSec" | "announceIntervalSec"): number {
  const value = options[field] ?? workerDefaults[field];
  if (typeof value === "number" && value > 0 && value <= secondsMax) return Math.max(1, Math.round(value * 1_000));
  throw bad(field, JSON.stringify(value), `a number of seconds up to ${secondsMax}`);
}

type WholeField = "dedupCacheSize" | "dedupTtlMs" | "dbCancelPollMs" | "pullPollMsDefault" | "pullEmptyBackoffMsMax";

function whole(options: WorkerOptions, field: WholeField, least: number, most: number): number {
  const value = options[field] ?? workerDefaults[field];
  if (Number.isInteger(value) && value >= least && value <= most) return value;
  throw bad(field, JSON.stringify(value), `a whole number from ${least} to ${most}`);
}

function text(field: string, value: string | undefined): string | undefined {
  if (value === undefined || (typeof value === "string" && value.trim() !== "")) return value;
  throw bad(field, JSON.stringify(value), "a text");
}

/** Whether something is a store of artifacts, and not a database. */
export function isArtifactStore(value: unknown): value is ArtifactStore {
  return isObject(value) && typeof value.putPartials === "function";
}
