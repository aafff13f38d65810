// What callers may fill of the machine altogether, whatever each single request is allowed.

import { LongshoreError } from "./errors.ts";

/** What is counted in bytes, each with a quota of its own. */
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
  /** Bytes of all attempts that were followed by another. */
  readonly attemptBytes: number;
  /** Open runs that one run has started, directly or through others. */
  readonly familyRuns: number;
}

const gib = 1024 * 1024 * 1024;

/** Callers with a worker token must not fill the disk that runs are written to. */
export const quotaDefaults: Quotas = {
  blobBytes: 64 * gib,
  /** Definitions that people or programs write: a hundred thousand of ten kilobytes. */
  documentBytes: gib,
  partBytes: 16 * gib,
  /** What workers have not taken yet, and nothing else. */
  busBytes: 4 * gib,
  logBytes: 16 * gib,
  attemptBytes: 4 * gib,
  /** As many as a run may have items. A larger family is a mistake that grows by itself. */
  familyRuns: 100_000,
};

interface ByteQuota {
  readonly quota: Exclude<keyof Quotas, "familyRuns">;
  readonly flag: string;
  /** What all of them together are called. */
  readonly what: string;
  /** How room is made. */
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

/** Throws LONGSHORE_BAD_CONFIG for a quota that is no count. */
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

/** What is refused when there is no room for more of a kind. */
export function quotaReached(kind: StoredKind, max: number): LongshoreError {
  const { quota, flag, what, how } = byteQuotas[kind];
  const message = `There is no room for more: ${what} together may have ${max} bytes. ${how}, or raise ${flag} (quotas.${quota}).`;
  const detail = { field: `${quotaField}${quota}`, expected: `at most ${max} bytes` };
  return new LongshoreError("LONGSHORE_LIMIT", message, { detail });
}

const quotaField = "quotas.";

/** Whether what was refused may be taken later, when there is room again. */
export function isQuotaReached(error: unknown): boolean {
  return error instanceof LongshoreError && error.code === "LONGSHORE_LIMIT" && error.detail.field?.startsWith(quotaField) === true;
}
