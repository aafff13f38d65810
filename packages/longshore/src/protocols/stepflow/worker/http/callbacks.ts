// The calls from a component to the runtime over HTTP. Blobs use the blob API, or the channel of the component's own response; runs of
// other flows use the channel. Every call has the context of its work, with the span of the execution.

import type { Clock } from "../../../../core/clock.ts";
import type { Blobs } from "../../../../core/context.ts";
import { LongshoreError } from "../../../../core/errors.ts";
import { isObject, type Json, type JsonObject } from "../../../../core/json/json.ts";
import type { SpanIds } from "../../../../core/trace.ts";
import type { HttpAgent } from "../../../../net/http/agent.ts";
import { bareBlobId } from "../../wire/blob-id.ts";
import type { RpcDialect } from "../../wire/codes.ts";
import { type Observability, observabilityJson, onBehalf } from "../../wire/observability.ts";
import type { Callbacks, SubmitRun } from "../callbacks.ts";
import type { GetRunOptions, RunStatus } from "../task-context.ts";
import { type BlobApiOptions, getBlob, type KeptBlob, putBytes, putJson } from "./blob-api.ts";
import type { Calls, Channel } from "./calls.ts";
import type { Exchange } from "./exchange.ts";
import { runStatusOf } from "./run-status.ts";

export interface CallerSurroundings {
  readonly calls: Calls;
  readonly clock: Clock;
  readonly exchange: Exchange;
  readonly dialect: RpcDialect;
  /** When undefined, blobs travel over the channel. */
  readonly blobApiUrl: string | undefined;
  /** For the blob API. */
  readonly http: Pick<HttpAgent, "send">;
  readonly observability: Observability;
  /** The span of the execution. */
  readonly trace: SpanIds | undefined;
  /** Aborts when the execution ends. */
  readonly over: AbortSignal;
}

/** The time limit of these calls: the runtime serves them from memory or disk. If it takes longer, it has lost the call. */
const quickMsMax = 60_000;
/** JSON cannot hold bytes, so they are stored as base64 in this field. */
const bytesKey = "longshore.bytes";

export class HttpCallbacks implements Callbacks, Blobs {
  readonly #around: CallerSurroundings;
  /** Created on first use: with the blob API most components never call back. */
  #channel: Channel | undefined;

  constructor(around: CallerSurroundings) {
    this.#around = around;
  }

  async putJson(data: Json, type: "data" | "flow"): Promise<string> {
    const api = this.#blobApi();
    if (api !== undefined) return putJson(data, type, api);
    const answer = await this.#call("blobs/put", { data, blob_type: type }, quickMsMax);
    const id = isObject(answer) ? (answer.blob_id ?? answer.blobId) : undefined;
    if (typeof id === "string") return bareBlobId(id);
    throw unexpected("blobs/put", "a blob_id");
  }

  async getJson(id: string): Promise<Json> {
    const kept = await this.#kept(id);
    if ("json" in kept && !isBytes(kept.json)) return kept.json;
    throw new LongshoreError("LONGSHORE_BAD_INPUT", `Blob ${id} holds bytes: read it with ctx.blobs.get().`);
  }

  /** `ctx.blobs.put`: a text is stored as JSON, which every worker can read. */
  async put(bytes: Uint8Array | string): Promise<string> {
    if (typeof bytes === "string") return this.putJson(bytes, "data");
    const api = this.#blobApi();
    if (api !== undefined) return putBytes(bytes, api);
    return this.putJson({ [bytesKey]: Buffer.from(bytes).toString("base64") }, "data");
  }

  /** `ctx.blobs.get`: the stored bytes, the text, or the JSON text of any other value. */
  async get(id: string): Promise<Uint8Array> {
    const kept = await this.#kept(id);
    if ("bytes" in kept) return kept.bytes;
    const { json } = kept;
    if (isBytes(json)) return Buffer.from(json[bytesKey], "base64");
    return Buffer.from(typeof json === "string" ? json : JSON.stringify(json));
  }

  async submitRun({ flowId, input, overrides, variables, maxConcurrency, wait, timeoutSecs, key }: SubmitRun): Promise<RunStatus> {
    if (variables !== undefined) {
      throw new LongshoreError("LONGSHORE_BAD_CONFIG", "Over HTTP a run takes no variables: write the values into the flow's input.", {
        detail: { field: "variables" },
      });
    }
    const params: JsonObject = { flowId, inputs: [...input], subflowKey: key, wait: wait === true };
    if (maxConcurrency !== undefined) params.maxConcurrency = maxConcurrency;
    if (overrides !== undefined) params.overrides = overrides;
    if (timeoutSecs !== undefined) params.timeoutSecs = timeoutSecs;
    return runStatusOf(await this.#call("runs/submit", params, wait === true ? undefined : quickMsMax), "runs/submit");
  }

  async getRun(runId: string, { wait, timeoutSecs, results, order }: GetRunOptions): Promise<RunStatus> {
    const params: JsonObject = { runId, wait: wait === true, includeResults: results === true };
    params.resultOrder = order === "completion" ? "by_completion" : "by_index";
    if (timeoutSecs !== undefined) params.timeoutSecs = timeoutSecs;
    return runStatusOf(await this.#call("runs/get", params, wait === true ? undefined : quickMsMax), "runs/get");
  }

  async #kept(given: string): Promise<KeptBlob> {
    const id = bareBlobId(given);
    const api = this.#blobApi();
    if (api !== undefined) return getBlob(id, api);
    const answer = await this.#call("blobs/get", { blob_id: id }, quickMsMax);
    if (isObject(answer) && answer.data !== undefined) return { json: answer.data as Json };
    throw unexpected("blobs/get", "data");
  }

  #blobApi(): BlobApiOptions | undefined {
    const { blobApiUrl: url, http, clock, over: signal, trace } = this.#around;
    return url === undefined ? undefined : { url, http, clock, signal, trace };
  }

  #call(method: string, params: JsonObject, limitMs: number | undefined): Promise<Json> {
    const { calls, exchange, observability, trace } = this.#around;
    this.#channel ??= calls.of(exchange, this.#around);
    return this.#channel.call(method, { ...params, observability: observabilityJson(onBehalf(observability, trace)) }, limitMs);
  }
}

function isBytes(json: Json): json is { [bytesKey]: string } {
  return isObject(json) && typeof json[bytesKey] === "string" && Object.keys(json).length === 1;
}

function unexpected(method: string, expected: string): LongshoreError {
  return new LongshoreError("LONGSHORE_UNREACHABLE", `The runtime's answer to ${method} is not supported, expected ${expected}.`);
}
