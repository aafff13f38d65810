// Requests of people and tools: a new workflow in the runtime form, and the query of a list. Every field of a job is checked here, and
// absent ones get the wire's default.

import { deeperThan, isObject, type Json } from "../../../core/json/json.ts";
import type { JsonPath } from "../../../core/json/json-position.ts";
import type { Job, JobStatus, Port, WireBackoff } from "../wire/shapes.ts";
import { isWhole, parseObject } from "./parse.ts";
import { badQuery, misshapen, Refused, wrongField, wrongType } from "./refuse.ts";

const jobStatuses: readonly JobStatus[] = ["queued", "running", "success", "failure", "skipped", "cancelled"];

/** A job's counts on the wire are unsigned 32-bit numbers. */
const u32Max = 4_294_967_295;
const limitDefault = 100;
const limitMax = 1_000;

export interface NewWorkflow {
  name: string;
  trigger: string;
  jobs: Job[];
}

export interface ListQuery {
  limit: number;
  offset: number;
  /** A job status word; undefined for all. */
  status: string | undefined;
}

export function parseNewWorkflow(text: string): NewWorkflow {
  if (deeperThan(text)) throw new Refused(400, "Failed to parse the request body as JSON: recursion limit exceeded at line 1 column 1");
  const { name, trigger, jobs } = parseObject(text, "CreateWorkflow");
  if (typeof name !== "string") throw wrongField(text, [], "name", name, "a string");
  if (typeof trigger !== "string") throw wrongField(text, [], "trigger", trigger, "a string");
  if (!Array.isArray(jobs)) throw wrongField(text, [], "jobs", jobs, "a sequence");
  return { name, trigger, jobs: jobs.map((job, at) => new JobReader(text, ["jobs", at]).read(job)) };
}

export function parseList(query: URLSearchParams): ListQuery {
  const limit = count(query, "limit", limitDefault);
  return { limit: Math.min(limit, limitMax), offset: count(query, "offset", 0), status: query.get("status") ?? undefined };
}

function count(query: URLSearchParams, name: string, absent: number): number {
  const text = query.get(name);
  if (text === null) return absent;
  if (!/^\d{1,15}$/.test(text)) throw badQuery(name);
  return Number(text);
}

/** Reads one object of the body: each field knows its path, so that an error can name it. */
class Fields {
  readonly text: string;
  readonly path: JsonPath;
  #object: { [key: string]: unknown } = {};

  constructor(text: string, path: JsonPath) {
    this.text = text;
    this.path = path;
  }

  protected open(value: unknown, name: string): void {
    if (!isObject(value)) throw wrongType(this.text, this.path, value, `struct ${name}`);
    this.#object = value;
  }

  protected raw(field: string): unknown {
    return this.#object[field];
  }

  protected string(field: string): string {
    const value = this.#object[field];
    if (typeof value !== "string") throw wrongField(this.text, this.path, field, value, "a string");
    return value;
  }

  protected optionalString(field: string): string | null {
    return this.#object[field] === undefined || this.#object[field] === null ? null : this.string(field);
  }

  protected boolean(field: string): boolean {
    const value = this.#object[field] ?? (field in this.#object ? null : false);
    if (typeof value !== "boolean") throw wrongField(this.text, this.path, field, value, "a boolean");
    return value;
  }

  protected strings(field: string, absent?: string[]): string[] {
    const value = this.#object[field];
    if (value === undefined && absent !== undefined) return absent;
    if (!Array.isArray(value)) throw wrongField(this.text, this.path, field, value, "a sequence");
    value.forEach((item, at) => {
      if (typeof item !== "string") throw wrongType(this.text, [...this.path, field, at], item, "a string");
    });
    return value as string[];
  }

  protected whole(field: string, type: "u32" | "u64"): number | undefined {
    const value = this.#object[field];
    if (value === undefined) return undefined;
    if (!isWhole(value) || (type === "u32" && value > u32Max)) throw wrongType(this.text, [...this.path, field], value, type);
    return value;
  }

  protected variant<T extends string>(field: string, variants: readonly T[]): T {
    const value = this.string(field);
    if ((variants as readonly string[]).includes(value)) return value as T;
    const listed = variants.map((variant) => `\`${variant}\``);
    const expected = listed.length === 2 ? listed.join(" or ") : `one of ${listed.join(", ")}`;
    throw misshapen(this.text, [...this.path, field], `unknown variant \`${value}\`, expected ${expected}`);
  }

  protected list(field: string): unknown[] {
    const value = this.#object[field];
    if (value === undefined) return [];
    if (!Array.isArray(value)) throw wrongType(this.text, [...this.path, field], value, "a sequence");
    return value;
  }
}

class JobReader extends Fields {
  read(value: unknown): Job {
    this.open(value, "Job");
    return {
      id: this.string("id"),
      name: this.string("name"),
      status: this.variant("status", jobStatuses),
      command: this.string("command"),
      duration_secs: this.raw("duration_secs") === null ? null : (this.whole("duration_secs", "u64") ?? null),
      started_at: this.#startedAt(),
      depends_on: this.strings("depends_on"),
      output: this.optionalString("output"),
      required_labels: this.strings("required_labels", []),
      max_retries: this.whole("max_retries", "u32") ?? 0,
      attempt: this.whole("attempt", "u32") ?? 0,
      metadata: this.#metadata(),
      ports: this.list("ports").map((port, at) => new PortReader(this.text, [...this.path, "ports", at]).read(port)),
      children: this.#children(),
      collapsed: this.boolean("collapsed"),
      ...this.#additions(),
    };
  }

  #startedAt(): number | null {
    const value = this.raw("started_at") ?? null;
    if (value !== null && typeof value !== "number") throw wrongType(this.text, [...this.path, "started_at"], value, "f64");
    return value;
  }

  #metadata(): { [key: string]: Json } {
    const value = this.raw("metadata");
    if (value === undefined) return {};
    if (!isObject(value)) throw wrongType(this.text, [...this.path, "metadata"], value, "a map");
    return value as { [key: string]: Json };
  }

  #children(): Job[] | null {
    if (this.raw("children") === undefined || this.raw("children") === null) return null;
    return this.list("children").map((child, at) => new JobReader(this.text, [...this.path, "children", at]).read(child));
  }

  /** Fields that are ours; absent ones stay absent. */
  #additions(): Partial<Job> {
    const additions: Partial<Job> = {};
    const lost = this.whole("max_lost_leases", "u32");
    if (lost !== undefined) additions.max_lost_leases = lost;
    const timeout = this.raw("timeout_secs") === null ? undefined : this.whole("timeout_secs", "u32");
    if (timeout !== undefined) additions.timeout_secs = timeout;
    const priority = this.raw("priority");
    if (priority !== undefined) {
      if (!Number.isSafeInteger(priority)) throw wrongType(this.text, [...this.path, "priority"], priority, "i32");
      additions.priority = priority as number;
    }
    if (this.raw("backoff") !== undefined)
      additions.backoff = new BackoffReader(this.text, [...this.path, "backoff"]).read(this.raw("backoff"));
    return additions;
  }
}

class PortReader extends Fields {
  read(value: unknown): Port {
    this.open(value, "Port");
    return {
      id: this.string("id"),
      label: this.string("label"),
      direction: this.variant("direction", ["input", "output"]),
      port_type: this.optionalString("port_type") ?? "",
      color: this.optionalString("color"),
    };
  }
}

/** `"None"`, `{"Fixed":{"delay_secs":5}}` or `{"Exponential":{"base_secs":2,"max_secs":60}}`, as in the response to a claim. */
class BackoffReader extends Fields {
  read(value: unknown): WireBackoff {
    if (value === "None") return "None";
    const [variant, inner] = isObject(value) ? (Object.entries(value)[0] ?? []) : [];
    if (variant !== "Fixed" && variant !== "Exponential") {
      throw misshapen(this.text, this.path, "unknown backoff, expected `None`, `Fixed` or `Exponential`");
    }
    const fields = new SecondsReader(this.text, [...this.path, variant], inner);
    if (variant === "Fixed") return { Fixed: { delay_secs: fields.seconds("delay_secs") } };
    return { Exponential: { base_secs: fields.seconds("base_secs"), max_secs: fields.seconds("max_secs") } };
  }
}

class SecondsReader extends Fields {
  constructor(text: string, path: JsonPath, value: unknown) {
    super(text, path);
    this.open(value, "Backoff");
  }

  seconds(field: string): number {
    const value = this.whole(field, "u32");
    if (value === undefined) throw wrongField(this.text, this.path, field, undefined, "u32");
    return value;
  }
}
