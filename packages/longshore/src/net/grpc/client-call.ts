// One call on the client's side. It is started on a connection, and started again when the server has certainly not seen it. It ends with
// its status, its deadline, a cancellation or a lost connection, whichever comes first.
import {
  type ClientHttp2Stream,
  constants,
  type IncomingHttpHeaders,
  type IncomingHttpStatusHeader,
  type OutgoingHttpHeaders,
} from "node:http2";
import type { Clock } from "../../core/clock.ts";
import type { Connection } from "./connector.ts";
import { type Frame, FrameReader, refuseEncoding } from "./frame.ts";
import { inflate } from "./inflate.ts";
import { errorOf, GrpcCode, GrpcError } from "./status.ts";
import { formatTimeout } from "./timeout.ts";

export interface ClientCallOptions {
  headers: OutgoingHttpHeaders;
  frame: Buffer;
  messageBytes: number;
  /** True to read only on demand. */
  paced: boolean;
  clock: Clock;
  timeoutMs: number | undefined;
  signal: AbortSignal | undefined;
}

export class ClientCall {
  readonly #options: ClientCallOptions;
  readonly #deadline: number | undefined;
  #cancelDeadline: (() => void) | undefined;
  #stream: ClientHttp2Stream | undefined;
  #reader: FrameReader;
  readonly #frames: Frame[] = [];
  #encoding: string | undefined;
  #headed = false;
  #trailers: IncomingHttpHeaders | undefined;
  #over = false;
  #error: GrpcError | undefined;
  #wake: (() => void) | undefined;
  /** Set when the call must be started again, because the server has not seen it. Undefined while that is not known. */
  unseen: GrpcError | undefined;

  constructor(options: ClientCallOptions) {
    const { clock, timeoutMs, signal } = options;
    this.#options = options;
    this.#reader = new FrameReader(options.messageBytes);
    if (timeoutMs !== undefined) {
      this.#deadline = clock.now() + timeoutMs;
      this.#cancelDeadline = clock.at(this.#deadline, () =>
        this.#stop(GrpcCode.DEADLINE_EXCEEDED, `No answer came within ${timeoutMs} ms.`),
      );
    }
    if (signal?.aborted) this.#aborted();
    else signal?.addEventListener("abort", this.#aborted);
  }

  /** The result of `coming`, or an error if the call ends before. */
  async orOver<T>(coming: Promise<T>): Promise<T> {
    // The caller receives this failure too; here it may occur after the call has ended.
    coming.catch(() => {});
    if (!this.#over) await Promise.race([coming, this.#change()]);
    if (this.#error !== undefined) throw this.#error;
    return coming;
  }

  start(connection: Connection): void {
    if (this.#over) return;
    const { headers, frame, clock } = this.#options;
    if (this.#deadline !== undefined) headers["grpc-timeout"] = formatTimeout(this.#deadline - clock.now());
    this.unseen = undefined;
    let stream: ClientHttp2Stream;
    try {
      stream = connection.session.request(headers);
    } catch (cause) {
      // The session closed just now, or has used up its stream numbers. Nothing was sent.
      connection.session.close();
      this.unseen = new GrpcError(GrpcCode.UNAVAILABLE, `The connection takes no calls any more: ${(cause as Error).message}.`, [], {
        cause,
      });
      return;
    }
    this.#stream = stream;
    connection.calls++;
    let broken: Error | undefined;
    stream.on("response", (head) => this.#head(head));
    stream.on("trailers", (trailers) => {
      this.#trailers = trailers;
    });
    stream.on("data", (chunk: Buffer) => {
      connection.heard();
      this.#receive(stream, chunk);
    });
    stream.on("end", () => this.#ended());
    stream.on("error", (error) => {
      broken = error;
    });
    stream.once("close", () => {
      connection.calls--;
      if (this.#stream === stream) this.#closed(stream, connection, broken);
    });
    stream.end(frame);
  }

  /** The message of a call that returns exactly one. */
  async only(): Promise<Buffer> {
    while (!this.#over && this.unseen === undefined) await this.#change();
    this.#throwIfFailed();
    const [frame] = this.#frames;
    if (frame === undefined) throw notOne("no message");
    return frame.compressed ? inflate(frame, this.#encoding, { bytesMax: this.#options.messageBytes }) : frame.bytes;
  }

  /** Resolves when the server has accepted the call. */
  async head(): Promise<void> {
    while (!this.#headed && !this.#over && this.unseen === undefined) await this.#change();
    if (!this.#headed) this.#throwIfFailed();
  }

  /** The next message of a stream; undefined at its end. Reads only on demand. */
  async next(): Promise<Buffer | undefined> {
    while (this.#frames.length === 0 && !this.#over) {
      this.#stream?.resume();
      await this.#change();
    }
    const frame = this.#frames.shift();
    if (frame !== undefined) return inflate(frame, this.#encoding, { bytesMax: this.#options.messageBytes });
    this.#throwIfFailed();
    return undefined;
  }

  /** Cancels the call. Has no effect once the call is over. */
  cancel(): void {
    this.#stop(GrpcCode.CANCELLED, "The call was cancelled.");
  }

  #head(head: IncomingHttpHeaders & IncomingHttpStatusHeader): void {
    const status = head[":status"];
    const encoding = head["grpc-encoding"] as string | undefined;
    const misfit = status === 200 ? refuseEncoding(encoding) : httpError(status);
    if (misfit !== undefined) return this.#finish(misfit);
    if (!head["content-type"]?.startsWith("application/grpc")) {
      return this.#stop(GrpcCode.UNKNOWN, `The answer is ${head["content-type"] ?? "of no type"}, expected application/grpc.`);
    }
    this.#encoding = encoding;
    // A call that fails at once has its trailers in the headers.
    if (head["grpc-status"] !== undefined) this.#trailers = head;
    else this.#headed = true;
    this.#changed();
  }

  #receive(stream: ClientHttp2Stream, chunk: Buffer): void {
    if (this.#over) return;
    try {
      const frames = this.#reader.push(chunk);
      if (frames.length === 0) return;
      this.#frames.push(...frames);
      // Refused immediately, not at the end: a server that sends many messages would fill the memory until the deadline.
      if (!this.#options.paced && this.#frames.length > 1) throw notOne(`${this.#frames.length} messages or more`);
    } catch (error) {
      return this.#finish(error as GrpcError);
    }
    if (!this.#options.paced) return;
    stream.pause();
    this.#changed();
  }

  #ended(): void {
    if (this.#over || this.#trailers === undefined) return;
    const failure = errorOf(this.#trailers, () => new GrpcError(GrpcCode.UNKNOWN, "The server ended the call without a status."));
    const cut = this.#reader.held > 0 ? new GrpcError(GrpcCode.INTERNAL, "The answer ends in the middle of a message.") : undefined;
    this.#finish(failure ?? cut);
  }

  /** The stream has closed; if the call is not over yet, there was no status. */
  #closed(stream: ClientHttp2Stream, { session }: Connection, broken: Error | undefined): void {
    if (this.#over) return;
    const code = stream.rstCode ?? 0;
    const lost = session.destroyed || (session.closed && lossCodes.has(code));
    const error = broken instanceof GrpcError ? broken : lost ? lostError(broken) : resetError(code, broken);
    const refused = stream.rstCode === constants.NGHTTP2_REFUSED_STREAM || stream.id === undefined;
    if (!refused || this.#headed || error.code === GrpcCode.CANCELLED) return this.#finish(error);
    this.unseen = error;
    this.#changed();
  }

  readonly #aborted = (): void => {
    const cause = this.#options.signal?.reason as unknown;
    this.#finish(new GrpcError(GrpcCode.CANCELLED, "The call was cancelled.", [], { cause }));
  };

  #stop(code: GrpcCode, message: string): void {
    if (!this.#over) this.#finish(new GrpcError(code, message));
  }

  #finish(error: GrpcError | undefined): void {
    if (this.#over) return;
    this.#over = true;
    this.#error = error;
    this.#cancelDeadline?.();
    this.#options.signal?.removeEventListener("abort", this.#aborted);
    const stream = this.#stream;
    // The reset tells the server that the client does not wait any more; after the end of the response it is not needed.
    if (stream !== undefined && error !== undefined && !stream.closed) stream.close(constants.NGHTTP2_CANCEL);
    this.#changed();
  }

  #throwIfFailed(): void {
    const error = this.#error ?? (this.#over ? undefined : this.unseen);
    if (error !== undefined) throw error;
  }

  #change(): Promise<void> {
    return new Promise((resolve) => {
      this.#wake = resolve;
    });
  }

  #changed(): void {
    const wake = this.#wake;
    this.#wake = undefined;
    wake?.();
  }
}

function notOne(what: string): GrpcError {
  return new GrpcError(GrpcCode.UNIMPLEMENTED, `The server answered with ${what}, expected one.`);
}

/** The meaning of HTTP statuses, when a proxy or another server responds. doc/http-grpc-status-mapping.md of gRPC. */
const byHttpStatus: Readonly<Record<number, GrpcCode>> = {
  400: GrpcCode.INTERNAL,
  401: GrpcCode.UNAUTHENTICATED,
  403: GrpcCode.PERMISSION_DENIED,
  404: GrpcCode.UNIMPLEMENTED,
  429: GrpcCode.UNAVAILABLE,
  502: GrpcCode.UNAVAILABLE,
  503: GrpcCode.UNAVAILABLE,
  504: GrpcCode.UNAVAILABLE,
};

function httpError(status: number | undefined): GrpcError {
  return new GrpcError(byHttpStatus[status ?? 0] ?? GrpcCode.UNKNOWN, `The server answered with the HTTP status ${status}, expected 200.`);
}

/** The reset codes of streams when their connection closes. A server that only sends GOAWAY may still reset calls for other reasons. */
const lossCodes = new Set<number>([constants.NGHTTP2_NO_ERROR, constants.NGHTTP2_CANCEL, constants.NGHTTP2_INTERNAL_ERROR]);

function lostError(cause: Error | undefined): GrpcError {
  return new GrpcError(GrpcCode.UNAVAILABLE, `The connection to the server broke${because(cause)}.`, [], { cause });
}

const byReset: Readonly<Record<number, GrpcCode>> = {
  [constants.NGHTTP2_REFUSED_STREAM]: GrpcCode.UNAVAILABLE,
  [constants.NGHTTP2_CANCEL]: GrpcCode.CANCELLED,
  [constants.NGHTTP2_ENHANCE_YOUR_CALM]: GrpcCode.RESOURCE_EXHAUSTED,
  [constants.NGHTTP2_INADEQUATE_SECURITY]: GrpcCode.PERMISSION_DENIED,
};

/** The meaning of stream resets. doc/PROTOCOL-HTTP2.md of gRPC, "Errors". */
function resetError(code: number, cause: Error | undefined): GrpcError {
  return new GrpcError(byReset[code] ?? GrpcCode.INTERNAL, `The server reset the call with code ${code}${because(cause)}.`, [], { cause });
}

function because(cause: Error | undefined): string {
  return cause === undefined ? "" : `: ${cause.message}`;
}
