// Compares two responses. Ids and times differ from run to run, so they are masked. Everything else is compared value by value.
import type { Answer } from "../../src/exchange.ts";

export type Plain = null | boolean | number | string | Plain[] | { [key: string]: Plain };

export interface Difference {
  /** Where: `status`, a header, or a dotted path into the body. */
  at: string;
  reference: Plain | undefined;
  ours: Plain | undefined;
}

/** Fields that our responses may have and the reference's do not. Foreign workers ignore unknown fields, so these do no harm. */
const additions = new Set([
  ...["run_id", "timeout_secs", "kind"], // in a claimed job
  ...["expires_at_ms", "heartbeat_secs"], // in a lease
  "current_jobs", // in a worker
  "attempt", // in a log chunk
]);

/** The largest difference between two clock readings in one request. */
const AT_ONCE_MS = 50;

type ComparedHeader = "content-type" | "allow" | "access-control-allow-origin";

const comparedAlways: readonly ComparedHeader[] = ["content-type", "allow"];
/** The reference sends its CORS headers in every response. They matter only to a web page, which sends its origin. */
const comparedForPages: readonly ComparedHeader[] = [...comparedAlways, "access-control-allow-origin"];

export function compare(reference: Answer, ours: Answer, options: { page?: boolean } = {}): Difference[] {
  const differences: Difference[] = [];
  const note = (at: string, left: Plain | undefined, right: Plain | undefined): void => {
    if (!same(left, right)) differences.push({ at, reference: left, ours: right });
  };
  note("status", reference.status, ours.status);
  for (const name of options.page ? comparedForPages : comparedAlways) note(name, headerOf(reference, name), headerOf(ours, name));
  compareValues("body", bodyOf(reference), bodyOf(ours), note);
  return differences;
}

function compareValues(
  at: string,
  left: Plain | undefined,
  right: Plain | undefined,
  note: (at: string, left?: Plain, right?: Plain) => void,
): void {
  if (isObject(left) && isObject(right)) {
    for (const key of new Set([...Object.keys(left), ...Object.keys(right)])) {
      if (!(key in left) && additions.has(key)) continue;
      compareValues(`${at}.${key}`, left[key], right[key], note);
    }
  } else if (Array.isArray(left) && Array.isArray(right) && left.length === right.length) {
    for (const [index, value] of left.entries()) compareValues(`${at}.${index}`, value, right[index], note);
  } else note(at, left, right);
}

function headerOf(answer: Answer, name: ComparedHeader): string | undefined {
  const value = answer.headers[name];
  // The order of methods and a space after the comma have no meaning.
  return name === "allow" ? value?.split(/, */).sort().join(",") : value;
}

/** JSON with ids and times masked. An error text is cut before its detail, because the framework writes the detail. */
function bodyOf(answer: Answer): Plain {
  if (!answer.headers["content-type"]?.startsWith("application/json")) return answer.body.split(": ")[0] as string;
  // The response to HEAD has a JSON type and no body.
  return answer.body === "" ? "" : masked(JSON.parse(answer.body) as Plain);
}

function masked(value: Plain): Plain {
  if (Array.isArray(value)) return value.map(masked);
  if (!isObject(value)) return value;
  return Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, maskOf(key, value) ?? masked(inner)]));
}

function maskOf(key: string, owner: { [key: string]: Plain }): string | undefined {
  const value = owner[key];
  // "At once" is written as 0 or as the time at which the job was queued.
  if (key === "delayed_until_ms" && Number(value) - Number(owner.enqueued_at_ms ?? 0) < AT_ONCE_MS) return "<at once>";
  // 0 and null mean "no time" and are kept.
  if (/_ms$|^started_at$/.test(key) && typeof value === "number" && value > 0) return "<time>";
  if (key === "lease_id" || key === "workflow_id") return "<id>";
  if (key === "id" && "jobs" in owner && value !== "ci-1") return "<id>";
  return undefined;
}

function isObject(value: Plain | undefined): value is { [key: string]: Plain } {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function same(left: Plain | undefined, right: Plain | undefined): boolean {
  return left === right || JSON.stringify(left) === JSON.stringify(right);
}
