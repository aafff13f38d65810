// One call of a component: the request, its answer in either form, and the worker's requests in between.
//
// A call ends with an output or with a StepFailure. A JSON-RPC message is the worker's result. Anything else (a broken connection, a stream
// without a last event, an invalid body) is a transport error and uses the transport's retry budget.

import type { Clock } from "../../../../../core/clock.ts";
import { toError } from "../../../../../core/errors.ts";
import { isObject, type Json, type JsonObject } from "../../../../../core/json/json.ts";
import { parseExact } from "../../../../../core/json/json-exact.ts";
import { parseRpc, type RpcErrorBody, type RpcMessage, requestText } from "../../../wire/json-rpc.ts";
import type { TaskErrorCode } from "../../../wire/messages.ts";
import { RpcError } from "../../../wire/rpc-error.ts";
import { StepFailure } from "../../lane.ts";
import type { PluginLog } from "../../plugins/log.ts";
import { NoRoom, TooLarge, type WorkerReply } from "./exchange.ts";
import { flowError, statusCode, wantsHandshake } from "./failure.ts";
import { answerRequest, type ComponentRequest, type RequestContext, refusalText } from "./requests.ts";
import type { Session } from "./session.ts";

export interface CallOptions {
  readonly session: Session;
  /** The hand-out of the call, in the form of `wireTaskId`. */
  readonly handOut: string;
  readonly params: JsonObject;
  readonly context: RequestContext;
  readonly clock: Clock;
  readonly log: PluginLog;
}

/** The worker has forgotten the handshake: it is repeated, and then the call. */
export class NotInitialized extends Error {
  override readonly name = "NotInitialized";
  readonly error: RpcErrorBody;

  constructor(error: RpcErrorBody) {
    super(error.message);
    this.error = error;
  }
}

/** The connection was lost or never made, so it is unknown whether the same worker is still there. */
export class Disconnected extends StepFailure {}

/** How many requests of one call are answered at the same time. The stream pauses at this number. */
const openRequestsMax = 100;
/** How often the delivery of one answer is tried before the call fails: without its answer the worker would wait without end. */
const deliveriesMax = 3;
/** How long a worker may take to end the stream after its last event. The step waits for it, so that the connection can be reused. */
const lingerMs = 500;

type Answered = Extract<RpcMessage, { kind: "result" | "error" }>;

export async function callComponent(options: CallOptions): Promise<Json> {
  const call = new Call(options);
  try {
    return call.outputOf(await call.run());
  } finally {
    call.end();
  }
}

class Call {
  readonly #options: CallOptions;
  readonly #id: string;
  /** For answers to the worker's requests. Aborted when the call has ended, because they are not needed any more. */
  #answering: { readonly over: AbortController; readonly signal: AbortSignal } | null = null;
  #openRequests = 0;
  #answered: Answered | null = null;
  /** Why the call was abandoned early. */
  #failure: StepFailure | null = null;
  #stream: { resume(): void; drop(): void } | null = null;
  #disarm = () => {};

  constructor(options: CallOptions) {
    this.#options = options;
    this.#id = options.session.client.newId();
  }

  async run(): Promise<Answered> {
    const { session, params, context, handOut } = this.#options;
    try {
      const reply = await session.client.execute(requestText(this.#id, "components/execute", params), handOut, {
        signal: context.signal,
        event: (data, instanceId) => this.#event(data, instanceId),
        begun: (stream) => {
          this.#stream = stream;
        },
      });
      if (this.#answered !== null) return this.#answered;
      if (this.#failure !== null) throw this.#failure;
      return this.#answerIn(reply);
    } catch (error) {
      if (this.#answered !== null) return this.#answered;
      throw error instanceof StepFailure ? error : lost(error);
    }
  }

  outputOf(answered: Answered): Json {
    const { dialect } = this.#options.session;
    if (answered.kind === "error") {
      if (wantsHandshake(answered.error, dialect)) throw new NotInitialized(answered.error);
      throw new StepFailure(flowError(answered.error, dialect));
    }
    const { result } = answered;
    if (isObject(result) && Object.hasOwn(result, "output")) return (result as JsonObject).output as Json;
    throw failure("WORKER_ERROR", "The worker's result has no output, expected {output: ...}.");
  }

  end(): void {
    this.#disarm();
    this.#answering?.over.abort();
  }

  /** Created on demand, because most workers send no requests. */
  get #signal(): AbortSignal {
    if (this.#answering === null) {
      const over = new AbortController();
      this.#answering = { over, signal: AbortSignal.any([this.#options.context.signal, over.signal]) };
    }
    return this.#answering.signal;
  }

  /** A JSON-RPC body counts with any status. For any other body, the status decides. */
  #answerIn({ status, body, streamed }: WorkerReply): Answered {
    if (streamed) throw failure("UNREACHABLE", "The worker ended its stream without an answer.");
    let message: RpcMessage;
    try {
      message = parseRpc(body, parseExact);
    } catch (error) {
      const shown = body.length === 0 ? "nothing" : JSON.stringify(body.slice(0, shownCharsMax));
      throw failure(statusCode(status), `The worker answered with status ${status} and no JSON-RPC: ${shown}.`, error);
    }
    if (message.kind !== "result" && message.kind !== "error")
      throw failure("UNREACHABLE", "The worker answered with a request instead of a response.");
    if (message.id !== this.#id) throw failure("UNREACHABLE", `The worker answered request ${message.id}, expected ${this.#id}.`);
    // The worker is too busy, whatever its message says.
    if ((status === 503 || status === 429) && message.kind === "error") throw failure("UNREACHABLE", message.error.message);
    return message;
  }

  /** Returns whether more events may arrive. */
  #event(data: string, instanceId: string | null): boolean {
    if (this.#answered !== null) return true;
    let message: RpcMessage;
    try {
      message = parseRpc(data, parseExact);
    } catch (error) {
      this.#garbled(error, instanceId);
      return this.#openRequests < openRequestsMax;
    }
    if (message.kind === "request") void this.#answer(message, instanceId);
    else if (message.kind !== "notification" && message.id === this.#id) this.#last(message);
    else this.#options.log.debug("A worker sent an event that belongs to no request", { id: "id" in message ? message.id : null });
    return this.#openRequests < openRequestsMax;
  }

  /** Stores the answer. The worker then has a short time to end the stream. */
  #last(message: Answered): void {
    const { clock } = this.#options;
    this.#answered = message;
    this.#disarm = clock.at(clock.now() + lingerMs, () => this.#stream?.drop());
  }

  /** A request that cannot be parsed but has an id is refused: the worker waits for an answer. */
  #garbled(error: unknown, instanceId: string | null): void {
    const { log, session } = this.#options;
    log.warn("A worker sent an event that is not a JSON-RPC message", { error: toError(error).message });
    if (!(error instanceof RpcError) || error.id === undefined || error.id === this.#id) return;
    void this.#deliver(refusalText(error.id, error, session.dialect), instanceId);
  }

  async #answer(request: ComponentRequest, instanceId: string | null): Promise<void> {
    await this.#deliver(answerRequest(request, { ...this.#options.context, signal: this.#signal }), instanceId);
  }

  async #deliver(answer: string | Promise<string>, instanceId: string | null): Promise<void> {
    const { session, log } = this.#options;
    const signal = this.#signal;
    this.#openRequests++;
    try {
      const body = await answer;
      const status = await this.#send(body, instanceId, signal);
      if (status !== 202) log.warn("A worker did not reply to an answer with 202", { status });
    } catch (error) {
      // The call has ended meanwhile, so no caller waits for this answer.
      if (signal.aborted) return;
      const why = `An answer could not be delivered to ${session.client.url}: ${toError(error).message}`;
      this.#failure = failure("UNREACHABLE", why, error);
      this.#stream?.drop();
    } finally {
      this.#openRequests--;
      this.#stream?.resume();
    }
  }

  async #send(body: string, instanceId: string | null, signal: AbortSignal): Promise<number> {
    for (let delivery = 1; ; delivery++) {
      try {
        return await this.#options.session.client.answer(body, instanceId, signal);
      } catch (error) {
        if (delivery >= deliveriesMax || signal.aborted) throw error;
      }
    }
  }
}

const shownCharsMax = 200;

function lost(error: unknown): StepFailure {
  if (error instanceof TooLarge) return failure("WORKER_ERROR", `The worker's answer is not accepted: ${error.message}`, error);
  if (error instanceof NoRoom) return failure("UNREACHABLE", error.message, error);
  return new Disconnected({ code: "UNREACHABLE", message: `The worker could not be reached: ${describe(error)}` }, { cause: error });
}

/** Some socket errors have a code but no message. */
function describe(thrown: unknown): string {
  const error = toError(thrown) as Error & { code?: unknown };
  return error.message === "" ? String(error.code ?? error.name) : error.message;
}

function failure(code: TaskErrorCode, message: string, cause?: unknown): StepFailure {
  return new StepFailure({ code, message }, { cause });
}
