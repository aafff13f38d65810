// Limits of the storage and memory that all callers together, or one run, may use, in addition to the limits of a single request.

import { LongshoreError } from "./errors.ts";

/** The kinds of stored data that have a quota in bytes. */
export const storedKinds = ["blobs", "documents", "parts", "bus", "logs", "attempts"] as const;
export type StoredKind = (typeof storedKinds)[number];

export interface Quotas {
  /** Bytes of all blobs together. */
  readonly blobBytes: number;
  /** Bytes of all documents together, such as task definitions. */
  readonly documentBytes: number;
  /** Bytes of all parts that tasks have produced before their end. */
  readonly partBytes: number;
  /** Bytes of all records of the embedded bus. */
  readonly busBytes: number;
  /** Bytes of all logs together. */
  readonly logBytes: number;
  /** Bytes of all closed attempts after which the task was tried again. */
  readonly attemptBytes: number;
  /** Open runs that one run has started, directly or through others. */
  readonly familyRuns: number;
  /** Characters of all inputs and results of one durable function, until it calls `continueAs`. */
  readonly functionChars: number;
}

const gib = 1024 * 1024 * 1024;

/** Callers with a worker token must not fill the disk that runs are written to. */
export const quotaDefaults: Quotas = {
  blobBytes: 64 * gib,
  /** A hundred thousand definitions of ten kilobytes. */
  documentBytes: gib,
  partBytes: 16 * gib,
  /** Only records that workers have not taken yet. */
  busBytes: 4 * gib,
  logBytes: 16 * gib,
  attemptBytes: 4 * gib,
  /** The limit of items of a run. A larger family is probably a mistake that keeps growing. */
  familyRuns: 100_000,
  /** A worker replays at most 268,435,456 characters; the rest is room for names and keys. */
  functionChars: 251_658_240,
};

interface ByteQuota {
  readonly quota: Exclude<keyof Quotas, "familyRuns" | "functionChars">;
  readonly flag: string;
  /** The name of this data in messages. */
  readonly what: string;
  /** The advice how to make room. */
  readonly how: string;
}

const shorter = "Remove runs that have ended, keep them for a shorter time (--keep-for)";

export const byteQuotas: Readonly<Record<StoredKind, ByteQuota>> = {
  blobs: { quota: "blobBytes", flag: "--blob-bytes", what: "all blobs", how: "Keep blobs for a shorter time (retention.blobs)" },
  documents: { quota: "documentBytes", flag: "--document-bytes", what: "all documents", how: "Remove definitions that are not used" },
  parts: { quota: "partBytes", flag: "--part-bytes", what: "the parts of all tasks", how: shorter },
  bus: { quota: "busBytes", flag: "--bus-bytes", what: "all records of the bus", how: "Let workers take what waits for them" },
  logs: { quota: "logBytes", flag: "--log-bytes", what: "the logs of all tasks", how: "Keep logs for a shorter time (--keep-logs)" },
  attempts: { quota: "attemptBytes", flag: "--attempt-bytes", what: "the attempts of all tasks", how: shorter },
};

/** Throws LONGSHORE_BAD_CONFIG for a quota that is not a positive whole number. */
export function quotasOf(given: Partial<Quotas> = {}): Partial<Quotas> {
  for (const [name, value] of Object.entries(given)) {
    if (value === undefined || (Number.isSafeInteger(value) && value > 0)) continue;
    const field = `quotas.${name}`;
    const expected = "a whole number from 1 on";
    throw new LongshoreError("LONGSHORE_BAD_CONFIG", `${field} is ${String(value)}, expected ${expected}.`, {
      detail: { field, expected },
    });
  }
  return given;
}

/** The error when a quota has no room for more. */
export function quotaReached(kind: StoredKind, max: number): LongshoreError {
  const { quota, flag, what, how } = byteQuotas[kind];
  const message = `There is no room for more: ${what} together may have ${max} bytes. ${how}, or raise ${flag} (quotas.${quota}).`;
  const detail = { field: `${quotaField}${quota}`, expected: `at most ${max} bytes` };
  return new LongshoreError("LONGSHORE_LIMIT", message, { detail });
}

const quotaField = "quotas.";

/** Whether the error is a reached quota: the same request may succeed later, when there is room again. */
export function isQuotaReached(error: unknown): boolean {
  return error instanceof LongshoreError && error.code === "LONGSHORE_LIMIT" && error.detail.field?.startsWith(quotaField) === true;
}
