// What callers may fill of the machine altogether, whatever each single request is allowed.

import { LongshoreError } from "./errors.ts";

export interface Quotas {
  /** Bytes of all blobs together. */
  readonly blobBytes: number;
  /** Open runs that one run has started, directly or through others. */
  readonly familyRuns: number;
}

export const quotaDefaults: Quotas = {
  /** Callers with a worker token must not fill the disk that runs are written to. */
  blobBytes: 64 * 1024 * 1024 * 1024,
  /** As many as a run may have items. A larger family is a mistake that grows by itself. */
  familyRuns: 100_000,
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
