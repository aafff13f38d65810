// Writes rendered values as REST's JSON: times as texts (RFC 3339), events under the name of their kind.

import { writeExact } from "../../../../core/json/json-exact.ts";
import type { Reader } from "../../../../engine/run/reader.ts";
import type { HttpReply } from "../../../../net/http/http.ts";
import type { Event } from "./events.ts";
import type { Item, Step, Summary } from "./render.ts";

const jsonHeaders = { "content-type": "application/json" } as const;

export function json(value: unknown): HttpReply {
  return { status: 200, headers: jsonHeaders, body: writeExact(value) };
}

/** An object whose last member is a list that may be long. It is written entry by entry and stays in pieces. */
export async function listReply(
  reader: Pick<Reader, "longBody">,
  { name, entries, ...others }: { name: string; entries(): AsyncIterable<object>; first?: object },
): Promise<HttpReply> {
  const first = writeExact(others.first ?? {}).slice(0, -1);
  const body = await reader.longBody(async (growth) => {
    const texts = [`${first}${first === "{" ? "" : ","}"${name}":[`];
    for await (const entry of entries()) {
      const text = `${texts.length === 1 ? "" : ","}${writeExact(entry)}`;
      growth.count(text.length);
      texts.push(text);
      await growth.turn();
    }
    return [...texts, "]}"];
  });
  return { status: 200, headers: jsonHeaders, body };
}

/** Converts each entry. */
export async function* shaped<Entry>(entries: AsyncIterable<Entry>, shape: (entry: Entry) => object): AsyncGenerator<object, void, void> {
  for await (const entry of entries) yield shape(entry);
}

export function summaryJson(summary: Summary): object {
  return withTimes(summary, ["createdAt", "completedAt"]);
}

export function itemJson(item: Item): object {
  return withTimes(item, ["completedAt"]);
}

export function stepJson(step: Step): object {
  return withTimes(step, ["startedAt", "completedAt", "updatedAt"]);
}

/** `{"sequenceNumber": 0, "timestamp": "...", "event": {"RunCreated": {...}}}` */
export function eventJson({ sequenceNumber, timestamp, ...rest }: Event): string {
  const [[name, event] = ["", {}]] = Object.entries(rest);
  return writeExact({
    sequenceNumber,
    timestamp: timeText(timestamp),
    event: { [`${name[0]?.toUpperCase()}${name.slice(1)}`]: event },
  });
}

export function timeText(atMs: number): string {
  return new Date(atMs).toISOString();
}

function withTimes<T extends object>(value: T, names: readonly (keyof T)[]): object {
  const written: { [name in keyof T]?: unknown } = { ...value };
  for (const name of names) if (typeof value[name] === "number") written[name] = timeText(value[name]);
  return written;
}
