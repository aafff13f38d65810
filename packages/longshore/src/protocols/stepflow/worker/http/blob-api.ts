// The runtime's HTTP API for blobs, which workers use in dialect B. wire/http/README.md, "Blobs".

import type { Backoff } from "../../../../core/backoff.ts";
import type { Clock } from "../../../../core/clock.ts";
import { LongshoreError, toError } from "../../../../core/errors.ts";
import { isObject, type Json } from "../../../../core/json/json.ts";
import { retry } from "../../../../core/retry.ts";
import { type SpanIds, traceparent } from "../../../../core/trace.ts";
import type { HttpAgent } from "../../../../net/http/agent.ts";
import { quoted, type Reply } from "../../../../net/http/send.ts";

export interface BlobApiOptions {
  readonly url: string;
  readonly http: Pick<HttpAgent, "send">;
  readonly clock: Clock;
  /** Aborts when no caller waits for the answer any more. */
  readonly signal: AbortSignal;
  readonly trace: SpanIds | undefined;
}

/** A stored blob: JSON, or bytes. */
export type KeptBlob = { readonly json: Json } | { readonly bytes: Uint8Array };

/** Timeout of one try. */
const tryMsMax = 60_000;
/** Storing and fetching are idempotent, so they are retried. All tries together give a runtime about four seconds to restart. */
const retrying: Backoff = { kind: "exponential", delayMs: 200, factor: 5, maxMs: 3_000 };
const triesMax = 4;
/** The largest blob that is read: the limit of the reference's API. */
const answerBytesMax = 250 * 1024 * 1024;

export async function putJson(data: Json, type: "data" | "flow", options: BlobApiOptions): Promise<string> {
  const body = JSON.stringify({ data, blobType: type });
  return idIn(await send("", { type: "application/json", body }, options));
}

export async function putBytes(bytes: Uint8Array, options: BlobApiOptions): Promise<string> {
  return idIn(await send("", { type: "application/octet-stream", body: bytes }, options));
}

/** Rejects with LONGSHORE_NOT_FOUND when there is no such blob. */
export async function getBlob(id: string, options: BlobApiOptions): Promise<KeptBlob> {
  const answer = parse(await send(`/${encodeURIComponent(id)}`, undefined, options));
  if (!isObject(answer) || !("data" in answer)) throw unexpected("no data");
  const { data, blobType } = answer as { data: Json; blobType?: unknown };
  return blobType === "binary" && typeof data === "string" ? { bytes: Buffer.from(data, "base64") } : { json: data };
}

interface Content {
  readonly type: string;
  readonly body: string | Uint8Array;
}

/** Stores `content`, or fetches the blob at `path` when there is none. Returns the text of the answer. */
function send(path: string, content: Content | undefined, options: BlobApiOptions): Promise<string> {
  const { clock, signal } = options;
  return retry(() => sendOnce(path, content, options), { clock, signal, backoff: retrying, triesMax });
}

async function sendOnce(path: string, content: Content | undefined, options: BlobApiOptions): Promise<string> {
  const { url, http, clock, signal, trace } = options;
  const timeout = new AbortController();
  const disarm = clock.at(clock.now() + tryMsMax, () => timeout.abort(new LongshoreError("LONGSHORE_DEADLINE", "the try took too long")));
  try {
    const reply = await http.send({
      url: new URL(`${url}${path}`),
      method: content === undefined ? "GET" : "POST",
      headers: {
        ...(content === undefined ? { accept: "application/json" } : { "content-type": content.type }),
        ...(trace === undefined ? {} : { traceparent: traceparent(trace) }),
      },
      ...(content === undefined ? {} : { body: content.body }),
      timeoutMs: tryMsMax,
      signal: AbortSignal.any([signal, timeout.signal]),
      bytesMax: answerBytesMax,
    });
    if (reply.status < 200 || reply.status > 299) throw refusalOf(reply, url);
    return reply.text;
  } catch (error) {
    if (error instanceof LongshoreError && error.code !== "LONGSHORE_DEADLINE") throw error;
    throw new LongshoreError("LONGSHORE_UNREACHABLE", `The blob API at ${url} did not answer: ${toError(error).message}`, { cause: error });
  } finally {
    disarm();
  }
}

function refusalOf(reply: Reply, url: string): LongshoreError {
  const { status } = reply;
  const message = `The blob API at ${url} answered ${quoted(reply).slice("status ".length)}`;
  if (status === 404) return new LongshoreError("LONGSHORE_NOT_FOUND", message);
  if (status === 413) return new LongshoreError("LONGSHORE_LIMIT", message);
  if (status < 500 && status !== 429) return new LongshoreError("LONGSHORE_BAD_INPUT", message);
  return new LongshoreError("LONGSHORE_UNREACHABLE", message);
}

function idIn(text: string): string {
  const answer = parse(text);
  const id = isObject(answer) ? (answer.blobId ?? answer.blob_id) : undefined;
  if (typeof id !== "string") throw unexpected("no blobId");
  return id;
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw unexpected("a body that is not JSON", error);
  }
}

function unexpected(what: string, cause?: unknown): LongshoreError {
  return new LongshoreError("LONGSHORE_UNREACHABLE", `The blob API answered with ${what}.`, { cause });
}
