// WorkerConfig of the reference implementation: the same fields, and the same way to load them from a file. Each field also has a camelCase
// name. The constructor throws an error that names the invalid field.

import { LongshoreError } from "../../../core/errors.ts";
import { isObject } from "../../../core/json/json.ts";
import { readNamedFile } from "../../../core/read-named-file.ts";
import { topicNamesDefault } from "../wire/shapes.ts";
import type { WorkerOptions } from "./options.ts";
import { workerDefaults } from "./options.ts";

/** The fields of the reference, with its names. */
export interface WorkerConfigFields {
  kafka_bootstrap: string;
  topic_cmd_fmt: string;
  topic_status_fmt: string;
  topic_worker_announce: string;
  topic_query: string;
  topic_reply: string;
  topic_signals: string;
  roles: readonly string[];
  worker_id: string | null;
  worker_version: string;
  lease_ttl_sec: number;
  hb_interval_sec: number;
  announce_interval_sec: number;
  dedup_cache_size: number;
  dedup_ttl_ms: number;
  pull_poll_ms_default: number;
  pull_empty_backoff_ms_max: number;
  db_cancel_poll_ms: number;
  strict_input_adapters: boolean;
}

const defaults: WorkerConfigFields = {
  kafka_bootstrap: "kafka:9092",
  topic_cmd_fmt: topicNamesDefault.cmd,
  topic_status_fmt: topicNamesDefault.status,
  topic_worker_announce: topicNamesDefault.announce,
  topic_query: topicNamesDefault.query,
  topic_reply: topicNamesDefault.reply,
  topic_signals: topicNamesDefault.signals,
  roles: ["echo"],
  worker_id: null,
  worker_version: workerDefaults.workerVersion,
  lease_ttl_sec: workerDefaults.leaseTtlSec,
  hb_interval_sec: workerDefaults.hbIntervalSec,
  announce_interval_sec: workerDefaults.announceIntervalSec,
  dedup_cache_size: workerDefaults.dedupCacheSize,
  dedup_ttl_ms: workerDefaults.dedupTtlMs,
  pull_poll_ms_default: workerDefaults.pullPollMsDefault,
  pull_empty_backoff_ms_max: workerDefaults.pullEmptyBackoffMsMax,
  db_cancel_poll_ms: workerDefaults.dbCancelPollMs,
  strict_input_adapters: false,
};

type Camel<Name extends string> = Name extends `${infer Head}_${infer Tail}` ? `${Head}${Capitalize<Camel<Tail>>}` : Name;
type CamelFields = { [Field in keyof WorkerConfigFields as Camel<Field>]: WorkerConfigFields[Field] };

/** Fields in snake_case or camelCase. */
export type WorkerConfigInit = Partial<WorkerConfigFields> & Partial<CamelFields>;

/** The settings of a FlowKit worker under the names of the reference, in both notations. */
export interface WorkerConfig extends Readonly<WorkerConfigFields>, Readonly<CamelFields> {}

// biome-ignore lint/suspicious/noUnsafeDeclarationMerging: the fields are defined from one table, in both spellings.
export class WorkerConfig {
  /** The fields that were set explicitly. */
  readonly given: ReadonlySet<keyof WorkerConfigFields>;

  constructor(fields: WorkerConfigInit = {}) {
    const given = snakeFields(fields, "WorkerConfig");
    this.given = new Set(Object.keys(given) as (keyof WorkerConfigFields)[]);
    for (const [name, otherwise] of Object.entries(defaults)) {
      const value = (given as { [field: string]: unknown })[name] ?? otherwise;
      Object.defineProperty(this, name, { value, enumerable: true });
      if (camel(name) !== name) Object.defineProperty(this, camel(name), { value });
    }
  }

  get lease_ttl_ms(): number {
    return Math.trunc(this.lease_ttl_sec * 1_000);
  }

  get hb_interval_ms(): number {
    return Math.trunc(this.hb_interval_sec * 1_000);
  }

  get announce_interval_ms(): number {
    return Math.trunc(this.announce_interval_sec * 1_000);
  }

  /** Reads the file, if it exists; `overrides` take precedence. `load({ path, overrides })` or `load(path, overrides)`. */
  static load(
    path: string | { readonly path?: string; readonly overrides?: WorkerConfigInit } = configPath,
    overrides: WorkerConfigInit = {},
  ): WorkerConfig {
    if (typeof path !== "string") return WorkerConfig.load(path.path ?? configPath, path.overrides ?? {});
    return new WorkerConfig({ ...fieldsIn(path), ...snakeFields(overrides, "overrides") });
  }

  /** The settings as options of `flowkit()`. */
  options(): WorkerOptions {
    const options: { [field: string]: unknown } = {};
    for (const name of Object.keys(defaults)) options[camel(name)] = this[name as keyof WorkerConfigFields];
    const { kafkaBootstrap: _, ...rest } = options;
    return rest;
  }
}

const configPath = "configs/worker.default.json";

function fieldsIn(path: string): Partial<WorkerConfigFields> {
  let text: string;
  try {
    text = readNamedFile(path).toString();
  } catch (error) {
    // As in the reference, the defaults are used when the file does not exist.
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return {};
    throw bad(`${path} cannot be read: ${(error as Error).message}`, "path");
  }
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    throw bad(`${path} is not JSON: ${(error as Error).message}`, "path");
  }
  if (!isObject(value)) throw bad(`${path} contains ${text.trim().slice(0, 40)}, expected an object`, "path");
  return snakeFields(value, path);
}

function snakeFields(fields: object, where: string): Partial<WorkerConfigFields> {
  const given: { [field: string]: unknown } = {};
  for (const [name, value] of Object.entries(fields)) {
    if (value === undefined) continue;
    const snake = name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
    if (!Object.hasOwn(defaults, snake)) {
      throw bad(`${where} has the field ${JSON.stringify(name)}, expected ${Object.keys(defaults).join(", ")}`, name);
    }
    given[snake] = value;
  }
  return given as Partial<WorkerConfigFields>;
}

function camel(name: string): string {
  return name.replace(/_([a-z])/g, (_match, letter: string) => letter.toUpperCase());
}

function bad(message: string, field: string): LongshoreError {
  return new LongshoreError("LONGSHORE_BAD_CONFIG", `${message}.`, { detail: { field } });
}
