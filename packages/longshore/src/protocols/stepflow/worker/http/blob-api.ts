// The runtime's HTTP API for blobs, by which workers keep and fetch them in the later dialect. wire/http/README.md, "Blobs".

import type { Backoff } from "../../../../core/backoff.ts";
import type { Clock } from "../../../../core/clock.ts";
import { LongshoreError, toError } from "../../../../core/errors.ts";
import { isObject, type Json } from "../../../../core/json/json.ts";
import { retry } from "../../../../core/retry.ts";
import { type SpanIds, traceparent } from "../../../../core/trace.ts";
import { readAnswer } from "../../../../net/http/read-answer.ts";
import { quoted } from "../../../../net/http/send.ts";

export interface BlobApiOptions {
  readonly url: string;
  readonly clock: Clock;
  /** Aborts when nothing waits for the answer any more. */
  readonly signal: AbortSignal;
  readonly trace: SpanIds | undefined;
}

/** A blob as it was kept: JSON, or bytes. */
export type KeptBlob = { readonly json: Json } | { readonly bytes: Uint8Array };

/** How long one try may take. */
const tryMsMax = 60_000;
/** Storing and fetching may be repeated without harm, so a runtime that restarts has about four seconds. */
const retrying: Backoff = { kind: "exponential", delayMs: 200, factor: 5, maxMs: 3_000 };
const triesMax = 4;
/** The largest blob that is read; as large as the reference's API takes. */
const answerBytesMax = 250 * 1024 * 1024;

export async function putJson(data: Json, type: "data" | "flow", options: BlobApiOptions): Promise<string> {
  const body = JSON.stringify({ data, blobType: type });
  return idIn(await send("", { method: "POST", headers: { "content-type": "application/json" }, body }, options));
}

export async function putBytes(bytes: Uint8Array, options: BlobApiOptions): Promise<string> {
  const body = bytes as Uint8Array<ArrayBuffer>;
  return idIn(await send("", { method: "POST", headers: { "content-type": "application/octet-stream" }, body }, options));
}

/** Rejects with LONGSHORE_NOT_FOUND when there is no such blob. */
export async function getBlob(id: string, options: BlobApiOptions): Promise<KeptBlob> {
  const headers = { accept: "application/json" };
  const answer = parse(await send(`/${encodeURIComponent(id)}`, { headers }, options));
  if (!isObject(answer) || !("data" in answer)) throw unexpected("no data");
  const { data, blobType } = answer as { data: Json; blobType?: unknown };
  return blobType === "binary" && typeof data === "string" ? { bytes: Buffer.from(data, "base64") } : { json: data };
}

function send(path: string, request: RequestInit, options: BlobApiOptions): Promise<Uint8Array> {
  const { clock, signal } = options;
  return retry(() => sendOnce(path, request, options), { clock, signal, backoff: retrying, triesMax });
}

async function sendOnce(path: string, request: RequestInit, { url, clock, signal, trace }: BlobApiOptions): Promise<Uint8Array> {
  const timeout = new AbortController();
  const disarm = clock.at(clock.now() + tryMsMax, () => timeout.abort(new LongshoreError("LONGSHORE_DEADLINE", "the try took too long")));
  try {
    const headers = { ...request.headers, ...(trace === undefined ? {} : { traceparent: traceparent(trace) }) };
    const until = AbortSignal.any([signal, timeout.signal]);
    // A redirect would lead the worker to addresses that only it can reach.
    const response = await fetch(`${url}${path}`, { ...request, headers, signal: until, redirect: "manual" });
    const body = await readAnswer(response, answerBytesMax);
    if (body.length > answerBytesMax) throw new LongshoreError("LONGSHORE_LIMIT", `A blob is larger than ${answerBytesMax} bytes.`);
    if (!response.ok) throw refusalOf(response.status, body.toString(), url);
    return body;
  } catch (error) {
    if (error instanceof LongshoreError && error.code !== "LONGSHORE_DEADLINE") throw error;
    const why = toError(error);
    const message = `The blob API at ${url} did not answer: ${why.cause instanceof Error ? why.cause.message : why.message}`;
    throw new LongshoreError("LONGSHORE_UNREACHABLE", message, { cause: error });
  } finally {
    disarm();
  }
}

function refusalOf(status: number, text: string, url: string): LongshoreError {
  const message = `The blob API at ${url} answered ${quoted({ status, text }).slice("status ".length)}`;
  if (status === 404) return new LongshoreError("LONGSHORE_NOT_FOUND", message);
  if (status === 413) return new LongshoreError("LONGSHORE_LIMIT", message);
  if (status < 500 && status !== 429) return new LongshoreError("LONGSHORE_BAD_INPUT", message);
  return new LongshoreError("LONGSHORE_UNREACHABLE", message);
}

function idIn(body: Uint8Array): string {
  const answer = parse(body);
  const id = isObject(answer) ? (answer.blobId ?? answer.blob_id) : undefined;
  if (typeof id !== "string") throw unexpected("no blobId");
  return id;
}

function parse(body: Uint8Array): unknown {
  try {
    return JSON.parse(Buffer.from(body).toString());
  } catch (error) {
    throw unexpected("a body that is not JSON", error);
  }
}

function unexpected(what: string, cause?: unknown): LongshoreError {
  return new LongshoreError("LONGSHORE_UNREACHABLE", `The blob API answered with ${what}.`, { cause });
}
