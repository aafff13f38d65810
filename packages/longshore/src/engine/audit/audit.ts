// The audit: which caller gave which order, when, and what the order changed.

import type { Lane } from "../board/task.ts";

/** The object of an order. */
export type AuditKind = "run" | "task" | "queue" | "worker" | "limit" | "schedule" | "definition" | "document" | "bulk" | "dead-letter";

/** A value of an entry: a few fields. Never inputs or outputs: more people read an audit than a run. */
export type AuditValue = { readonly [field: string]: string | number | boolean | null };

/** An order, as described by the code that performs it. */
export interface Ordered {
  /** What was done: `cancel`, `pause`, `define`. */
  readonly verb: string;
  readonly kind: AuditKind;
  readonly target: string;
  /** Null when nothing existed before. */
  readonly was: AuditValue | null;
  /** Null when nothing exists afterwards. */
  readonly became: AuditValue | null;
  readonly reason?: string | null | undefined;
}

export interface AuditEntry extends Required<Ordered> {
  /** Counts the entries. */
  readonly number: number;
  readonly at: number;
  /** The name of the token; null without one. */
  readonly caller: string | null;
  readonly via: string;
  readonly reason: string | null;
}

/** The filters; an absent one does not filter. */
export interface AuditQuery {
  readonly limit: number;
  /** The `next` of the page before. */
  readonly before?: number | undefined;
  readonly kind?: AuditKind | undefined;
  /** Only together with `kind`. */
  readonly target?: string | undefined;
  readonly caller?: string | undefined;
  readonly verb?: string | undefined;
  readonly since?: number | undefined;
  readonly until?: number | undefined;
}

export interface AuditPage {
  /** The newest first. */
  readonly items: readonly AuditEntry[];
  /** Null at the end. A page may be short, even empty, and still have a next. */
  readonly next: number | null;
}

export interface AuditReader {
  page(query: AuditQuery): Promise<AuditPage>;
}

/** Only the fields that differ. */
export function difference(was: AuditValue, became: AuditValue): Pick<Ordered, "was" | "became"> {
  const names = Object.keys({ ...was, ...became }).filter((name) => was[name] !== became[name]);
  const only = (value: AuditValue) => Object.fromEntries(names.map((name) => [name, value[name] ?? null]));
  return { was: only(was), became: only(became) };
}

/** A lane as a person names it. */
export function laneTarget({ name, labels }: Lane): string {
  return labels.length === 0 ? name : `${name} [${labels.join(" ")}]`;
}
