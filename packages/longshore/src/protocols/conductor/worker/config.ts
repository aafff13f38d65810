// The configuration of one task's worker. Every property is looked up in the environment first (for this task, then for all), then in the
// code (the task's own options, then the transport's), then in the table of defaults: worker-specific > global > code > default.
//
// For example, the variables for the property `thread_count` of the task `greet`, in their order; the first one that is set counts:
//   conductor.worker.greet.thread_count   conductor_worker_greet_thread_count   CONDUCTOR_WORKER_GREET_THREAD_COUNT
//   CONDUCTOR_WORKER_greet_THREAD_COUNT   (a name with dashes or dots is also looked up with underscores)
//   conductor.worker.all.thread_count     CONDUCTOR_WORKER_ALL_THREAD_COUNT     conductor_worker_all_thread_count
//   conductor_worker_thread_count         CONDUCTOR_WORKER_THREAD_COUNT

import { type Duration, durationMs } from "../../../core/duration.ts";
import { badVariable, type Environment, variable } from "../../../core/environment.ts";
import { LongshoreError } from "../../../core/errors.ts";
import type { Task } from "../../../core/task.ts";
import { pollTimeoutMsDefault, pollTimeoutMsMax, type TaskDef } from "../wire/shapes.ts";

/** Options in code for one task's worker, or for all. The environment takes precedence. */
export interface WorkerOptions {
  /**
   * How many of this task's calls run at once (`thread_count`); by default the task's own `concurrency`, else the slots of `work()`, else
   * 1.
   */
  readonly concurrency?: number;
  /** The longest pause between polls that found nothing; 100 ms by default. */
  readonly pollInterval?: Duration;
  /** How long a poll waits at the server. By default 100 ms, and up to 5 s while there are no tasks. */
  readonly pollTimeout?: Duration;
  readonly domain?: string;
  /** Host name, process id and a random part by default. */
  readonly workerId?: string;
  /** Publish the task's definition at the start; false by default. */
  readonly registerTaskDef?: boolean;
  /** Replace an existing definition; true by default. */
  readonly overwriteTaskDef?: boolean;
  /** Publish the schemas with the definition; true by default. */
  readonly registerSchema?: boolean;
  /** Published schemas allow no further fields; false by default. */
  readonly strictSchema?: boolean;
  /** Start without polling; false by default. */
  readonly paused?: boolean;
  /** Renew the leases of long tasks with heartbeats; true by default. */
  readonly leaseExtend?: boolean;
  /** Fields of the published definition, besides its name. */
  readonly taskDef?: Partial<TaskDef>;
}

export interface WorkerConfig {
  readonly task: string;
  readonly threadCount: number;
  readonly pollIntervalMs: number;
  readonly pollTimeoutMs: number;
  /** True when `pollTimeout` was not set: then polls wait longer while there are no tasks. */
  readonly longPoll: boolean;
  readonly domain: string | undefined;
  readonly workerId: string;
  readonly registerTaskDef: boolean;
  readonly overwriteTaskDef: boolean;
  readonly registerSchema: boolean;
  readonly strictSchema: boolean;
  readonly paused: boolean;
  readonly leaseExtend: boolean;
  readonly taskDef: Partial<TaskDef>;
}

export interface ConfigSources {
  readonly env: Environment;
  /** Options in code, the most specific first. */
  readonly code: readonly WorkerOptions[];
  /** The slots of `work()`. */
  readonly slots: number | undefined;
  /** The default for the worker's name. */
  readonly workerId: string;
}

/** Maximum number of concurrent calls of one process. The runner has the same limit. */
const threadCountMax = 10_000;
const pollIntervalMsDefault = 100;
/** An interval above a day is probably in the wrong unit. */
const pollIntervalMsMax = 86_400_000;

export function workerConfig(task: Task, sources: ConfigSources): WorkerConfig {
  const look = (names: readonly string[]) => lookUp(sources.env, task.name, names);
  const code = <Key extends keyof WorkerOptions>(key: Key): WorkerOptions[Key] =>
    sources.code.find((options) => options[key] !== undefined)?.[key];
  const milliseconds = (names: readonly string[], key: "pollInterval" | "pollTimeout", most: number) => {
    const found = look(names);
    if (found !== undefined) return numberOf(found, 0, most, "milliseconds");
    const given = code(key);
    return given === undefined ? undefined : durationMs(given, key);
  };
  const flag = (
    name: string,
    key: "registerTaskDef" | "overwriteTaskDef" | "registerSchema" | "strictSchema" | "paused" | "leaseExtend",
  ) => {
    const found = look([name]) ?? (key === "leaseExtend" ? look(["lease_extend"]) : undefined);
    return found === undefined ? code(key) : flagOf(found);
  };
  const threads = look(["thread_count", "concurrency"]);
  const pollTimeoutMs = milliseconds(["poll_timeout", "poll_timeout_millis"], "pollTimeout", Number.MAX_SAFE_INTEGER);
  const workerId = look(["worker_id"])?.value || code("workerId");
  return {
    task: task.name,
    threadCount:
      threads === undefined
        ? threadCountOf(code("concurrency") ?? task.concurrency ?? sources.slots ?? 1, task.name)
        : numberOf(threads, 1, threadCountMax, "a whole number"),
    pollIntervalMs:
      milliseconds(["poll_interval_millis", "poll_interval", "polling_interval"], "pollInterval", pollIntervalMsMax) ??
      pollIntervalMsDefault,
    // Every server refuses a longer wait with 400.
    pollTimeoutMs: Math.min(pollTimeoutMs ?? pollTimeoutMsDefault, pollTimeoutMsMax),
    longPoll: pollTimeoutMs === undefined,
    domain: (lookUp(sources.env, task.name, ["domain"], true)?.value ?? code("domain")) || undefined,
    workerId: workerId === undefined || workerId === "auto" ? sources.workerId : workerId,
    registerTaskDef: flag("register_task_def", "registerTaskDef") ?? false,
    overwriteTaskDef: flag("overwrite_task_def", "overwriteTaskDef") ?? true,
    registerSchema: flag("register_schema", "registerSchema") ?? globalSchemaFlag(sources.env) ?? true,
    strictSchema: flag("strict_schema", "strictSchema") ?? false,
    paused: flag("paused", "paused") ?? false,
    leaseExtend: flag("lease_extend_enabled", "leaseExtend") ?? true,
    taskDef: code("taskDef") ?? {},
  };
}

/** The line that is logged when a worker starts. */
export function describeWorker(config: WorkerConfig, pid: number): string {
  const fields = [
    `name=${config.task}`,
    `pid=${pid}`,
    `status=${config.paused ? "paused" : "active"}`,
    `poll_interval=${config.pollIntervalMs}ms`,
    `domain=${config.domain ?? "none"}`,
    `thread_count=${config.threadCount}`,
    `poll_timeout=${config.pollTimeoutMs}ms`,
    `lease_extend=${config.leaseExtend}`,
    `register_task_def=${config.registerTaskDef}`,
  ];
  return `Conductor Worker[${fields.join(", ")}]`;
}

/** A variable that is set, with its value. */
export interface Found {
  readonly name: string;
  readonly value: string;
}

/** An empty value counts as absent, except with `emptyCounts`: an empty domain means no domain. */
function lookUp(env: Environment, task: string, properties: readonly string[], emptyCounts = false): Found | undefined {
  for (const spelling of spellings(task)) {
    for (const property of properties) {
      const name = spelling(property);
      const value = env[name]?.trim();
      if (value !== undefined && (value !== "" || emptyCounts)) return { name, value };
    }
  }
  return undefined;
}

function spellings(task: string): readonly ((property: string) => string)[] {
  // A shell cannot set a variable whose name has a dash or a dot in it.
  const plain = task.replace(/[^A-Za-z0-9_]/g, "_");
  const names = plain === task ? [task] : [task, plain];
  return [
    ...names.map((name) => (property: string) => `conductor.worker.${name}.${property}`),
    ...names.map((name) => (property: string) => `conductor_worker_${name}_${property}`),
    ...names.map((name) => (property: string) => `CONDUCTOR_WORKER_${name.toUpperCase()}_${property.toUpperCase()}`),
    ...names.map((name) => (property: string) => `CONDUCTOR_WORKER_${name}_${property.toUpperCase()}`),
    (property) => `conductor.worker.all.${property}`,
    (property) => `CONDUCTOR_WORKER_ALL_${property.toUpperCase()}`,
    (property) => `conductor_worker_all_${property}`,
    (property) => `conductor_worker_${property}`,
    (property) => `CONDUCTOR_WORKER_${property.toUpperCase()}`,
  ];
}

function globalSchemaFlag(env: Environment): boolean | undefined {
  const name = "CONDUCTOR_REGISTER_SCHEMAS";
  const value = variable(env, name);
  return value === undefined ? undefined : flagOf({ name, value });
}

const words: { readonly [word: string]: boolean } = { true: true, "1": true, yes: true, false: false, "0": false, no: false };

/** Also used for the settings of the connection. */
export function flagOf({ name, value }: Found): boolean {
  const flag = Object.hasOwn(words, value.toLowerCase()) ? words[value.toLowerCase()] : undefined;
  if (flag !== undefined) return flag;
  throw badVariable(name, value, `one of ${Object.keys(words).sort().reverse().join(", ")}`);
}

export function numberOf({ name, value }: Found, least: number, most: number, what: "milliseconds" | "a whole number"): number {
  const number = /^\d+(\.\d+)?$/.test(value) ? Number(value) : Number.NaN;
  const fits = number >= least && number <= most && (what === "milliseconds" || Number.isInteger(number));
  if (fits) return Math.round(number);
  throw badVariable(name, value, most === Number.MAX_SAFE_INTEGER ? what : `${what} from ${least} to ${most}`);
}

function threadCountOf(value: number, task: string): number {
  if (Number.isInteger(value) && value >= 1 && value <= threadCountMax) return value;
  const message = `concurrency of ${task} is ${JSON.stringify(value)}, expected a whole number from 1 to ${threadCountMax}.`;
  throw new LongshoreError("LONGSHORE_BAD_CONFIG", message, { detail: { field: "concurrency" } });
}
