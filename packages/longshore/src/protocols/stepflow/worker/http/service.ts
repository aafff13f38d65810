// How the worker answers each message of the runtime. wire/http/README.md, "Methods".

import type { Clock } from "../../../../core/clock.ts";
import { toError } from "../../../../core/errors.ts";
import type { Json, JsonObject } from "../../../../core/json/json.ts";
import { HttpAgent } from "../../../../net/http/agent.ts";
import type { Slot, TransportHost } from "../../../../runner/transport.ts";
import { rpcCode } from "../../wire/codes.ts";
import { componentIn, executeParams, inputSchemaIn } from "../../wire/http/params.ts";
import { errorText, parseRpc, type RpcId, type RpcMessage, resultText } from "../../wire/json-rpc.ts";
import { RpcError } from "../../wire/rpc-error.ts";
import { type ComponentDescription, Components, type FoundComponent } from "../components.ts";
import { Calls } from "./calls.ts";
import type { Exchange } from "./exchange.ts";
import { ExecuteWork } from "./execute.ts";
import { Handshake } from "./handshake.ts";
import type { Settings } from "./options.ts";
import { busy, HttpRefusal } from "./refusal.ts";
import { RequestQueue } from "./request-queue.ts";

type Method = (params: JsonObject) => Json;
type Request = Extract<RpcMessage, { kind: "request" }>;

/** The body of an answer that has only a status, as the reference's workers send it. */
const nothing = '""';
/** How many names an error message lists. */
const namesMax = 20;
/** Concurrent calls to the blob API: as many as one runtime serves without queueing, and far below its limit of open files. */
const blobConnectionsMax = 64;
/** Every reference to a blob contains this text. */
const blobRefMark = '"$blob"';

export class WorkerService {
  readonly #host: TransportHost;
  readonly #settings: Settings;
  readonly #clock: Clock;
  readonly #components: Components;
  readonly #calls: Calls;
  readonly #handshake: Handshake;
  readonly #waiting: RequestQueue;
  readonly #http = new HttpAgent(blobConnectionsMax);
  readonly #methods: { readonly [method: string]: Method };

  constructor(host: TransportHost, settings: Settings) {
    this.#host = host;
    this.#settings = settings;
    this.#clock = host.clock;
    this.#components = new Components(host.tasks);
    this.#calls = new Calls();
    this.#handshake = new Handshake(settings);
    this.#waiting = new RequestQueue(host, settings.slotWaitMs);
    this.#methods = {
      "components/list": () => ({ components: this.#components.descriptions.map((one) => componentInfo(one, one.path)) }),
      "components/info": (params) => ({ info: this.#info(componentIn(params)) }),
      "components/infer_schema": (params) => this.#inferSchema(params),
    };
  }

  /** Paths of the components, for the log. */
  get paths(): readonly string[] {
    return this.#components.paths;
  }

  /** Resolves when no request waits for a slot any more. */
  async drained(): Promise<void> {
    await this.#waiting.empty();
  }

  /** Call it when nothing runs any more. */
  close(): Promise<void> {
    return this.#http.close();
  }

  /** Handles one body. Never rejects. */
  async take(text: string, exchange: Exchange): Promise<void> {
    let id: RpcId | undefined;
    try {
      const message = parseRpc(text);
      if (message.kind === "request") id = message.id;
      await this.#handle(message, text, exchange);
    } catch (error) {
      this.refuse(error, exchange, id);
    }
  }

  /** Replies with a JSON-RPC error in all cases. The runtime reads the body; the status is for proxies. */
  refuse(thrown: unknown, exchange: Exchange, id?: RpcId): void {
    const error = thrown instanceof RpcError ? thrown : this.#mistake(thrown);
    const answered = error.id ?? id ?? null;
    const code = rpcCode(error.fault, this.#handshake.dialect);
    const body = { code, message: error.message, ...(error.data === undefined ? {} : { data: { ...error.data } }) };
    // A message that cannot be parsed also gets a 400, as from the reference's workers.
    const status = answered === null || error.fault === "invalidRequest" ? 400 : 200;
    if (error instanceof HttpRefusal) void exchange.answer(errorText(answered, body), error.status, error.headers);
    else void exchange.answer(errorText(answered, body), status);
  }

  /** Nothing here should throw. If something throws, it is a bug of ours or a broken schema. */
  #mistake(thrown: unknown): RpcError {
    const error = toError(thrown);
    this.#host.failing("answering a request", error);
    return new RpcError("internal", `The worker failed: ${error.message}`);
  }

  async #handle(message: RpcMessage, text: string, exchange: Exchange): Promise<void> {
    if (message.kind === "result" || message.kind === "error") return this.#settle(message, exchange);
    if (message.kind === "notification") {
      if (message.method === "initialized" && this.#handshake.initialized()) this.#host.working("handshake");
      // Other notifications are for other callers. A notification is never answered with an error.
      return void exchange.answer(nothing, 202);
    }
    if (message.method === "initialize") {
      return void exchange.answer(resultText(message.id, this.#handshake.initialize(message.params)));
    }
    if (message.method === "initialized") {
      throw new RpcError("invalidRequest", `id is ${JSON.stringify(message.id)}, expected none: initialized is a notification.`);
    }
    this.#handshake.require(message.method);
    if (message.method === "components/execute") return this.#execute(message, text, exchange);
    const method = Object.hasOwn(this.#methods, message.method) ? this.#methods[message.method] : undefined;
    if (method === undefined) throw unknownMethod(message.method);
    void exchange.answer(resultText(message.id, method(message.params)));
  }

  #settle(answer: Extract<RpcMessage, { kind: "result" | "error" }>, exchange: Exchange): void {
    if (!this.#calls.settle(answer)) {
      throw new RpcError("invalidRequest", `No call with the id ${JSON.stringify(answer.id)} waits for an answer in this process.`);
    }
    void exchange.answer(nothing, 202);
  }

  async #execute({ id, params: given }: Request, text: string, exchange: Exchange): Promise<void> {
    const params = executeParams(given);
    const found = this.#find(params.component);
    const slot = await this.#slot(found, text.length, exchange);
    if (slot === undefined) return;
    const { blobApiUrl, blobThresholdBytes, dialect } = this.#handshake;
    const work = new ExecuteWork({
      id,
      params,
      found,
      instanceId: this.#settings.instanceId,
      mayHaveBlobRefs: text.includes(blobRefMark),
      blobThresholdBytes,
      exchange,
      dialect,
      blobApiUrl,
      calls: this.#calls,
      clock: this.#clock,
      http: this.#http,
    });
    await slot.run(work);
    // The runner does not report lost work. But its caller still waits, and no other worker will reply.
    if (!exchange.answered) await exchange.answer(unanswered(id, rpcCode("server", dialect)));
  }

  /** Undefined when the caller has disconnected meanwhile. */
  async #slot({ task }: FoundComponent, chars: number, exchange: Exchange): Promise<Slot | undefined> {
    const { slots, emit, wants, draining } = this.#host;
    if (slots.free === 0 && wants("slotsFull")) emit("slotsFull", { task: task.name, worker: this.#settings.instanceId });
    const slot = await this.#waiting.slot(exchange, chars);
    if (slot !== undefined || exchange.gone) return slot;
    if (draining.aborted) throw busy("The worker is stopping and takes no more work.");
    throw busy(`All ${slots.total} slots of the worker are taken, and none became free in time.`);
  }

  #find(name: string): FoundComponent {
    const found = this.#components.find(name);
    if (found !== undefined) return found;
    const known = this.paths;
    const more = known.length > namesMax ? " and others" : "";
    throw new RpcError(
      "componentNotFound",
      `There is no component ${name} here; there are ${known.slice(0, namesMax).join(", ")}${more}.`,
      {
        component: name,
      },
    );
  }

  #info(name: string): JsonObject {
    const { task } = this.#find(name);
    const described = this.#components.descriptions.find((one) => one.name === task.name) as ComponentDescription;
    // A component whose path has placeholders is described under the requested path.
    return componentInfo(described, described.path.includes("{") ? name : described.path);
  }

  /** The output schema does not depend on the input schema: a task has one schema for its output. */
  #inferSchema(params: JsonObject): JsonObject {
    inputSchemaIn(params);
    const { output_schema: schema } = this.#info(componentIn(params));
    return schema === undefined ? {} : { output_schema: schema };
  }
}

function componentInfo({ description, inputSchema, outputSchema }: ComponentDescription, component: string): JsonObject {
  return {
    component,
    ...(description === undefined ? {} : { description }),
    ...(inputSchema === undefined ? {} : { input_schema: inputSchema as JsonObject }),
    ...(outputSchema === undefined ? {} : { output_schema: outputSchema as JsonObject }),
  };
}

function unanswered(id: RpcId, code: number): string {
  return errorText(id, { code, message: "The worker stopped before the component had ended.", data: { retryable: true } });
}

function unknownMethod(method: string): RpcError {
  return new RpcError("methodNotFound", `There is no method ${JSON.stringify(method)}.`, { method });
}
