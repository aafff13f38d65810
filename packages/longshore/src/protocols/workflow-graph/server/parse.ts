// Parses requests of workers, with code written by hand: claim and complete are the hottest paths of the server. A valid request costs one
// `JSON.parse` and a few comparisons. For an invalid one, refuse.ts finds the position and the text of the error. Unknown fields are
// ignored.

import type { IncomingHttpHeaders } from "node:http";
import { deeperThan, isObject, jsonDepthMax } from "../../../core/json/json.ts";
import { parseExact, writeExact } from "../../../core/json/json-exact.ts";
import type { Parsed } from "../../../core/json/json-slices.ts";
import { isName } from "../../../core/names.ts";
import { waitMsMax } from "../../../core/step-bounds.ts";
import type { ForeseenReport } from "../../../engine/board/store.ts";
import { pushChunksMax } from "../../../engine/log/store.ts";
import {
  type FailRequest,
  type LogChunk,
  leaseTtlSecsDefault,
  leaseTtlSecsMax,
  leaseTtlSecsMin,
  type RegisterRequest,
  waitSecsMax,
} from "../wire/shapes.ts";
import { misshapen, missing, notJson, notJsonType, Refused, wrongField, wrongType } from "./refuse.ts";

/** Worker ids and labels become keys in memory. */
const idCharsMax = 256;
/** A worker advertises its handlers as labels, so it may have many. */
const labelsMax = 1_000;
/** Maximum characters of all labels together: a thousand labels of 32 characters. */
const labelCharsMax = 32_768;

export interface Claim {
  workerId: string;
  labels: string[];
  ttlSecs: number;
  waitSecs: number;
}

/** `application/json` or `application/*+json`, with or without parameters. */
export function expectJson(headers: IncomingHttpHeaders): void {
  const type = headers["content-type"];
  if (type !== "application/json" && !isJsonType(type)) throw new Refused(415, notJsonType);
}

export function parseRegister(text: string): RegisterRequest {
  const body = parseObject(text, "RegisterWorker");
  return { worker_id: workerIdOf(text, body, []), labels: labelsOf(text, body, []) };
}

export function parseClaim(text: string): Claim {
  return claimOf(text, parseObject(text, "ClaimJob"), []);
}

/** `at` is the path of the claim in the body. */
function claimOf(text: string, body: { [key: string]: unknown }, at: readonly string[]): Claim {
  const ttl = body.lease_ttl_secs ?? leaseTtlSecsDefault;
  // Null is not the same as absent here: the protocol refuses it.
  if (!isWhole(ttl) || body.lease_ttl_secs === null) throw wrongType(text, [...at, "lease_ttl_secs"], body.lease_ttl_secs, "u64");
  const wait = body.wait_secs ?? 0;
  if (!isWhole(wait)) throw wrongType(text, [...at, "wait_secs"], wait, "u64");
  return {
    workerId: workerIdOf(text, body, at),
    labels: labelsOf(text, body, at),
    ttlSecs: Math.min(Math.max(ttl, leaseTtlSecsMin), leaseTtlSecsMax),
    waitSecs: Math.min(wait, waitSecsMax),
  };
}

/** `output` is JSON text. `next` (ours): the claim of a worker that can take another job. */
export interface Completion {
  output: string;
  next: Claim | undefined;
  turn: ForeseenReport | undefined;
}

export function parseComplete(text: string, parsed?: Parsed): Completion {
  if (parsed?.fault !== undefined) throw notJson(text, parsed.fault);
  const body = parseObject(text, "CompleteJob", parsed === undefined ? parseExact : () => parsed.value);
  return { output: outputOf(text, body), next: nextClaimOf(text, body), turn: turnOf(text, body) };
}

function turnOf(text: string, { turn }: { [key: string]: unknown }): ForeseenReport | undefined {
  if (turn === undefined) return undefined;
  if (!isObject(turn)) throw wrongType(text, ["turn"], turn, "a map");
  const { from, node, at, report } = turn;
  if (typeof from !== "string") throw wrongField(text, ["turn"], "from", from, "a string");
  if (!isWhole(node)) throw wrongField(text, ["turn"], "node", node, "a whole number");
  if (!isWhole(at)) throw wrongField(text, ["turn"], "at", at, "a whole number");
  return { from, node, at, report: resultText(text, report ?? null) };
}

export function nextClaimOf(text: string, { next }: { [key: string]: unknown }): Claim | undefined {
  if (next !== undefined && !isObject(next)) throw wrongType(text, ["next"], next, "struct ClaimJob");
  return next === undefined ? undefined : claimOf(text, next, ["next"]);
}

/** The unchanged result, if the worker has sent it (`output`, our addition), else its outputs. */
function outputOf(text: string, { outputs, output }: { [key: string]: unknown }): string {
  if (outputs !== undefined) {
    if (!isObject(outputs)) throw wrongType(text, ["outputs"], outputs, "a map");
    for (const key in outputs) if (typeof outputs[key] !== "string") throw wrongType(text, ["outputs", key], outputs[key], "a string");
  }
  if (output !== undefined) return resultText(text, output);
  return outputs === undefined ? "{}" : writeExact(outputs);
}

export function parseFail(text: string): FailRequest {
  const { error, retryable = false } = parseObject(text, "FailJob");
  if (typeof error !== "string") throw wrongField(text, [], "error", error, "a string");
  if (typeof retryable !== "boolean") throw wrongType(text, ["retryable"], retryable, "a boolean");
  return { error, retryable };
}

/** `output` is JSON text: the output of the deferral, which the next call gets. */
export interface Deferral {
  delayMs: number;
  output: string;
}

export function parseDefer(text: string): Deferral {
  const { delay_ms: delayMs, output = null } = parseObject(text, "DeferJob", parseExact);
  if (!isWhole(delayMs) || delayMs > waitMsMax) throw wrongField(text, [], "delay_ms", delayMs, `a whole number up to ${waitMsMax}`);
  return { delayMs, output: resultText(text, output) };
}

export function parseLogs(text: string): LogChunk[] {
  const { chunks } = parseObject(text, "PushLogs");
  if (!Array.isArray(chunks)) throw wrongField(text, [], "chunks", chunks, "a sequence");
  if (chunks.length > pushChunksMax) throw misshapen(text, ["chunks"], `${chunks.length} chunks, expected at most ${pushChunksMax}`);
  return chunks.map((chunk, at) => chunkOf(text, chunk, at));
}

/** Parses a body that must be an object. `name` is the name of its type in error messages. */
export function parseObject(text: string, name: string, parse: (text: string) => unknown = JSON.parse): { [key: string]: unknown } {
  let value: unknown;
  try {
    value = parse(text);
  } catch {
    // The error of `JSON.parse` has no line number, so our error adds it.
    throw notJson(text);
  }
  if (!isObject(value)) throw wrongType(text, [], value, `struct ${name}`);
  return value;
}

export function isWhole(value: unknown): value is number {
  return Number.isInteger(value) && (value as number) >= 0;
}

function chunkOf(text: string, chunk: unknown, at: number): LogChunk {
  const path = ["chunks", at];
  if (!isObject(chunk)) throw wrongType(text, path, chunk, "struct LogChunk");
  const { workflow_id, job_id, sequence, data, timestamp_ms, stream } = chunk;
  if (typeof workflow_id !== "string") throw wrongField(text, path, "workflow_id", workflow_id, "a string");
  if (typeof job_id !== "string") throw wrongField(text, path, "job_id", job_id, "a string");
  if (!isWhole(sequence)) throw wrongField(text, path, "sequence", sequence, "u64");
  if (typeof data !== "string") throw wrongField(text, path, "data", data, "a string");
  if (!isWhole(timestamp_ms)) throw wrongField(text, path, "timestamp_ms", timestamp_ms, "u64");
  if (stream === "stdout" || stream === "stderr") return { workflow_id, job_id, sequence, data, timestamp_ms, stream };
  if (typeof stream !== "string") throw wrongField(text, path, "stream", stream, "a string");
  throw misshapen(text, [...path, "stream"], `unknown variant \`${stream}\`, expected \`stdout\` or \`stderr\``);
}

function workerIdOf(text: string, body: { [key: string]: unknown }, at: readonly string[]): string {
  const { worker_id: id } = body;
  if (typeof id !== "string") throw wrongField(text, at, "worker_id", id, "a string");
  checkId(text, [...at, "worker_id"], id);
  return id;
}

function labelsOf(text: string, body: { [key: string]: unknown }, path: readonly string[]): string[] {
  const { labels } = body;
  if (!Array.isArray(labels))
    throw labels === undefined ? missing(text, path, "labels") : wrongType(text, [...path, "labels"], labels, "a sequence");
  if (labels.length > labelsMax) throw misshapen(text, [...path, "labels"], `${labels.length} labels, expected at most ${labelsMax}`);
  let chars = 0;
  for (let at = 0; at < labels.length; at++) {
    const label: unknown = labels[at];
    if (typeof label !== "string") throw wrongType(text, [...path, "labels", at], label, "a string");
    checkId(text, [...path, "labels", at], label);
    chars += label.length;
  }
  if (chars > labelCharsMax)
    throw misshapen(text, [...path, "labels"], `${chars} characters in all labels together, expected at most ${labelCharsMax}`);
  return labels as string[];
}

function checkId(text: string, path: readonly (string | number)[], id: string): void {
  if (id.length > idCharsMax) throw misshapen(text, path, `${id.length} characters, expected at most ${idCharsMax}`);
  if (id.includes("\0")) throw misshapen(text, path, "a NUL character, expected none");
  if (!isName(id)) throw misshapen(text, path, "half of a surrogate pair, expected valid Unicode");
}

function resultText(text: string, output: unknown): string {
  if (deeperThan(text)) throw misshapen(text, ["output"], `nested deeper than ${jsonDepthMax} levels`);
  return writeExact(output);
}

function isJsonType(type: string | undefined): boolean {
  if (type === undefined) return false;
  const end = type.indexOf(";");
  const essence = (end < 0 ? type : type.slice(0, end)).trim().toLowerCase();
  return essence === "application/json" || (essence.startsWith("application/") && essence.endsWith("+json"));
}
