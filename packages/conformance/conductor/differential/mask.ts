// Replaces what differs from run to run: ids, times, the host. The same id becomes the same replacement within one chapter, so that a
// fixture still shows which task belongs to which run.
import { hostname } from "node:os";
import type { Plain, Recorded } from "../../src/differential/compare.ts";
import type { Answer, Request } from "../../src/exchange.ts";

/** Any moment of the clock; 0 means "never" and is kept. */
const SOME_TIME = 1_794_700_000_000;
const SOME_ISO_TIME = "2026-11-15T00:26:40.000Z";

/** Above this a number is a moment in milliseconds, not a count or a limit. */
const EARLIEST_TIME = 1_600_000_000_000;

/** Spans of time: how long something took is not promised. */
const spans = new Set(["queueWaitTime", "executionTime"]);

/** The reference looks at tasks of these types by itself, as often as it likes, and notes it. */
const looksBySelf = new Set(["JOIN", "SUB_WORKFLOW", "WAIT"]);
const isLookedAt = ({ taskType }: { [key: string]: Plain }): boolean => looksBySelf.has(String(taskType));

/** The reference's ids, and ours: a run's, and a task's that begins with its run's. */
const ID = /[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}|\b01[0-9A-HJKMNP-TV-Z]{24}(?:f|[-.]\d+)*/g;

export function createRecorder(): (step: string, request: Request, answer: Answer) => Recorded {
  const ids = new Map<string, string>();
  const text = (value: string): string =>
    value
      .replace(ID, (id) => {
        const known = ids.get(id) ?? `00000000-0000-4000-8000-${String(ids.size + 1).padStart(12, "0")}`;
        ids.set(id, known);
        return known;
      })
      .replace(/\b20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z/g, SOME_ISO_TIME)
      .replace(/\b1[6-9]\d{11}\b/g, String(SOME_TIME));

  const mask = (value: Plain, key = "", owner: { [key: string]: Plain } = {}): Plain => {
    // Noted some moments after the task or the run has changed.
    if (key === "executed" && String(owner.status).startsWith("COMPLETED")) return true;
    if (key === "updateTime" && "workflowDefinition" in owner) return SOME_TIME;
    if (isLookedAt(owner)) {
      if (key === "pollCount") return 0;
      if (key === "updateTime") return SOME_TIME;
      // A JOIN fills its output while it looks; what it has seen so far is chance.
      if (key === "outputData" && owner.taskType === "JOIN" && owner.status === "IN_PROGRESS") return {};
      // One that was cancelled and taken up again by a retry still has its end, unless a look has overwritten it.
      if (key === "endTime" && owner.status === "IN_PROGRESS") return 0;
    }
    if (Array.isArray(value))
      return ordered(
        key,
        value.map((item) => mask(item)),
      );
    if (typeof value === "object" && value !== null) {
      const kept = Object.entries(value).filter(
        ([name, inner]) => !(name === "reasonForIncompletion" && inner === "" && isLookedAt(value)),
      );
      return Object.fromEntries(kept.map(([name, inner]) => [text(name), mask(inner, name, value)]));
    }
    if (spans.has(key)) return 0;
    if (key === "instance") return "host";
    if (typeof value === "number") return value > EARLIEST_TIME ? SOME_TIME : value;
    return typeof value === "string" ? (value === hostname() ? "host" : text(orderedFieldErrors(value))) : value;
  };

  return (step, request, answer) => ({
    step,
    request: {
      method: request.method,
      path: text(request.path),
      ...typeOf(request.headers?.["content-type"]),
      ...(request.body === undefined ? {} : { body: readBody(request.body, mask) }),
    },
    answer: { status: answer.status, ...typeOf(answer.headers["content-type"]), body: readBody(answer.body, mask) },
  });
}

function typeOf(contentType: string | undefined): { contentType?: string } {
  return contentType === undefined ? {} : { contentType };
}

/** JSON where it is JSON, text where it is not. */
function readBody(body: string, mask: (value: Plain) => Plain): Plain {
  try {
    return mask(JSON.parse(body) as Plain);
  } catch {
    return mask(body);
  }
}

/** Lists that the reference fills from a set, in an order that changes from run to run. */
function ordered(key: string, list: Plain[]): Plain[] {
  if (key !== "validationErrors" && key !== "failedReferenceTaskNames" && key !== "failedTaskNames") return list;
  return list.toSorted((one, other) => (JSON.stringify(one) < JSON.stringify(other) ? -1 : 1));
}

/** The reference names the fields it refuses in an order that changes from run to run. */
function orderedFieldErrors(message: string): string {
  const [opening = "", ...errors] = message.split(/(?=\[Field error )/);
  return opening + errors.toSorted().join("");
}
