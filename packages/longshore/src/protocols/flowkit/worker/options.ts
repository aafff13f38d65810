// The options of a worker and their checks. `flowkit(...)` takes these options; the reference's WorkerConfig has the same under its own
// names.

import { randomBytes } from "node:crypto";
import type { KafkaBusOptions } from "../../../bus/kafka.ts";
import type { Bus } from "../../../core/bus/bus.ts";
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

/** The settings of the reference's WorkerConfig, in camelCase. */
export interface WorkerOptions {
  /** The roles for which this worker takes commands. Default: all its tasks. */
  readonly roles?: readonly string[];
  /** Must be unique. A worker with a fixed id finds its unfinished runs after a restart. Default: `w-` and eight hex digits. */
  readonly workerId?: string | null;
  readonly workerVersion?: string;
  /** Lease duration without a heartbeat. */
  readonly leaseTtlSec?: number;
  /** Default: a third of the lease, at most 20. */
  readonly hbIntervalSec?: number;
  readonly announceIntervalSec?: number;
  /** How many commands are remembered, and for how long: a command that is delivered twice runs once. */
  readonly dedupCacheSize?: number;
  readonly dedupTtlMs?: number;
  /** The poll interval of adapters whose arguments do not set one, for stores that cannot wake their readers. */
  readonly pullPollMsDefault?: number;
  readonly pullEmptyBackoffMsMax?: number;
  /**
   * How often the coordinator's cancel flags are read; 0 disables this. Default: 500 with MongoDB. Without it 5000, because there a signal
   * cancels too.
   */
  readonly dbCancelPollMs?: number;
  /** Whether rechunking must name the list to split. */
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
  /** Kafka brokers, such as `kafka:9092`. */
  readonly brokers?: string | readonly string[];
  /** Further Kafka options: `ssl`, `sasl`, `clientId`, and how topics are created. */
  readonly kafka?: KafkaConnection;
  /** A Longshore server, which is both bus and store. */
  readonly url?: string | URL;
  /** Sent to the server as `authorization: Bearer ...`. */
  readonly token?: string;
  /** The database that coordinator and workers share: its address, or a `Db` of the `mongodb` package. */
  readonly mongo?: string | object;
  /** The name of the database, when its address has none. */
  readonly database?: string;
  /** Replaces brokers or a server. */
  readonly bus?: Bus;
  /** Replaces a database or a server. */
  readonly artifacts?: ArtifactStore;
  /** Further input adapters. */
  readonly adapters?: readonly InputAdapter[];
  /** The default classification of a handler's error. */
  readonly classifyError?: (error: unknown) => Classified;
  /** Called with log events, under the names of the reference. Default: lines on standard output if FLOWKIT_LOG_STDOUT is set. */
  readonly log?: LogSink;
  /** Where variables are looked up. Default: this process's environment. */
  readonly env?: Environment;
}

/** The options of `openKafkaBus`, without those that the worker sets. */
export type KafkaConnection = Omit<KafkaBusOptions, "brokers" | "trouble" | "clock">;

export interface WorkerSettings {
  /** Undefined: all tasks of the worker. */
  readonly roles: readonly string[] | undefined;
  readonly workerId: string;
  /** Whether a later process has the same id. */
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

/** With our own server this is only a fallback for a lost signal, because each read is a request. */
const ownCancelPollMs = 5_000;
/** Maximum of all times: a day. A larger value has a wrong unit. */
const secondsMax = 86_400;
const msMax = secondsMax * 1_000;
/** A million ids take about 100 MB. */
const cacheMax = 1_000_000;

export function workerSettings(options: FlowkitOptions): WorkerSettings {
  const { env = process.env, workerId, roles, adapters, classifyError: classify = classifyError } = options;
  const leaseTtlMs = seconds(options, "leaseTtlSec");
  // So two heartbeats may be lost, even with a lease that is shorter than usual.
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

/** The characters that Kafka allows in topic names. */
const roleShape = /^[A-Za-z0-9._-]{1,200}$/;

/** A role is part of topic and group names. */
export function checkRole(role: string): void {
  if (!roleShape.test(role)) throw bad("roles", JSON.stringify(role), "letters, digits and . _ - (it is part of the names of topics)");
}

function rolesOf(roles: readonly string[]): readonly string[] {
  if (!Array.isArray(roles) || roles.length === 0) throw bad("roles", JSON.stringify(roles), "a list of at least one role");
  for (const role of roles) checkRole(role);
  return [...new Set(roles)];
}

/**
 * A command for a role without a handler would fail permanently, although another worker may have the handler. So the worker does not
 * start.
 */
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

/** Fractions are allowed. */
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

/** Whether the value is an artifact store and not a database. */
export function isArtifactStore(value: unknown): value is ArtifactStore {
  return isObject(value) && typeof value.putPartials === "function";
}
