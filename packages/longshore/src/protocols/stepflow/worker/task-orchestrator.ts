// The orchestrator of one task. It may change while the task runs. When a call fails with NOT_FOUND or UNAVAILABLE, other orchestrators are
// asked where the run is. Then the call is repeated there once.

import { GrpcCode } from "../../../net/grpc/status.ts";
import type { Decoded, Encodable, Message, Rpc } from "../../../net/protobuf/protobuf.ts";
import { hasCode } from "./grpc-failure.ts";
import { addressOf, type CallOptions, type Orchestrators } from "./orchestrators.ts";

export class TaskOrchestrator {
  readonly #orchestrators: Orchestrators;
  readonly #runId: string | undefined;
  #url: string;

  constructor(orchestrators: Orchestrators, url: string, runId: string | undefined) {
    this.#orchestrators = orchestrators;
    this.#url = url;
    this.#runId = runId;
  }

  get url(): string {
    return this.#url;
  }

  async call<Request extends Message, Response extends Message>(
    rpc: Rpc<Request, Response>,
    request: Encodable<Request>,
    options: CallOptions,
  ): Promise<Decoded<Response>> {
    try {
      return await this.#orchestrators.at(this.#url).unary(rpc, request, options);
    } catch (error) {
      if (!hasCode(error, GrpcCode.NOT_FOUND, GrpcCode.UNAVAILABLE) || !(await this.#follow())) throw error;
      return this.#orchestrators.at(this.#url).unary(rpc, request, options);
    }
  }

  /** True when the run has moved. */
  async #follow(): Promise<boolean> {
    if (this.#runId === undefined) return false;
    const from = this.#url;
    const url = await this.#orchestrators.locate(this.#runId, from);
    // Another call of this task may already have found the new orchestrator; this call then uses it too.
    if (this.#url === from && url !== undefined) this.#url = url;
    return addressOf(this.#url) !== addressOf(from);
  }
}
