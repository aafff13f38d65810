// Requests that a worker may send while it runs a component: blobs and runs. Each is answered by a separate POST.

import { LongshoreError, toError } from "../../../../../core/errors.ts";
import { isObject, type Json, type JsonObject } from "../../../../../core/json/json.ts";
import { shown } from "../../../../../core/text.ts";
import { namedBlobId } from "../../../wire/blob-id.ts";
import { type RpcDialect, type RpcFault, rpcCode } from "../../../wire/codes.ts";
import { errorText, type RpcId, resultText } from "../../../wire/json-rpc.ts";
import { RpcError } from "../../../wire/rpc-error.ts";

/** The server's side of these requests. They throw LONGSHORE_NOT_FOUND for missing things and LONGSHORE_BAD_INPUT for invalid requests. */
export interface RuntimeCalls {
  /** Stores JSON and returns its id. */
  putBlob(data: Json, type: BlobType): Promise<string>;
  getBlob(id: string): Promise<{ data: Json; type: string }>;
  /** Both methods return the run in the form of the wire. `from` is the id of the requesting task. */
  submitRun(request: SubmitRequest, from: string, signal: AbortSignal): Promise<Json>;
  getRun(request: GetRequest, from: string, signal: AbortSignal): Promise<Json>;
}

export type BlobType = "data" | "flow";

export interface SubmitRequest {
  readonly flowId: string;
  readonly inputs: readonly Json[];
  readonly wait: boolean;
  readonly timeoutSecs?: number;
  readonly maxConcurrency?: number;
  readonly overrides?: JsonObject;
  readonly variables?: JsonObject;
  /** The same key for the same task starts one run, however often the task is tried. */
  readonly subflowKey?: string;
}

export interface GetRequest {
  readonly runId: string;
  readonly wait: boolean;
  readonly timeoutSecs?: number;
  readonly includeResults: boolean;
  readonly order: "by_index" | "by_completion";
}

export interface ComponentRequest {
  readonly id: RpcId;
  readonly method: string;
  readonly params: JsonObject;
}

export interface RequestContext {
  readonly calls: RuntimeCalls;
  readonly dialect: RpcDialect;
  readonly taskId: string;
  readonly signal: AbortSignal;
  /** Waiting for a run takes no slot. */
  lend<T>(wait: () => Promise<T>): Promise<T>;
}

/** Maximum wait for a run. A worker that wants to wait longer calls again. */
const waitSecsMax = 24 * 3_600;
const concurrencyMax = 1_000_000;

/** The text of the answer. Never throws, because an error is an answer too. */
export async function answerRequest(request: ComponentRequest, context: RequestContext): Promise<string> {
  try {
    return resultText(request.id, await perform(request, context));
  } catch (error) {
    return refusalText(request.id, error, context.dialect);
  }
}

export function refusalText(id: RpcId, error: unknown, dialect: RpcDialect): string {
  const { message } = toError(error);
  const data = error instanceof RpcError ? error.data : undefined;
  return errorText(id, { code: rpcCode(faultOf(error), dialect), message, ...(data === undefined ? {} : { data }) });
}

async function perform({ method, params }: ComponentRequest, { calls, dialect, taskId, signal, lend }: RequestContext): Promise<Json> {
  if (method === "blobs/put") {
    const id = await calls.putBlob(required(params, "data"), blobType(params));
    // The form of the dialect A guide. Dialect B has removed the method; a worker that still calls it gets the id in the form of the blob
    // API.
    return { blob_id: dialect === "A" ? namedBlobId(id) : id };
  }
  if (method === "blobs/get") {
    const { data, type } = await calls.getBlob(text(params, "blob_id"));
    return { data, blob_type: type };
  }
  if (method === "runs/submit") {
    const request = submitRequest(params);
    return request.wait ? lend(() => calls.submitRun(request, taskId, signal)) : calls.submitRun(request, taskId, signal);
  }
  if (method === "runs/get") {
    const request = getRequest(params);
    return request.wait ? lend(() => calls.getRun(request, taskId, signal)) : calls.getRun(request, taskId, signal);
  }
  const known = "blobs/put, blobs/get, runs/submit or runs/get";
  throw new RpcError("methodNotFound", `There is no method ${JSON.stringify(method)} here, expected ${known}.`, { method });
}

function faultOf(error: unknown): RpcFault {
  if (error instanceof RpcError) return error.fault;
  if (!(error instanceof LongshoreError)) return "internal";
  if (error.code === "LONGSHORE_NOT_FOUND") return "notFound";
  if (error.code === "LONGSHORE_BAD_INPUT" || error.code === "LONGSHORE_BAD_DEFINITION") return "invalidValue";
  return "server";
}

function submitRequest(params: JsonObject): SubmitRequest {
  const { inputs } = params;
  if (!Array.isArray(inputs)) throw wrong("inputs", inputs, "a list with one input for each item");
  const maxConcurrency = whole(params, "maxConcurrency", 1, concurrencyMax);
  return {
    flowId: text(params, "flowId"),
    inputs,
    wait: flag(params, "wait"),
    ...timeout(params),
    ...(maxConcurrency === undefined ? {} : { maxConcurrency }),
    ...optionalObject(params, "overrides"),
    ...optionalObject(params, "variables"),
    ...(isAbsent(params.subflowKey) ? {} : { subflowKey: text(params, "subflowKey") }),
  };
}

function getRequest(params: JsonObject): GetRequest {
  const order = params.resultOrder ?? "by_index";
  // The documents write byIndex, and the code reads by_index, so both are accepted.
  if (order !== "by_index" && order !== "by_completion" && order !== "byIndex" && order !== "byCompletion")
    throw wrong("resultOrder", order, "by_index or by_completion");
  return {
    runId: text(params, "runId"),
    wait: flag(params, "wait"),
    ...timeout(params),
    includeResults: flag(params, "includeResults"),
    order: order === "by_completion" || order === "byCompletion" ? "by_completion" : "by_index",
  };
}

function timeout(params: JsonObject): { timeoutSecs?: number } {
  const timeoutSecs = whole(params, "timeoutSecs", 0, waitSecsMax);
  return timeoutSecs === undefined ? {} : { timeoutSecs };
}

function blobType(params: JsonObject): BlobType {
  const type = params.blob_type ?? "data";
  if (type !== "data" && type !== "flow") throw wrong("blob_type", type, '"data" or "flow"');
  return type;
}

function required(params: JsonObject, field: string): Json {
  const value = params[field];
  if (value === undefined) throw wrong(field, value, "a value");
  return value;
}

function text(params: JsonObject, field: string): string {
  const value = params[field];
  if (typeof value !== "string" || value === "") throw wrong(field, value, "a text");
  return value;
}

function flag(params: JsonObject, field: string): boolean {
  const value = params[field];
  if (isAbsent(value)) return false;
  if (typeof value !== "boolean") throw wrong(field, value, "true or false");
  return value;
}

function whole(params: JsonObject, field: string, least: number, most: number): number | undefined {
  const value = params[field];
  if (isAbsent(value)) return undefined;
  if (typeof value === "number" && Number.isInteger(value) && value >= least && value <= most) return value;
  throw wrong(field, value, `a whole number from ${least} to ${most}`);
}

function optionalObject(params: JsonObject, field: "overrides" | "variables"): { [Field in typeof field]?: JsonObject } {
  const value = params[field];
  if (isAbsent(value)) return {};
  if (!isObject(value)) throw wrong(field, value, "an object");
  return { [field]: value as JsonObject };
}

/** The Python SDK writes null for absent fields. */
function isAbsent(value: Json | undefined): value is null | undefined {
  return value === undefined || value === null;
}

function wrong(field: string, value: Json | undefined, expected: string): RpcError {
  return new RpcError("invalidParams", `params.${field} is ${shown(value)}, expected ${expected}.`, { field: `params.${field}`, expected });
}
