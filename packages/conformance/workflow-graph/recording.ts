// Turns what passed through a recording proxy into a fixture that is the same each time. Ids and times are replaced by fixed values of the
// same length, so that content-length stays correct. An exchange that repeats literally is kept once.
import type { IncomingHttpHeaders } from "node:http";
import type { Answer, Request } from "../src/exchange.ts";

export interface Recorded {
  step?: string;
  request: { method: string; path: string; headers: Record<string, string>; body: string };
  answer: { status: number; headers: Record<string, string>; body: string };
}

/** Headers that belong to the protocol rather than to a library's version, a host or a date. */
const keptHeaders = ["content-type", "content-length", "allow", "cache-control"];

/** Longer bodies only test a limit, so the fixture contains only their length. */
const BODY_CHARS_MAX = 100_000;

const fixedTimes: Record<string, number> = {
  registered_at_ms: 1_794_700_000_000,
  enqueued_at_ms: 1_794_700_001_000,
  delayed_until_ms: 1_794_700_002_000,
  granted_at_ms: 1_794_700_003_000,
  started_at: 1_794_700_003_000,
  timestamp_ms: 1_794_700_004_000,
  last_heartbeat_ms: 1_794_700_005_000,
};

/** A recorder always replaces the same id by the same value, so each session needs its own recorder. */
export function createRecorder(): (request: Request, answer: Answer, step?: string) => Recorded {
  const uuids = new Map<string, string>();
  const stable = (text: string): string =>
    text
      .replace(/[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}/g, (uuid) => {
        const known = uuids.get(uuid) ?? `00000000-0000-4000-8000-${String(uuids.size + 1).padStart(12, "0")}`;
        uuids.set(uuid, known);
        return known;
      })
      .replace(/\b((?:python|node|go)-)[0-9a-f]{6}\b/g, "$1000001")
      .replace(/"(\w+)":( ?)\d{13}/g, (whole, key: string, space: string) =>
        key in fixedTimes ? `"${key}":${space}${fixedTimes[key]}` : whole,
      );

  return (request, answer, step) => ({
    ...(step === undefined ? {} : { step }),
    request: {
      method: request.method,
      path: stable(request.path),
      headers: pick(request.headers ?? {}),
      body: shortened(stable(request.body ?? "")),
    },
    answer: { status: answer.status, headers: pick(answer.headers), body: stable(answer.body) },
  });
}

export function withoutRepeats(recorded: readonly Recorded[]): Recorded[] {
  return [...new Map(recorded.map((one) => [JSON.stringify(one), one])).values()];
}

function pick(headers: IncomingHttpHeaders | Record<string, string>): Record<string, string> {
  return Object.fromEntries(keptHeaders.flatMap((name) => (headers[name] === undefined ? [] : [[name, String(headers[name])]])));
}

function shortened(body: string): string {
  return body.length > BODY_CHARS_MAX ? `(${body.length} characters)` : body;
}
