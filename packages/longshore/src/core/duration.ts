// Durations as people write them: `500ms`, `5s`, `2m`, `1h`, `7d`, or a number of milliseconds.

import { LongshoreError } from "./errors.ts";

const unitMs: { [unit: string]: number } = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 };

/** A length of time: milliseconds as a number, or a text such as `"500ms"`, `"30s"`, `"5m"`, `"2h"` or `"1d"`. */
export type Duration = number | `${number}${"ms" | "s" | "m" | "h" | "d"}`;

/** Milliseconds of `value`. `field` names the setting in the error. */
export function durationMs(value: Duration | string, field: string): number {
  const match = typeof value === "number" ? undefined : /^(\d+(?:\.\d+)?)(ms|s|m|h|d)$/.exec(value.trim());
  const ms = typeof value === "number" ? value : match ? Number(match[1]) * (unitMs[match[2] as string] as number) : Number.NaN;
  if (Number.isFinite(ms) && ms >= 0) return Math.round(ms);
  throw new LongshoreError(
    "LONGSHORE_BAD_CONFIG",
    `${field} is ${JSON.stringify(value)}, expected milliseconds or a text such as "30s", "5m", "2h".`,
    {
      detail: { field, expected: "duration" },
    },
  );
}

/** Short and readable: `840 ms`, `12.4 s`, `3 m 20 s`. */
export function formatDuration(ms: number): string {
  if (ms < 999.5) return `${Math.round(ms)} ms`;
  if (ms < 59_950) return `${(ms / 1_000).toFixed(1)} s`;
  const seconds = Math.round(ms / 1_000);
  if (seconds < 3_600) return `${Math.floor(seconds / 60)} m ${seconds % 60} s`;
  const minutes = Math.round(ms / 60_000);
  return `${Math.floor(minutes / 60)} h ${minutes % 60} m`;
}
