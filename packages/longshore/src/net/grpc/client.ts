// A gRPC client: one connection to one server, which is kept, and opened again when it breaks. Calls share it.
//
// Without a connection, a call waits for one, so it gets the error when connecting fails. After a failure, each further try is delayed
// longer, and calls wait for that too. A call that the server has certainly not begun (it sent GOAWAY) is sent again.
import type { Clock } from "../../core/clock.ts";
import { systemClock } from "../../core/clock.ts";
import { receivedValuesMax } from "../http/received-body.ts";
import type { Decoded, Encodable, Message, Rpc } from "../protobuf/protobuf.ts";
import { ClientCall } from "./client-call.ts";
import { Connector, type ConnectorOptions, type TlsClientOptions } from "./connector.ts";
import { frameOf, messageBytesDefault, tooLarge } from "./frame.ts";
import { streamWindowBytes } from "./limits.ts";
import { GrpcCode, GrpcError } from "./status.ts";
import { parseTarget } from "./target.ts";

export interface ChannelOptions {
  /** Sent with every call, for example `{ authorization: "Bearer ..." }`. Names in lower case. */
  metadata?: Readonly<Record<string, string>>;
  /** For `https://` targets. */
  tls?: TlsClientOptions;
  /** The size limit of one message, in both directions. */
  messageBytes?: number;
  /**
   * The HTTP/2 window of one call: how many unread bytes the server may send. Small for streams whose messages should stay with the server
   * until they are read.
   */
  windowBytes?: number;
  /** The time limit for opening the connection, including TLS. */
  connectMs?: number;
  /** The time between two pings while calls are open; doubled when the server reports too many pings. */
  pingMs?: number;
  pingTimeoutMs?: number;
  clock?: Clock;
  random?: () => number;
}

export interface CallOptions {
  metadata?: Readonly<Record<string, string>>;
  /** Sent to the server; the call also ends here with DEADLINE_EXCEEDED, whether the server reacts or not. */
  timeoutMs?: number;
  /** Cancels the call: it ends with CANCELLED, and the server is notified. */
  signal?: AbortSignal;
}

export interface StreamOptions extends CallOptions {
  /** Called when the server has accepted the call. */
  opened?: () => void;
  /**
   * Called with the reason when a message cannot be read. The message is left out, and the next ones are read. Without this function, the
   * stream ends with an error.
   */
  unreadable?: (error: unknown) => void;
}

export interface GrpcChannel {
  /** The target as it was given. */
  readonly target: string;
  /** @throws GrpcError */
  unary<Request extends Message, Response extends Message>(
    rpc: Rpc<Request, Response>,
    request: Encodable<Request>,
    options?: CallOptions,
  ): Promise<Decoded<Response>>;
  /**
   * The messages of a stream, on demand: nothing is read ahead except for what fits the window of the connection. Leaving the loop cancels
   * the call. `opened` is called when the server has accepted the call. @throws GrpcError while reading.
   */
  serverStream<Request extends Message, Response extends Message>(
    rpc: Rpc<Request, Response>,
    request: Encodable<Request>,
    options?: StreamOptions,
  ): AsyncGenerator<Decoded<Response>, void, undefined>;
  /** Ends every call with CANCELLED and closes the connection. Calling it again has no effect. */
  close(): Promise<void>;
}

const CONNECT_MS = 20_000;
const PING_MS = 30_000;
const PING_TIMEOUT_MS = 20_000;
/** How often a call is repeated when the server has refused it without reading it. */
const REFUSALS_MAX = 3;

/** Does not connect yet: the first call does. @throws LongshoreError for an invalid target. */
export function openChannel(target: string, options: ChannelOptions = {}): GrpcChannel {
  return new Channel(target, options);
}

class Channel implements GrpcChannel {
  readonly target: string;
  readonly #connector: Connector;
  readonly #clock: Clock;
  readonly #metadata: Readonly<Record<string, string>>;
  readonly #messageBytes: number;
  readonly #base: Readonly<Record<string, string>>;

  constructor(target: string, options: ChannelOptions) {
    const { clock = systemClock, random = Math.random, metadata = {}, messageBytes = messageBytesDefault } = options;
    const place = parseTarget(target);
    this.target = target;
    this.#clock = clock;
    this.#metadata = metadata;
    this.#messageBytes = messageBytes;
    this.#base = {
      ":method": "POST",
      ":scheme": place.secure ? "https" : "http",
      ":authority": place.authority,
      te: "trailers",
      "content-type": "application/grpc+proto",
      "grpc-accept-encoding": "identity,gzip",
      "user-agent": "longshore",
    };
    const timing: Pick<ConnectorOptions, "connectMs" | "pingMs" | "pingTimeoutMs"> = {
      connectMs: options.connectMs ?? CONNECT_MS,
      pingMs: options.pingMs ?? PING_MS,
      pingTimeoutMs: options.pingTimeoutMs ?? PING_TIMEOUT_MS,
    };
    this.#connector = new Connector({
      place,
      tls: options.tls,
      windowBytes: options.windowBytes ?? streamWindowBytes,
      clock,
      random,
      ...timing,
    });
  }

  async unary<Request extends Message, Response extends Message>(
    rpc: Rpc<Request, Response>,
    request: Encodable<Request>,
    options: CallOptions = {},
  ): Promise<Decoded<Response>> {
    const call = this.#call(rpc, request, options);
    try {
      return rpc.response.decode(await this.#started(call, () => call.only()), receivedValuesMax) as Decoded<Response>;
    } catch (error) {
      throw this.#named(error, rpc);
    } finally {
      call.cancel();
    }
  }

  async *serverStream<Request extends Message, Response extends Message>(
    rpc: Rpc<Request, Response>,
    request: Encodable<Request>,
    options: StreamOptions = {},
  ): AsyncGenerator<Decoded<Response>, void, undefined> {
    const call = this.#call(rpc, request, options);
    try {
      await this.#started(call, () => call.head());
      options.opened?.();
      for (let bytes = await call.next(); bytes !== undefined; bytes = await call.next()) {
        const message = this.#decoded(rpc, bytes, options.unreadable);
        if (message !== undefined) yield message;
      }
    } catch (error) {
      throw this.#named(error, rpc);
    } finally {
      call.cancel();
    }
  }

  close(): Promise<void> {
    return this.#connector.close();
  }

  #call(rpc: Rpc, request: unknown, { metadata, timeoutMs, signal }: CallOptions): ClientCall {
    const bytes = rpc.request.encode(request);
    if (bytes.length > this.#messageBytes) throw tooLarge(bytes.length, this.#messageBytes);
    return new ClientCall({
      headers: { ...this.#base, ":path": rpc.path, ...this.#metadata, ...metadata },
      frame: frameOf(bytes),
      messageBytes: this.#messageBytes,
      paced: rpc.kind === "server-stream",
      clock: this.#clock,
      ...{ timeoutMs, signal },
    });
  }

  /** Starts the call, starts it again while the server has not seen it, and returns the result of `answer`. */
  async #started<T>(call: ClientCall, answer: () => Promise<T>): Promise<T> {
    for (let refusals = 0; ; refusals++) {
      const connection = this.#connector.connection();
      call.start(connection instanceof Promise ? await call.orOver(connection) : connection);
      try {
        return await answer();
      } catch (error) {
        if (call.unseen !== error || refusals >= REFUSALS_MAX) throw error;
      }
    }
  }

  #decoded<Response extends Message>(rpc: Rpc<Message, Response>, bytes: Buffer, unreadable: StreamOptions["unreadable"]) {
    try {
      return rpc.response.decode(bytes, receivedValuesMax) as Decoded<Response>;
    } catch (error) {
      if (unreadable === undefined) throw error;
      unreadable(this.#named(error, rpc));
      return undefined;
    }
  }

  /** An error of the decoder is the server's mistake; it is reported with the server's name. */
  #named(error: unknown, rpc: Rpc): unknown {
    if (error instanceof GrpcError) return error;
    return new GrpcError(GrpcCode.INTERNAL, `The answer of ${this.target} to ${rpc.path} cannot be read: ${(error as Error).message}`, [], {
      cause: error,
    });
  }
}
