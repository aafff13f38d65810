// The coordinator's settings: the reference's `CoordinatorConfig` by its own names, with our additions. They come from a file or from the
// program's options. KAFKA_BOOTSTRAP_SERVERS replaces the brokers of a file, and WORKER_TYPES replaces the types in both.

import { LongshoreError, toError } from "../../../../core/errors.ts";
import { isObject } from "../../../../core/json/json.ts";
import { readNamedFile } from "../../../../core/read-named-file.ts";
import type { FlowkitLimits } from "../../dialect/compile.ts";
import { type TopicNames, topicNamesDefault } from "../../wire/shapes.ts";

/** All settings are optional. Seconds may have fractions. */
export interface CoordinatorConfig {
  kafka_bootstrap?: string;
  /** Types whose workers are served from the start; others are served when their workers announce themselves. */
  worker_types?: readonly string[];
  topic_cmd_fmt?: string;
  topic_status_fmt?: string;
  topic_worker_announce?: string;
  topic_query?: string;
  topic_reply?: string;
  topic_signals?: string;
  /** Lease duration until the worker has reported its own. */
  lease_ttl_sec?: number;
  /** How long a worker has to stop. */
  cancel_grace_sec?: number;
  outbox_max_retry?: number;
  outbox_backoff_min_ms?: number;
  outbox_backoff_max_ms?: number;
  /** Our addition: how long a command may stay unclaimed before it is sent again. */
  offer_sec?: number;
  /** Our addition: the name in its consumer groups. No two coordinators may share one. Default: a name stored in the data file. */
  cluster?: string;
  /** Running nodes: of all types together, and of one type. */
  max_global_running?: number;
  max_type_concurrency?: { readonly [type: string]: number };
  /** Our addition, under the name that the worker's setting has: refuses graphs whose rechunking does not name the list to split. */
  strict_input_adapters?: boolean;
}

export interface CoordinatorSettings {
  readonly brokers: readonly string[];
  readonly types: readonly string[];
  readonly topics: TopicNames;
  readonly leaseMs: number;
  readonly cancelGraceMs: number;
  readonly offerMs: number;
  /** Null for a name that is generated once and stored. */
  readonly cluster: string | null;
  readonly outbox: { readonly triesMax: number; readonly backoffMsMin: number; readonly backoffMsMax: number };
  readonly limits: FlowkitLimits;
  /** Whether rechunking must name the list to split. */
  readonly strict: boolean;
}

/** The reference's polling intervals. Nothing here polls, so they have no effect. */
const meaningless = [
  "scheduler_tick_sec",
  "finalizer_tick_sec",
  "hb_monitor_tick_sec",
  "outbox_dispatch_tick_sec",
  "discovery_window_sec",
  // These settings have no effect: leases show which worker is gone, and a waiting task needs no heartbeat.
  "heartbeat_soft_sec",
  "heartbeat_hard_sec",
];

const secondsMax = 86_400;
const retriesMax = 1_000;

/** `source` is a file's name or the settings themselves. @throws LongshoreError LONGSHORE_BAD_CONFIG that names the key. */
export function readCoordinatorConfig(
  source: string | CoordinatorConfig | undefined,
  environment: NodeJS.ProcessEnv,
  warn: (message: string) => void,
): CoordinatorSettings {
  const given = typeof source === "string" ? fileOf(source) : { ...source };
  const { KAFKA_BOOTSTRAP_SERVERS: bootstrap, WORKER_TYPES: types } = environment;
  if (typeof source === "string" && bootstrap) given.kafka_bootstrap = bootstrap;
  if (types) given.worker_types = types.split(",").map((type) => type.trim());
  const keys = new Keys(given);
  for (const key of meaningless)
    if (keys.take(key) !== undefined) warn(`The FlowKit setting ${key} has no effect: Longshore does not poll at intervals.`);
  const settings = settingsOf(keys);
  keys.refuseRest();
  return settings;
}

function settingsOf(keys: Keys): CoordinatorSettings {
  const types = keys.types("max_type_concurrency");
  const running = keys.number("max_global_running", undefined, { min: 1, max: 1_000_000 });
  return {
    brokers: (keys.text("kafka_bootstrap", "") as string)
      .split(",")
      .map((one) => one.trim())
      .filter((one) => one !== ""),
    types: keys.texts("worker_types"),
    topics: {
      cmd: keys.topic("topic_cmd_fmt", topicNamesDefault.cmd, true),
      status: keys.topic("topic_status_fmt", topicNamesDefault.status, true),
      announce: keys.topic("topic_worker_announce", topicNamesDefault.announce, false),
      query: keys.topic("topic_query", topicNamesDefault.query, false),
      reply: keys.topic("topic_reply", topicNamesDefault.reply, false),
      signals: keys.topic("topic_signals", topicNamesDefault.signals, false),
    },
    leaseMs: keys.ms("lease_ttl_sec", 45),
    cancelGraceMs: keys.ms("cancel_grace_sec", 30),
    offerMs: keys.ms("offer_sec", 10),
    cluster: keys.text("cluster", "") || null,
    outbox: {
      triesMax: keys.number("outbox_max_retry", 12, { min: 1, max: retriesMax }) as number,
      backoffMsMin: keys.number("outbox_backoff_min_ms", 250, { min: 1, max: secondsMax * 1_000 }) as number,
      backoffMsMax: keys.number("outbox_backoff_max_ms", 60_000, { min: 1, max: secondsMax * 1_000 }) as number,
    },
    strict: keys.flag("strict_input_adapters"),
    limits: { ...(running === undefined ? {} : { running }), ...(types === undefined ? {} : { types }) },
  };
}

function fileOf(file: string): { [key: string]: unknown } {
  let read: unknown;
  try {
    read = JSON.parse(readNamedFile(file).toString());
  } catch (error) {
    throw bad("flowkit.config", `The FlowKit configuration ${file} could not be read: ${toError(error).message}`, error);
  }
  if (!isObject(read)) throw bad("flowkit.config", `The FlowKit configuration ${file} is not an object.`);
  return { ...read };
}

class Keys {
  readonly #given: { [key: string]: unknown };

  constructor(given: { [key: string]: unknown }) {
    this.#given = given;
  }

  take(key: string): unknown {
    const value = this.#given[key];
    delete this.#given[key];
    return value ?? undefined;
  }

  text(key: string, absent: string): string {
    const value = this.take(key) ?? absent;
    if (typeof value !== "string") throw wrong(key, value, "a text");
    return value;
  }

  texts(key: string): string[] {
    const value = this.take(key) ?? [];
    if (!Array.isArray(value) || !value.every((one) => typeof one === "string")) throw wrong(key, value, "a list of texts");
    return value.filter((one) => one !== "");
  }

  /** The name of a topic per type must contain `{type}`. */
  topic(key: string, absent: string, typed: boolean): string {
    const name = this.text(key, absent);
    if (name !== "" && (!typed || name.includes("{type}"))) return name;
    throw wrong(key, name, typed ? `a name with {type} in it, such as ${absent}` : `a name such as ${absent}`);
  }

  number<Absent>(key: string, absent: Absent, { min, max }: { min: number; max: number }): number | Absent {
    const value = this.take(key);
    if (value === undefined) return absent;
    if (typeof value === "number" && value >= min && value <= max) return value;
    throw wrong(key, value, `a number from ${min} to ${max}`);
  }

  ms(key: string, absentSec: number): number {
    return Math.round((this.number(key, absentSec, { min: 0.001, max: secondsMax }) as number) * 1_000);
  }

  flag(key: string): boolean {
    const value = this.take(key) ?? false;
    if (typeof value !== "boolean") throw wrong(key, value, "true or false");
    return value;
  }

  types(key: string): { [type: string]: number } | undefined {
    const value = this.take(key);
    if (value === undefined) return undefined;
    if (!isObject(value) || !Object.values(value).every((count) => Number.isSafeInteger(count) && (count as number) > 0)) {
      throw wrong(key, value, 'an object of whole numbers from 1, such as {"slow": 1}');
    }
    return value as { [type: string]: number };
  }

  refuseRest(): void {
    const [key] = Object.keys(this.#given).filter((name) => this.#given[name] !== undefined);
    if (key !== undefined) throw bad(`flowkit.config.${key}`, `The FlowKit setting ${key} is not known.`);
  }
}

function wrong(key: string, value: unknown, expected: string): LongshoreError {
  return bad(`flowkit.config.${key}`, `The FlowKit setting ${key} is ${JSON.stringify(value)}, expected ${expected}.`);
}

function bad(field: string, message: string, cause?: unknown): LongshoreError {
  return new LongshoreError("LONGSHORE_BAD_CONFIG", message, { cause, detail: { field } });
}
