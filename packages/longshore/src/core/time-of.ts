// Times as people write them.

const iso = /^\d{4}-\d\d-\d\d(?:T\d\d:\d\d(?::\d\d(?:\.\d{1,9})?)?(?:Z|[+-]\d\d:\d\d)?)?$/;

/** Milliseconds since 1970. A text without an offset is in UTC, so that a time does not depend on the machine. */
export function timeOf(value: unknown): number {
  if (typeof value === "number") return Math.round(value);
  if (typeof value !== "string" || !iso.test(value)) return Number.NaN;
  return Date.parse(/(?:Z|[+-]\d\d:\d\d)$/.test(value) || !value.includes("T") ? value : `${value}Z`);
}
