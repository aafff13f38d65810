// Serves the calls that handlers make with `stepflowTask()`; the transport only sends them. This file checks the request, stores a flow
// before it runs, and waits until a run ends. It makes the keys by which repeated attempts find their sub-runs.

import { createHash } from "node:crypto";
import { type Clock, pause } from "../../../core/clock.ts";
import { LongshoreError, refusal } from "../../../core/errors.ts";
import { isObject, type Json, type JsonObject } from "../../../core/json/json.ts";
import type { GetRunOptions, Question, RunStatus } from "./task-context.ts";

/** The calls that a transport can make. */
export interface Callbacks {
  /** Returns the blob's id. */
  putJson(data: Json, type: "data" | "flow"): Promise<string>;
  getJson(id: string): Promise<Json>;
  submitRun(request: SubmitRun): Promise<RunStatus>;
  getRun(runId: string, options: GetRunOptions): Promise<RunStatus>;
}

export interface SubmitRun {
  readonly flowId: string;
  readonly input: readonly Json[];
  readonly overrides?: JsonObject;
  readonly variables?: JsonObject;
  readonly maxConcurrency?: number;
  readonly wait?: boolean;
  readonly timeoutSecs?: number;
  readonly key: string;
}

export interface AskedBy {
  readonly clock: Clock;
  /** Aborts when the handler is stopped. */
  readonly signal: AbortSignal;
  /** The same for all attempts of the task. */
  readonly idempotencyKey: string;
}

/** How long one call waits at the orchestrator for a run before it is repeated. Proxies close a silent call later than this. */
const waitSecs = 50;
/** When an orchestrator replies faster than this although the run is still open, the next call waits this long. */
const askAgainMs = 1_000;

/** Serves the calls of one task. */
export class Answers {
  readonly #calls: Callbacks;
  readonly #by: AskedBy;
  #runs = 0;

  constructor(calls: Callbacks, by: AskedBy) {
    this.#calls = calls;
    this.#by = by;
  }

  async answer(name: string, value: Json): Promise<Json> {
    const question = isObject(value) ? (value as JsonObject) : {};
    const known: { readonly [Name in Question]: () => Promise<unknown> } = {
      putBlob: () => this.#calls.putJson(question.data ?? null, "data"),
      getBlob: () => this.#calls.getJson(text(question, "id")),
      submitRun: async () => this.#calls.submitRun(await this.#submission(question, list(question, "input"))),
      getRun: () => this.#calls.getRun(text(question, "runId"), getOptions(question)),
      evaluate: () => this.#evaluate(question),
    };
    if (!Object.hasOwn(known, name)) {
      const message = `A Stepflow orchestrator has no call ${JSON.stringify(name)}, expected one of ${Object.keys(known).join(", ")}.`;
      throw new LongshoreError("LONGSHORE_BAD_CONFIG", message, { detail: { field: name } });
    }
    return (await known[name as Question]()) as Json;
  }

  async #evaluate(question: JsonObject): Promise<Json> {
    const { clock, signal } = this.#by;
    const submission = await this.#submission(question, [question.input ?? null]);
    let askedMs = clock.now();
    let run = await this.#calls.submitRun({ ...submission, wait: true, timeoutSecs: waitSecs });
    while (isUnderWay(run)) {
      if (clock.now() - askedMs < askAgainMs) await pause(clock, askAgainMs, signal);
      signal.throwIfAborted();
      askedMs = clock.now();
      run = await this.#calls.getRun(run.runId, { wait: true, timeoutSecs: waitSecs, results: true });
    }
    if (run.results.length === 0) run = await this.#calls.getRun(run.runId, { results: true });
    return outputOf(run);
  }

  async #submission(question: JsonObject, input: readonly Json[]): Promise<SubmitRun> {
    const { overrides, variables, maxConcurrency, wait, timeoutSecs, key } = question;
    // Counted before the first await, so that concurrent calls keep their order.
    const subflowKey = typeof key === "string" ? key : keyOf(`${this.#by.idempotencyKey}/${this.#runs++}`);
    return {
      flowId: question.flow === undefined ? text(question, "flowId") : await this.#calls.putJson(question.flow, "flow"),
      input,
      ...(isObject(overrides) ? { overrides: overrides as JsonObject } : {}),
      ...(isObject(variables) ? { variables: variables as JsonObject } : {}),
      ...(typeof maxConcurrency === "number" ? { maxConcurrency } : {}),
      ...(wait === true ? { wait } : {}),
      ...(typeof timeoutSecs === "number" ? { timeoutSecs } : {}),
      key: subflowKey,
    };
  }
}

function isUnderWay({ status }: RunStatus): boolean {
  return status === "running" || status === "paused" || status === "unspecified";
}

function outputOf(run: RunStatus): Json {
  const [result] = run.results;
  if (run.status === "completed" && (result === undefined || result.status === "completed")) return result?.output ?? null;
  const why = result?.error?.message ?? `it ended as ${run.status}`;
  throw new LongshoreError("LONGSHORE_TASK_FAILED", `Run ${run.runId} of flow ${run.flowName ?? run.flowId} failed: ${why}`);
}

function getOptions({ wait, timeoutSecs, results, order }: JsonObject): GetRunOptions {
  return {
    ...(wait === true ? { wait } : {}),
    ...(typeof timeoutSecs === "number" ? { timeoutSecs } : {}),
    ...(results === true ? { results } : {}),
    ...(order === "index" || order === "completion" ? { order } : {}),
  };
}

function text(question: JsonObject, field: string): string {
  const value = question[field];
  if (typeof value === "string" && value !== "") return value;
  throw refusal("LONGSHORE_BAD_INPUT", `${field} is ${JSON.stringify(value)}, expected a text.`, field);
}

function list(question: JsonObject, field: string): readonly Json[] {
  const value = question[field];
  if (Array.isArray(value)) return value;
  throw refusal(
    "LONGSHORE_BAD_INPUT",
    `${field} is ${JSON.stringify(value)}, expected a list: the run has one item for each element.`,
    field,
  );
}

/** A UUID in the form of version 5, made from a text without a namespace. The reference's keys have this form. */
function keyOf(name: string): string {
  const hash = createHash("sha1").update(name).digest();
  hash[6] = ((hash[6] as number) & 0x0f) | 0x50;
  hash[8] = ((hash[8] as number) & 0x3f) | 0x80;
  const hex = hash.toString("hex");
  return [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20), hex.slice(20, 32)].join("-");
}
