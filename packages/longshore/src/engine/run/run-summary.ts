// Runs without their data, with many filters: for pages that show tables of runs. A page visits a bounded number of runs and reports it, so
// that its caller can show the progress of a search.

import type { Json } from "../../core/json/json.ts";
import type { TaskRowHead } from "../board/task.ts";
import type { Gate } from "./gate.ts";
import type { RunState } from "./run.ts";

export interface RunSummary {
  readonly id: string;
  readonly workflow: string;
  readonly definitionId: string;
  /** Null when the definition is not stored any more. */
  readonly version: number | null;
  readonly dialect: string | null;
  readonly state: RunState;
  readonly createdAt: number;
  readonly startAt: number | null;
  /** Where it waits for its turn; null when it does not wait. */
  readonly gate: string | null;
  readonly endedAt: number | null;
  /** The number of started steps; a step that was started twice counts twice. */
  readonly steps: number;
  readonly left: number;
  readonly failed: number;
  readonly retries: number;
  readonly priority: number;
  readonly alias: string | null;
  readonly parentTaskId: string | null;
  readonly parentAttempt: number;
  /** The beginning of its error. */
  readonly firstError: string | null;
}

/** The value at a path in the input or the output of a run. */
export interface ValueFilter {
  readonly of: "input" | "output";
  /** Names of members, or positions in lists. */
  readonly path: readonly string[];
  /** As a text: `true`, `17`, `berlin`. */
  readonly value: string;
}

/** The filters; an absent one does not filter. Times are milliseconds since 1970. A time that equals a bound does not match. */
export interface RunFilter {
  readonly states?: readonly RunState[] | undefined;
  readonly workflows?: readonly string[] | undefined;
  readonly dialects?: readonly string[] | undefined;
  readonly created?: Bounds | undefined;
  readonly ended?: Bounds | undefined;
  /** The time from the creation to the end, or until now. */
  readonly minMs?: number | undefined;
  /** Text in the error; case-insensitive. */
  readonly error?: string | undefined;
  /** Only runs that this run has started. */
  readonly parent?: string | undefined;
  readonly alias?: string | undefined;
  /** Text anywhere in id, workflow, alias, input, output or error; case-insensitive. */
  readonly text?: string | undefined;
  /** All of them must match. */
  readonly values?: readonly ValueFilter[] | undefined;
}

export interface Bounds {
  readonly after?: number | undefined;
  readonly before?: number | undefined;
}

export interface SummaryQuery extends RunFilter {
  /** The `next` of the page before. */
  readonly before?: string | undefined;
  readonly limit: number;
}

export interface SummaryPage {
  readonly items: RunSummary[];
  /** Null at the end. A page may be short, even empty, and still have a next. */
  readonly next: string | null;
  /** The number of runs that the page has visited. */
  readonly looked: number;
  /** The number of stored runs; null where only the owner of the data knows it. */
  readonly of: number | null;
}

export interface RunSummaries {
  page(query: SummaryQuery): Promise<SummaryPage>;
  /** The first open tasks of a run. They show why it waits, or what it does. */
  openTasks(runId: string): Promise<TaskRowHead[]>;
  /** The gate of this name, where runs wait for their turn. */
  gate(name: string): Promise<Gate | null>;
}

/** Maximum number of characters of `firstError`. */
export const firstErrorMax = 200;

/** Texts above this length are not parsed to find a value in them: parsing half a megabyte may take some milliseconds. */
export const valueCharsMax = 262_144;

/** Returns whether the value at this path has this text. */
export function hasValue(root: Json, { path, value }: ValueFilter): boolean {
  let at: unknown = root;
  for (const name of path) {
    if (typeof at !== "object" || at === null || !Object.hasOwn(at, name)) return false;
    at = (at as { readonly [name: string]: unknown })[name];
  }
  return at === null ? value === "null" : String(at) === value && !isContainer(at);
}

/** Lists and objects have no text. A number with more digits than a double is an object, too, but it has a text. */
function isContainer(value: unknown): boolean {
  return Array.isArray(value) || (typeof value === "object" && value !== null && Object.getPrototypeOf(value) === Object.prototype);
}
