// The wire format of the bus over HTTP: JSON. A value that is valid UTF-8 is sent as text, any other as base64. Client and server both use
// this file.

import { isUtf8 } from "node:buffer";
import type { BusRecord, Outgoing } from "../core/bus/bus.ts";
import { LongshoreError } from "../core/errors.ts";
import { isObject, type Json, type JsonObject } from "../core/json/json.ts";
import { shown } from "../core/text.ts";

/** Paths below the address of the bus. */
export const publishPath = "/publish";
export const takePath = "/take";

/** The limit of records in one publish request, counted before they become JSON. A client splits larger requests (`PublishBatcher`). */
export const publishBytesMax = 4 * 1024 * 1024;
/** The server's limit of the body of a publish request. Escapes in JSON may turn one byte into six characters. */
export const publishBodyBytesMax = 6 * publishBytesMax;
export const publishRecordsMax = 5_000;
/** How long a poll may wait for records. A proxy may cut a longer poll. */
export const takeWaitMsMax = 30_000;
export const takeRecordsMax = 5_000;
/** A member that was silent for this long has left, and its records are delivered to others. */
export const memberMs = 30_000;
const namesMax = 1_000;
const nameCharsMax = 249;

export interface TakeRequest {
  readonly group: string;
  /** A unique id that the client makes. */
  readonly member: string;
  readonly topics: readonly string[];
  readonly from: "earliest" | "latest";
  /** 0 requests no records: the call joins, commits, or renews the membership. */
  readonly max: number;
  readonly waitMs: number;
  /** The deliveries that the member has handled. */
  readonly commit: readonly number[];
  /**
   * Deliveries that the member has received and not finished. Every other delivery to this member was lost on the way, so the server takes
   * it back. When absent, the server takes nothing back.
   */
  readonly holding: readonly number[] | undefined;
  /** The member leaves its group. */
  readonly leave: boolean;
}

export interface TakeAnswer {
  readonly taken: number | null;
  readonly records: readonly BusRecord[];
}

export function publishBody(records: readonly Outgoing[]): string {
  return JSON.stringify({ records: records.map(({ topic, key, value }) => ({ topic, key, ...packed(value) })) });
}

export function readPublish(text: string): Outgoing[] {
  const body = objectIn(text);
  const records = listIn(body, "records", publishRecordsMax);
  return records.map((record, at) => {
    const field = `records[${at}]`;
    if (!isObject(record)) throw bad(field, record, "an object with topic, key and value");
    const { topic, key = null } = record;
    if (typeof topic !== "string") throw bad(`${field}.topic`, topic, "a text");
    if (key !== null && typeof key !== "string") throw bad(`${field}.key`, key, "a text or null");
    return { topic, key, value: unpacked(record, field) };
  });
}

export function readTake(text: string): TakeRequest {
  const body = objectIn(text);
  const { from = "latest", max, waitMs = 0, leave = false } = body;
  if (from !== "earliest" && from !== "latest") throw bad("from", from, '"earliest" or "latest"');
  if (!isCount(max) || max > takeRecordsMax) throw bad("max", max, `a whole number from 0 to ${takeRecordsMax}`);
  if (!isCount(waitMs) || waitMs > takeWaitMsMax) throw bad("waitMs", waitMs, `whole milliseconds from 0 to ${takeWaitMsMax}`);
  if (typeof leave !== "boolean") throw bad("leave", leave, "true or false");
  return {
    group: nameIn(body.group, "group"),
    member: nameIn(body.member, "member"),
    topics: listIn(body, "topics", namesMax).map((topic, at) => nameIn(topic, `topics[${at}]`)),
    ...{ from, max, waitMs, leave },
    commit: numbersIn(body, "commit"),
    holding: body.holding === undefined ? undefined : numbersIn(body, "holding"),
  };
}

export function takeAnswerBody({ taken, records }: TakeAnswer): string {
  return JSON.stringify({
    taken,
    records: records.map(({ topic, key, value, place, at }) => ({ topic, key, place, at, ...packed(value) })),
  });
}

/** Checks only that there is a list of records, each with a value: a program that is not a bus returns something else. */
export function readTakeAnswer(answer: unknown): TakeAnswer {
  const { taken, records } = (isObject(answer) ? answer : {}) as {
    taken: number | null;
    records: (JsonObject & Omit<BusRecord, "value">)[];
  };
  if (!Array.isArray(records)) throw bad("records", records, "a list");
  return {
    taken,
    records: records.map((record, at) => {
      const value = unpacked(record, `records[${at}]`);
      return { ...record, value: typeof value === "string" ? Buffer.from(value) : value };
    }),
  };
}

function packed(value: string | Uint8Array): { value: string } | { base64: string } {
  if (typeof value === "string") return { value };
  const bytes = Buffer.from(value.buffer, value.byteOffset, value.byteLength);
  return isUtf8(bytes) ? { value: bytes.toString("utf8") } : { base64: bytes.toString("base64") };
}

function unpacked(record: JsonObject, field: string): string | Uint8Array {
  if (typeof record.value === "string") return record.value;
  if (typeof record.base64 === "string") return Buffer.from(record.base64, "base64");
  throw bad(`${field}.value`, record.value, "a text, or base64 in the field base64");
}

function objectIn(text: string): JsonObject {
  let value: Json;
  try {
    value = JSON.parse(text) as Json;
  } catch (cause) {
    throw new LongshoreError("LONGSHORE_BAD_INPUT", `The body is not JSON: ${(cause as Error).message}.`, {
      cause,
      detail: { field: "body" },
    });
  }
  if (!isObject(value)) throw bad("body", value, "a JSON object");
  return value;
}

function listIn(body: JsonObject, field: string, max: number): readonly Json[] {
  const list = body[field];
  if (!Array.isArray(list)) throw bad(field, list, "a list");
  if (list.length > max) {
    const expected = `at most ${max}`;
    throw new LongshoreError("LONGSHORE_BAD_INPUT", `${field} has ${list.length} entries, expected ${expected}.`, {
      detail: { field, expected },
    });
  }
  return list;
}

function numbersIn(body: JsonObject, field: string): number[] {
  if (body[field] === undefined) return [];
  return listIn(body, field, namesMax).map((one, at) => {
    if (!isCount(one)) throw bad(`${field}[${at}]`, one, "a whole number");
    return one;
  });
}

function nameIn(value: Json | undefined, field: string): string {
  if (typeof value === "string" && value.length > 0 && value.length <= nameCharsMax) return value;
  throw bad(field, value, `a text of 1 to ${nameCharsMax} characters`);
}

function isCount(value: Json | undefined): value is number {
  return Number.isSafeInteger(value) && (value as number) >= 0;
}

function bad(field: string, value: unknown, expected: string): LongshoreError {
  return new LongshoreError("LONGSHORE_BAD_INPUT", `${field} is ${shown(value)}, expected ${expected}.`, { detail: { field, expected } });
}
