// One call on the server's side. Its life: receiving (until the request is whole), running (the handler is at work; a stream may be sending),
// over (the status is on its way, or the caller has gone). Whatever comes first makes it over, and the rest finds nothing to do:
// the handler's answer, its error, the deadline, a cancellation, the end of the connection, a server that closes.
import { constants, type IncomingHttpHeaders, type ServerHttp2Stream } from "node:http2";
import { actions, type Caller, stranger } from "../actions.ts";
import { PacedWrite, pieceBytes } from "../paced-write.ts";
import { valuesMaxOf } from "../request-size.ts";
import type { Moving } from "../stalls.ts";
import { acceptedEncodings, type Frame, FrameReader, frameOf, refuseEncoding, tooLarge } from "./frame.ts";
import { inflate } from "./inflate.ts";
import type { GrpcServer, GrpcSession } from "./server.ts";
import type { GrpcCall, GrpcMethod, GrpcSink } from "./service.ts";
import { GrpcCode, GrpcError, trailersOf } from "./status.ts";
import { parseTimeout } from "./timeout.ts";

const headFields = { ":status": 200, "content-type": "application/grpc+proto", "grpc-accept-encoding": acceptedEncodings };
const okTrailers = { "grpc-status": "0" };

export class ServerCall implements GrpcCall, GrpcSink<unknown>, Moving {
  readonly headers: IncomingHttpHeaders;
  readonly session: GrpcSession;
  caller: Caller = stranger;
  deadline: number | undefined = undefined;
  /** When it began to be received; Infinity once its request is whole. */
  receivingSince: number;
  method: GrpcMethod | undefined = undefined;
  /** The host's: which place among the calls under way it has. */
  place: string | undefined = undefined;
  readonly #server: GrpcServer;
  readonly #stream: ServerHttp2Stream;
  #reader: FrameReader | undefined;
  #frame: Frame | undefined;
  #received = 0;
  /** Bytes of answers that have not left. */
  #unsent = 0;
  /** Grows with each message that has. */
  #moved = 0;
  #paced: PacedWrite | undefined;
  /** The large message that is being written, and how to release the code that waits for it. */
  #writing: Promise<void> | undefined;
  #settle: (() => void) | undefined;
  #over = false;
  #opened = false;
  #code: GrpcCode = GrpcCode.CANCELLED;
  #trailers: Readonly<Record<string, string>> = okTrailers;
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
    this.receivingSince = server.clock.now();
  }

  /** Nothing to do for the end of the socket: the stream closes with it, and tells by itself. */
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

  begin(): void {
    const { host, clock } = this.#server;
    this.#stream.once("close", () => this.#closed());
    this.#finish = host.begin(this);
    this.method = this.#server.find(this.path);
    const size = metadataBytes(this.headers);
    if (size > this.#server.limits.headerBytes) return this.refuse(tooMuchMetadata(size, this.#server.limits.headerBytes));
    const refusal = host.admit(this, this.method);
    if (refusal !== undefined) return this.refuse(refusal);
    const misfit = this.method === undefined ? noMethod(this.path) : refuseEncoding(this.headers["grpc-encoding"] as string | undefined);
    if (misfit !== undefined) return this.refuse(misfit);
    try {
      const timeoutMs = parseTimeout(this.headers["grpc-timeout"] as string | undefined);
      if (timeoutMs !== undefined) {
        this.deadline = clock.now() + timeoutMs;
        this.#cancelDeadline = clock.at(this.deadline, () => this.#expire());
      }
    } catch (error) {
      return this.#fail(error);
    }
    this.#reader = new FrameReader(this.#requestBytesMax());
    this.#stream.on("data", (chunk: Buffer) => this.#receive(chunk));
    this.#stream.once("end", () => this.#whole());
    this.#server.receiveStalls.watch(this);
  }

  #receive(chunk: Buffer): void {
    // What still comes after a refusal is thrown away until the caller has heard of it.
    if (this.#over || this.#reader === undefined) return;
    this.session.heard();
    const full = this.#hold(chunk.length);
    if (full !== undefined) return this.refuse(full);
    try {
      for (const frame of this.#reader.push(chunk)) {
        if (this.#frame !== undefined)
          throw new GrpcError(GrpcCode.UNIMPLEMENTED, "The call has more than one message, and its method takes one.");
        this.#frame = frame;
      }
    } catch (error) {
      this.#fail(error);
    }
  }

  /** The request's body has ended. */
  #whole(): void {
    if (this.#over) return;
    const held = this.#reader?.held ?? 0;
    const frame = this.#frame;
    this.receivingSince = Number.POSITIVE_INFINITY;
    this.#server.receiveStalls.unwatch(this);
    if (held > 0) return this.refuse(new GrpcError(GrpcCode.INTERNAL, "The request ends in the middle of a message."));
    if (frame === undefined)
      return this.refuse(new GrpcError(GrpcCode.UNIMPLEMENTED, "The call has no message, and its method takes one."));
    if (!frame.compressed) return this.#run(frame.bytes);
    const room = { bytesMax: this.#requestBytesMax(), take: (bytes: number) => this.#hold(bytes) };
    const encoding = this.headers["grpc-encoding"] as string | undefined;
    this.#server.inflations
      .run(() => inflate(frame, encoding, room))
      .then(
        (bytes) => this.#run(bytes),
        (error: unknown) => this.#fail(error),
      );
  }

  /** Who has no token, or calls a method that carries nothing, has nothing large to send. */
  #requestBytesMax(): number {
    const { messageBytes, callBytes, openBytes } = this.#server.limits;
    const { who, carries } = actions[(this.method as GrpcMethod).action];
    if (who === "anyone") return Math.min(openBytes, messageBytes);
    return carries ? messageBytes : Math.min(callBytes, messageBytes);
  }

  /** Takes room for bytes of the request, packed or unpacked; returns the refusal when there is none. */
  #hold(bytes: number): GrpcError | undefined {
    const { receiving } = this.#server;
    if (this.#over) return new GrpcError(GrpcCode.CANCELLED, "The call is over.");
    if (!receiving.take(bytes)) {
      const message = `The server is receiving ${receiving.max} bytes already, its limit (receivingBytes).`;
      return new GrpcError(GrpcCode.RESOURCE_EXHAUSTED, message);
    }
    this.#received += bytes;
    return undefined;
  }

  #run(bytes: Buffer): void {
    if (this.#over) return;
    const method = this.method as GrpcMethod;
    const startedAt = performance.now();
    try {
      const request = method.request.decode(bytes, valuesMaxOf(method.action, this.#server.limits));
      this.#release();
      if (method.kind === "unary") this.#runUnary(method, request);
      else this.#runStream(method, request);
    } catch (error) {
      this.#fail(error);
    }
    this.#server.host.ran?.(this, performance.now() - startedAt);
  }

  #runUnary(method: GrpcMethod, request: unknown): void {
    const response = method.unary?.(request, this);
    if (!(response instanceof Promise)) return this.#answer(response);
    response.then(
      (settled) => this.#answer(settled),
      (error: unknown) => this.#fail(error),
    );
  }

  #runStream(method: GrpcMethod, request: unknown): void {
    const running = method.stream?.(request, this, this);
    // A caller may wait for the head to know that its stream stands. A handler that refuses at once still answers with trailers alone.
    setImmediate(() => this.#open());
    running?.then(
      () => this.end(),
      (error: unknown) => this.#fail(error),
    );
  }

  #answer(response: unknown): void {
    if (this.#over) return;
    try {
      const frame = this.#frameFor(response);
      this.#reserve(frame.length);
      this.#conclude(GrpcCode.OK);
      this.#open();
      this.#server.sendStalls.watch(this);
      if (frame.length <= pieceBytes) this.#stream.end(frame);
      else this.#writePaced(frame, () => this.#stream.end());
    } catch (error) {
      this.#fail(error);
    }
  }

  async send(message: unknown): Promise<void> {
    if (this.#over) return;
    // Throws for what cannot be encoded: the handler's mistake, and not the end of the stream unless the handler makes it so.
    const frame = this.#frameFor(message);
    if (this.#unsent > this.#server.limits.messageBytes) {
      return this.end(new GrpcError(GrpcCode.RESOURCE_EXHAUSTED, "The caller does not read what was sent."));
    }
    try {
      this.#reserve(frame.length);
    } catch (error) {
      return this.end(error as GrpcError);
    }
    this.#open();
    const before = this.#writing;
    const written = frame.length > pieceBytes || before !== undefined ? this.#inTurn(before, frame) : this.#write(frame);
    await written;
    this.#sent(frame.length);
  }

  #write(frame: Buffer): Promise<void> {
    return new Promise((resolve) => this.#stream.write(frame, () => resolve()));
  }

  /** A large message is written in pieces, and whatever is sent meanwhile comes after it. */
  #inTurn(before: Promise<void> | undefined, frame: Buffer): Promise<void> {
    const writing = this.#after(before, frame).then(() => {
      if (this.#writing === writing) this.#writing = undefined;
    });
    this.#writing = writing;
    return writing;
  }

  async #after(before: Promise<void> | undefined, frame: Buffer): Promise<void> {
    await before;
    if (this.#stream.destroyed || this.#stream.writableEnded) return;
    await new Promise<void>((resolve) => {
      this.#settle = resolve;
      this.#writePaced(frame, resolve);
    });
  }

  /** After what was sent: a message must not end in its middle. */
  #endStream(): void {
    if (this.#writing === undefined) this.#stream.end();
    else void this.#writing.then(() => this.#stream.end());
  }

  #writePaced(frame: Buffer, done: () => void): void {
    this.#paced = new PacedWrite(this.#stream, frame, done, () => {});
    this.#paced.start();
  }

  get idle(): boolean {
    return this.#unsent === 0;
  }

  /** Takes room for an answer until it has left. @throws GrpcError when there is none. */
  #reserve(bytes: number): void {
    const { sending, sendStalls } = this.#server;
    if (!sending.take(bytes)) {
      const message = `The server has ${sending.max} bytes of answers that their readers have not taken, its limit (sendingBytes).`;
      throw new GrpcError(GrpcCode.RESOURCE_EXHAUSTED, message);
    }
    if (this.#unsent === 0) sendStalls.watch(this);
    this.#unsent += bytes;
  }

  #sent(bytes: number): void {
    const given = Math.min(bytes, this.#unsent);
    this.#server.sending.give(given);
    this.#unsent -= given;
    this.#moved++;
    if (this.#unsent === 0) this.#server.sendStalls.unwatch(this);
  }

  /** Of the request while it is received, then of the answer. */
  progress(): number {
    return this.#received + this.#moved + (this.#paced?.progress() ?? 0);
  }

  stalled(): void {
    if (this.receivingSince !== Number.POSITIVE_INFINITY) {
      return this.refuse(new GrpcError(GrpcCode.DEADLINE_EXCEEDED, "The request came too slowly, or stopped half-way."));
    }
    this.#leave();
    this.#stream.close(constants.NGHTTP2_CANCEL);
  }

  end(error?: Error): void {
    if (this.#over) return;
    if (error !== undefined) return this.#fail(error);
    this.#conclude(GrpcCode.OK);
    this.#open();
    this.#endStream();
  }

  /** Ends the call with an error, whatever it is doing. */
  refuse(error: GrpcError): void {
    if (this.#over) return;
    this.#conclude(error.code, trailersOf(error));
    this.#leave();
    const stream = this.#stream;
    if (stream.destroyed || stream.closed) return;
    if (this.#opened) this.#endStream();
    else stream.respond({ ...headFields, ...this.#trailers }, { endStream: true, sendDate: false } as object);
    endEarly(stream);
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

  #open(): void {
    const stream = this.#stream;
    if (this.#opened || stream.destroyed || stream.closed || stream.headersSent) return;
    this.#opened = true;
    stream.respond(headFields, { waitForTrailers: true, sendDate: false } as object);
    stream.once("wantTrailers", () => stream.sendTrailers(this.#trailers));
  }

  /** From here on nothing else can end the call. */
  #conclude(code: GrpcCode, trailers: Readonly<Record<string, string>> = okTrailers): void {
    this.#over = true;
    this.#code = code;
    this.#trailers = trailers;
    this.#cancelDeadline?.();
    this.#release();
  }

  #release(): void {
    this.#server.receiving.give(this.#received);
    this.#received = 0;
    this.#reader = undefined;
    this.#frame = undefined;
    this.receivingSince = Number.POSITIVE_INFINITY;
    this.#server.receiveStalls.unwatch(this);
  }

  #leave(): void {
    this.#lost = true;
    this.#controller?.abort();
  }

  /** Always the last: the stream is gone, answered or not. */
  #closed(): void {
    if (!this.#over) {
      this.#conclude(GrpcCode.CANCELLED);
      this.#leave();
    }
    this.#server.sendStalls.unwatch(this);
    this.#server.sending.give(this.#unsent);
    this.#unsent = 0;
    this.#paced?.stop();
    this.#settle?.();
    this.session.finished(this);
    this.#finish(this.#code);
  }
}

/**
 * Once the answer is complete the caller need not send the rest (RFC 9113, section 8.1). The answer must leave first: it is written in the
 * next turn, and Node 22 drops what a stream has not written yet when it is reset.
 */
export function endEarly(stream: ServerHttp2Stream): void {
  if (stream.readableEnded) return;
  stream.resume();
  setImmediate(() => {
    if (!stream.closed && !stream.readableEnded) stream.close(constants.NGHTTP2_NO_ERROR);
  });
}

function noMethod(path: string): GrpcError {
  return new GrpcError(GrpcCode.UNIMPLEMENTED, `There is no method ${path.slice(0, 200)}.`);
}

/** As HTTP/2 counts a list of headers. Node tells peers the limit and does not hold them to it. */
function metadataBytes(headers: IncomingHttpHeaders): number {
  let bytes = 0;
  for (const name in headers) bytes += name.length + (headers[name]?.length ?? 0) + 32;
  return bytes;
}

function tooMuchMetadata(bytes: number, bytesMax: number): GrpcError {
  return new GrpcError(GrpcCode.RESOURCE_EXHAUSTED, `The call has ${bytes} bytes of metadata, the limit is ${bytesMax}.`);
}

function metadataOf(headers: IncomingHttpHeaders): Record<string, string> {
  const metadata: Record<string, string> = {};
  for (const [name, value] of Object.entries(headers)) {
    if (name.startsWith(":") || value === undefined) continue;
    metadata[name] = Array.isArray(value) ? value.join(", ") : value;
  }
  return metadata;
}
