// Replaces what differs from run to run: ids of runs and flows, times, the build, the order of keys. The same id becomes the same replacement
// within one chapter, so that a fixture still shows what belongs together. Ids of blobs stay, because they are computed from the content.
import type { Plain, Recorded } from "../../src/differential/compare.ts";
import type { Played } from "../../src/differential/script.ts";

const SOME_TIME = "2026-11-15T00:26:40.000Z";
const UUID = /[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}/g;

export function recorded(played: readonly Played[]): Recorded[] {
  const mask = createMask(flowIds(played));
  return played.map(({ step, request, answer }) => ({
    step: step.name,
    request: {
      method: request.method,
      path: mask.text(request.path),
      ...(request.body === undefined ? {} : { body: mask.body(request.body) }),
    },
    answer: { status: answer.status, ...typeOf(answer.headers["content-type"]), body: mask.body(answer.body) },
  }));
}

/** The real server gives the same flow a different id each time, because it shuffles the keys of objects before it computes the hash. */
function flowIds(played: readonly Played[]): ReadonlySet<string> {
  return new Set(played.flatMap(({ answer }) => [...answer.body.matchAll(/"flowId":"([0-9a-f]{64})"/g)].map(([, id]) => id as string)));
}

function createMask(flows: ReadonlySet<string>): { text(value: string): string; body(text: string): Plain } {
  const ids = new Map<string, string>();
  const replacement = (id: string): string => {
    const known = ids.get(id) ?? `00000000-0000-4000-8000-${String(ids.size + 1).padStart(12, "0")}`;
    ids.set(id, known);
    return known;
  };
  const text = (value: string): string =>
    value
      .replace(UUID, replacement)
      .replace(/[0-9a-f]{64}/g, (id) => (flows.has(id) && !/^0+$/.test(id) ? replacement(id) : id))
      .replace(/\b20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z/g, SOME_TIME);
  const value = (plain: Plain, key = ""): Plain => {
    if (key === "build") return "(build)";
    if (Array.isArray(plain))
      return ordered(
        key,
        plain.map((item) => value(item)),
      );
    if (typeof plain === "object" && plain !== null) {
      return Object.fromEntries(
        Object.keys(plain)
          .toSorted()
          .map((name) => [name, value(plain[name] as Plain, name)]),
      );
    }
    return typeof plain === "string" ? text(plain) : plain;
  };
  return { text, body: (body) => value(parsed(body)) };
}

/** Lists that the real server fills from a set: their order changes each time. */
function ordered(key: string, list: Plain[]): Plain[] {
  if (key !== "diagnostics" && key !== "steps") return list;
  return list.toSorted((one, other) => (JSON.stringify(one) < JSON.stringify(other) ? -1 : 1));
}

/** JSON is parsed, a stream becomes a list of its events, and anything else stays text. */
function parsed(body: string): Plain {
  if (/^(?:id: .*\n)?data: /.test(body)) return [...body.matchAll(/^data: ?(.*)$/gm)].map(([, data = ""]) => parsed(data));
  try {
    return JSON.parse(body) as Plain;
  } catch {
    return body;
  }
}

function typeOf(contentType: string | undefined): { contentType?: string } {
  return contentType === undefined ? {} : { contentType };
}

/** Numbers of events. Each server counts in its own way, and only the order matters, which the list of events shows anyway. */
const numbers = new Set(["sequenceNumber", "createdAtSeqno", "finishedAtSeqno", "journalSeqno"]);

/** The real orchestrator never reports the end of an item, ours does. */
const isItemEvent = (plain: Plain): boolean => JSON.stringify(plain).startsWith('{"event":{"ItemCompleted"');

/** The part of a response that two servers have in common: without the numbers of events, and without some events. */
export function comparable(exchange: Recorded): Recorded {
  const blur = (plain: Plain, key = ""): Plain => {
    if (numbers.has(key)) return 0;
    if (Array.isArray(plain)) return plain.filter((item) => !isItemEvent(item)).map((item) => blur(item));
    if (typeof plain !== "object" || plain === null) return plain;
    return Object.fromEntries(Object.entries(plain).map(([name, inner]) => [name, blur(inner, name)]));
  };
  return { ...exchange, answer: { ...exchange.answer, body: blur(exchange.answer.body) } };
}
