// One `components/execute` request as an assignment: the answer is its report, and the end of the connection cancels it.

import { createHash } from "node:crypto";
import type { Blobs, ContextIds } from "../../../../core/context.ts";
import { LongshoreError } from "../../../../core/errors.ts";
import type { Json } from "../../../../core/json/json.ts";
import type { WorkTrace } from "../../../../runner/telemetry.ts";
import type { Assignment, Call, Control, Outcome, ReportAnswer } from "../../../../runner/transport.ts";
import { replaceLarge, resolveBlobs } from "../../wire/blob-refs.ts";
import { faultOf, rpcCode } from "../../wire/codes.ts";
import type { ExecuteParams } from "../../wire/http/params.ts";
import { errorText, type RpcId, resultText } from "../../wire/json-rpc.ts";
import { stableTaskId } from "../../wire/task-id.ts";
import { Answers } from "../callbacks.ts";
import type { FoundComponent } from "../components.ts";
import { nativeOf } from "../task-context.ts";
import { workTrace } from "../work-trace.ts";
import { type CallerSurroundings, HttpCallbacks } from "./callbacks.ts";

export interface ExecuteSurroundings extends Omit<CallerSurroundings, "trace" | "over" | "observability"> {
  readonly id: RpcId;
  readonly params: ExecuteParams;
  readonly found: FoundComponent;
  /** False when the request contains no reference to a blob: then the search for references is skipped. */
  readonly mayHaveBlobRefs: boolean;
  /** Larger fields of the output are stored as blobs; 0 disables that. */
  readonly blobThresholdBytes: number;
  readonly instanceId: string;
}

export class ExecuteWork implements Assignment {
  readonly ids: ContextIds;
  readonly attempt: number;
  readonly worker: string;
  readonly trace: WorkTrace;
  readonly native: Json;
  readonly #around: ExecuteSurroundings;
  #control!: Control;
  #callbacks: HttpCallbacks | undefined;
  #answers: Answers | undefined;
  #forget: () => void = () => {};

  constructor(around: ExecuteSurroundings) {
    this.#around = around;
    const { id, params, found } = around;
    const { component, attempt, observability } = params;
    const { runId, flowId, stepId } = observability;
    // Only our servers send an id of the task. With other servers, the id of the request is used, which names only this call.
    const grantId = around.exchange.handOut ?? String(id);
    this.ids = { runId: runId ?? "", stepId: stepId ?? "", taskId: stableTaskId(grantId), grantId };
    this.attempt = attempt;
    this.worker = around.instanceId;
    this.trace = workTrace(observability, { component, attempt, kind: "server" });
    this.native = nativeOf({
      component,
      pathParams: found.pathParams,
      ...(runId === undefined ? {} : { runId }),
      ...(flowId === undefined ? {} : { flowId }),
      ...(stepId === undefined ? {} : { stepId }),
    });
  }

  /** The wire does not show which item of a run this is, so the input is part of the key. */
  get idempotencyKey(): string {
    const { observability, component, input } = this.#around.params;
    const { runId, stepId } = observability;
    if (runId === undefined) return this.ids.taskId;
    const hash = createHash("sha256")
      .update(JSON.stringify([component, input]))
      .digest("hex");
    return `${runId}/${stepId ?? component}/${hash}`;
  }

  get blobs(): Blobs {
    return this.#calls();
  }

  begin(control: Control): void {
    this.#control = control;
    this.#forget = this.#around.exchange.onGone(() => {
      control.stop(new LongshoreError("LONGSHORE_CANCELLED", "The runtime disconnected before the component had ended."));
    });
  }

  resolve(): Call | Promise<Call> {
    const { found, params, mayHaveBlobRefs } = this.#around;
    const { task } = found;
    if (!mayHaveBlobRefs) return { task, input: params.input };
    return resolveBlobs(params.input, (id) => this.#calls().getJson(id)).then((input) => ({ task, input }));
  }

  ask(name: string, value: Json, signal: AbortSignal): Promise<Json> {
    const { clock } = this.#around;
    this.#answers ??= new Answers(this.#calls(), { clock, signal, idempotencyKey: this.idempotencyKey });
    return this.#answers.answer(name, value);
  }

  async report(outcome: Outcome): Promise<ReportAnswer> {
    const { exchange, id } = this.#around;
    const text =
      outcome.kind === "failed" ? this.#failure(outcome) : resultText(id, { output: await this.#output(outcome.output ?? null) });
    this.#forget();
    return { verdict: (await exchange.answer(text)) ? "ok" : "gone", acknowledged: false };
  }

  async #output(output: Json): Promise<Json> {
    const { blobThresholdBytes, exchange } = this.#around;
    if (blobThresholdBytes <= 0 || exchange.gone) return output;
    return replaceLarge(output, blobThresholdBytes, (data) => this.#calls().putJson(data, "data"));
  }

  #failure({ error, retryable }: Extract<Outcome, { kind: "failed" }>): string {
    const { id, dialect, params } = this.#around;
    const code = rpcCode(faultOf(error.code, retryable), dialect);
    const data = { component: params.component, reason: error.message, error: error.name, retryable };
    return errorText(id, { code, message: error.message, data });
  }

  #calls(): HttpCallbacks {
    const { calls, clock, exchange, dialect, blobApiUrl, http, params } = this.#around;
    const { trace, over } = this.#control;
    const { observability } = params;
    this.#callbacks ??= new HttpCallbacks({ calls, clock, exchange, dialect, blobApiUrl, http, observability, trace, over });
    return this.#callbacks;
  }
}
