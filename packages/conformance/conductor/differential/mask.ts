// Replaces what differs from run to run: ids, times, the host. The same id becomes the same replacement within one chapter, so that a
// fixture still shows which task belongs to which run.
import { hostname } from "node:os";
import { isObject, type Plain, type Recorded } from "../../src/differential/compare.ts";
import type { Answer, Request } from "../../src/exchange.ts";

/** A time in milliseconds; 0 means "never" and is kept. */
const SOME_TIME = 1_794_700_000_000;
const SOME_ISO_TIME = "2026-11-15T00:26:40.000Z";

/** A number between these is a time in milliseconds of a test, not a count or a limit. Requests contain times that are later. */
const EARLIEST_TIME = 1_600_000_000_000;
const LATEST_TIME = 2_000_000_000_000;

/** Durations: they differ from run to run. */
const spans = new Set(["queueWaitTime", "executionTime"]);

/** The reference checks tasks of these types in the background, and counts how often it did. */
const looksBySelf = new Set(["JOIN", "SUB_WORKFLOW", "WAIT"]);
const isLookedAt = ({ taskType }: { [key: string]: Plain }): boolean => looksBySelf.has(String(taskType));
/** A JOIN that was cancelled and taken up again still has its reason, unless a look has overwritten it. */
const isJoinAgain = ({ taskType, status }: { [key: string]: Plain }): boolean =>
  taskType === "JOIN" && (status === "IN_PROGRESS" || status === "COMPLETED");

/** Ids of the reference and of our server: ids of runs, and ids of tasks, which begin with the id of their run. */
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
      .replace(/http:\/\/127\.0\.0\.1:\d{4,5}\b/g, "http://server")
      .replace(/\b20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z/g, SOME_ISO_TIME)
      .replace(/\b1[6-9]\d{11}\b/g, String(SOME_TIME))
      .replace(/\$\$Lambda\/0x[0-9a-f]+/g, "$$$$Lambda");

  const mask = (value: Plain, key = "", owner: { [key: string]: Plain } = {}): Plain => {
    // Written some moments after the task or the run has changed.
    if (key === "executed" && String(owner.status).startsWith("COMPLETED")) return true;
    if (key === "updateTime" && "workflowDefinition" in owner) return SOME_TIME;
    if (isLookedAt(owner)) {
      if (key === "pollCount") return 0;
      if (key === "updateTime") return SOME_TIME;
      // A JOIN fills its output during its checks, so what it contains at one moment is chance.
      if (key === "outputData" && owner.taskType === "JOIN" && owner.status === "IN_PROGRESS") return {};
      // A JOIN that was cancelled and then continued by a retry still has its end time, unless a check has overwritten it.
      if (key === "endTime" && owner.status === "IN_PROGRESS") return 0;
    }
    // The response of an HTTP task: its headers are those of the server that was called.
    if (key === "headers" && "statusCode" in owner && isObject(value)) {
      const type = Object.entries(value).find(([name]) => name.toLowerCase() === "content-type")?.[1] ?? null;
      return { "content-type": mask(type) };
    }
    if (Array.isArray(value))
      return ordered(
        key,
        value.map((item) => mask(item)),
      );
    if (typeof value === "object" && value !== null) {
      const kept = Object.entries(value).filter(
        ([name, inner]) => !(name === "reasonForIncompletion" && isLookedAt(value) && (inner === "" || isJoinAgain(value))),
      );
      return Object.fromEntries(kept.map(([name, inner]) => [text(name), mask(inner, name, value)]));
    }
    if (spans.has(key)) return 0;
    if (key === "instance") return "host";
    if (typeof value === "number") return value > EARLIEST_TIME && value < LATEST_TIME ? SOME_TIME : value;
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

/** Parsed when it is JSON, otherwise the text itself. */
function readBody(body: string, mask: (value: Plain) => Plain): Plain {
  try {
    return mask(JSON.parse(body) as Plain);
  } catch {
    return mask(body);
  }
}

/** Lists that the reference fills from a set: their order changes from run to run. */
function ordered(key: string, list: Plain[]): Plain[] {
  if (key !== "validationErrors" && key !== "failedReferenceTaskNames" && key !== "failedTaskNames") return list;
  return list.toSorted((one, other) => (JSON.stringify(one) < JSON.stringify(other) ? -1 : 1));
}

/** The reference names the refused fields in an order that changes from run to run. */
function orderedFieldErrors(message: string): string {
  const [opening = "", ...errors] = message.split(/(?=\[Field error )/);
  return opening + errors.toSorted().join("");
}
