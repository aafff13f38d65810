// One call on the server's side. Its states: receiving (call-request.ts), running (the handler runs; a stream may be sending), over (the
// status is being sent, or the caller has disconnected; call-answer.ts). The first of these events ends a call: the handler's result or
// error, the deadline, a cancellation, the end of the connection, the closing of the server. Later ones have no effect.
import type { IncomingHttpHeaders, ServerHttp2Stream } from "node:http2";
import { actions, type Caller, stranger } from "../../core/actions.ts";
import { valuesMaxOf } from "../http/request-size.ts";
import { CallAnswer } from "./call-answer.ts";
import { metadataOf, refuseMetadata } from "./call-metadata.ts";
import { CallRequest } from "./call-request.ts";
import { frameOf, refuseEncoding, tooLarge } from "./frame.ts";
import type { GrpcServer } from "./server.ts";
import type { GrpcCall, GrpcMethod, GrpcSink } from "./service.ts";
import type { GrpcSession } from "./session.ts";
import { GrpcCode, GrpcError, trailersOf } from "./status.ts";
import { parseTimeout } from "./timeout.ts";

export class ServerCall implements GrpcCall, GrpcSink<unknown> {
  readonly headers: IncomingHttpHeaders;
  readonly session: GrpcSession;
  caller: Caller = stranger;
  id: string | undefined = undefined;
  deadline: number | undefined = undefined;
  method: GrpcMethod | undefined = undefined;
  /** Set by the host: the account whose limit includes this call. */
  place: string | undefined = undefined;
  /** Set by the host: the caller whose answer slot it holds. */
  slotOf: string | undefined = undefined;
  readonly #server: GrpcServer;
  readonly #stream: ServerHttp2Stream;
  readonly #answer: CallAnswer;
  #request: CallRequest | undefined;
  #over = false;
  #code: GrpcCode = GrpcCode.CANCELLED;
  #cancelDeadline: (() => void) | undefined;
  #controller: AbortController | undefined;
  #lost = false;
  #metadata: Record<string, string> | undefined;
  #finish: (code: GrpcCode) => void = () => {};

  constructor(server: GrpcServer, session: GrpcSession, stream: ServerHttp2Stream, headers: IncomingHttpHeaders) {
    this.#server = server;
    this.session = session;
    this.#stream = stream;
    this.headers = headers;
    this.#answer = new CallAnswer(stream, server, () => this.#leave());
  }

  /** Nothing has to be done when the socket ends: the stream closes with it, and reports this itself. */
  clientGone(): void {}

  get path(): string {
    return this.headers[":path"] ?? "";
  }

  get peer(): string {
    return this.session.peer;
  }

  get authority(): string | undefined {
    return this.headers[":authority"] ?? this.headers.host;
  }

  get gone(): AbortSignal {
    // The handler waits for an event, so it does not need its answer slot.
    this.#server.host.leave?.(this);
    if (this.#controller === undefined) {
      this.#controller = new AbortController();
      if (this.#lost) this.#controller.abort();
    }
    return this.#controller.signal;
  }

  get metadata(): Readonly<Record<string, string>> {
    this.#metadata ??= metadataOf(this.headers);
    return this.#metadata;
  }

  /** The time at which its request began to arrive; Infinity when no request is being received. */
  get receivingSince(): number {
    return this.#request?.since ?? Number.POSITIVE_INFINITY;
  }

  begin(): void {
    const { host, clock, limits } = this.#server;
    this.#stream.once("close", () => this.#closed());
    this.#finish = host.begin(this);
    this.method = this.#server.find(this.path);
    const refusal = refuseMetadata(this.headers, limits.headerBytes) ?? host.admit(this, this.method) ?? this.#misfit();
    if (refusal !== undefined) return this.refuse(refusal);
    try {
      const timeoutMs = parseTimeout(this.headers["grpc-timeout"] as string | undefined);
      if (timeoutMs !== undefined) {
        this.deadline = clock.now() + timeoutMs;
        this.#cancelDeadline = clock.at(this.deadline, () => this.#expire());
      }
    } catch (error) {
      return this.#fail(error);
    }
    this.#request = new CallRequest(this.#stream, this.#server, {
      bytesMax: this.#requestBytesMax(),
      encoding: this.headers["grpc-encoding"] as string | undefined,
      since: clock.now(),
      heard: (bytes) => this.session.heard(bytes),
      whole: (bytes) => this.#run(bytes),
      failed: (error) => this.#fail(error),
    });
  }

  #misfit(): GrpcError | undefined {
    return this.method === undefined ? noMethod(this.path) : refuseEncoding(this.headers["grpc-encoding"] as string | undefined);
  }

  /** Large requests are accepted only for methods that need a token and carry a payload. */
  #requestBytesMax(): number {
    const { messageBytes, payloadBytes, callBytes, openBytes } = this.#server.limits;
    const { who, carries } = actions[(this.method as GrpcMethod).action];
    return Math.min(who === "anyone" ? openBytes : carries ? payloadBytes : callBytes, messageBytes);
  }

  #run(bytes: Buffer): void {
    const method = this.method as GrpcMethod;
    const startedAt = performance.now();
    try {
      const request = method.request.decode(bytes, valuesMaxOf(method.action, this.#server.limits));
      this.#request?.release();
      if (method.kind === "unary") this.#runUnary(method, request, bytes.length);
      else this.#runStream(method, request);
    } catch (error) {
      this.#fail(error);
    }
    this.#server.host.ran?.(this, performance.now() - startedAt);
  }

  #runUnary(method: GrpcMethod, request: unknown, bytes: number): void {
    const turn = this.#server.host.enter?.(this, method, bytes);
    if (turn === undefined) this.#handle(method, request);
    else void turn.then(() => this.#handle(method, request));
  }

  #handle(method: GrpcMethod, request: unknown): void {
    const { host } = this.#server;
    try {
      const response = this.#over ? undefined : method.unary?.(request, this);
      if (response instanceof Promise) {
        return void response
          .then((settled) => this.#respond(settled))
          .then(
            () => host.leave?.(this),
            (error: unknown) => {
              this.#fail(error);
              host.leave?.(this);
            },
          );
      }
      this.#respond(response);
    } catch (error) {
      this.#fail(error);
    }
    host.leave?.(this);
  }

  #runStream(method: GrpcMethod, request: unknown): void {
    const running = method.stream?.(request, this, this);
    // A caller may wait for the headers to know that its stream is open. A handler that refuses at once still responds with trailers only.
    setImmediate(() => this.#answer.open());
    running?.then(
      () => this.end(),
      (error: unknown) => this.#fail(error),
    );
  }

  #respond(response: unknown): void {
    if (this.#over) return;
    try {
      const frame = this.#frameFor(response);
      this.#answer.reserve(frame.length);
      this.#conclude(GrpcCode.OK);
      this.#answer.whole(frame);
    } catch (error) {
      this.#fail(error);
    }
  }

  async send(message: unknown): Promise<void> {
    if (this.#over) return;
    // Throws for a message that cannot be encoded. This is a mistake of the handler, and the stream stays open.
    const frame = this.#frameFor(message);
    if (this.#answer.unsent > this.#server.limits.messageBytes) {
      return this.end(new GrpcError(GrpcCode.RESOURCE_EXHAUSTED, "The caller does not read what was sent."));
    }
    try {
      this.#answer.reserve(frame.length);
    } catch (error) {
      return this.end(error as GrpcError);
    }
    await this.#answer.send(frame);
  }

  get idle(): boolean {
    return this.#answer.unsent === 0;
  }

  end(error?: Error): void {
    if (this.#over) return;
    if (error !== undefined) return this.#fail(error);
    this.#conclude(GrpcCode.OK);
    this.#answer.end();
  }

  /** Ends the call with an error, in any state. */
  refuse(error: GrpcError): void {
    if (this.#over) return;
    this.#conclude(error.code);
    this.#leave();
    this.#answer.refuse(trailersOf(error));
  }

  /** The server closes: a stream would never end by itself. */
  dismiss(): void {
    if (this.method?.kind === "server-stream") this.refuse(new GrpcError(GrpcCode.UNAVAILABLE, "The server is shutting down."));
  }

  #expire(): void {
    this.refuse(new GrpcError(GrpcCode.DEADLINE_EXCEEDED, "The deadline of the call has passed."));
  }

  #fail(error: unknown): void {
    if (this.#over) return;
    this.refuse(error instanceof GrpcError ? error : this.#server.host.explain(error, this));
  }

  #frameFor(message: unknown): Buffer {
    const { messageBytes } = this.#server.limits;
    const bytes = (this.method as GrpcMethod).response.encode(message);
    if (bytes.length > messageBytes) throw tooLarge(bytes.length, messageBytes);
    return frameOf(bytes);
  }

  /** From here on nothing else can end the call. */
  #conclude(code: GrpcCode): void {
    this.#over = true;
    this.#code = code;
    this.#cancelDeadline?.();
    this.#request?.release();
  }

  #leave(): void {
    this.#lost = true;
    this.#controller?.abort();
  }

  /** Always called last: the stream has closed, with or without a response. */
  #closed(): void {
    if (!this.#over) {
      this.#conclude(GrpcCode.CANCELLED);
      this.#leave();
    }
    this.#answer.closed();
    this.session.finished(this);
    this.#finish(this.#code);
  }
}

function noMethod(path: string): GrpcError {
  return new GrpcError(GrpcCode.UNIMPLEMENTED, `There is no method ${path.slice(0, 200)}.`);
}
