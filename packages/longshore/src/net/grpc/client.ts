// A gRPC client: one connection to one server, kept, and made again when it breaks. Calls share it.
//
// A call that finds no connection waits for one, and so gets the error of the server. After a failure the next try is a little
// later each time, and calls wait for that too. A call that the server certainly has not begun (it sent GOAWAY) is sent again.
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
  /** One message, in and out. */
  messageBytes?: number;
  /** What may be under way to us on one call before it is read; for streams whose messages shall stay with the server until then. */
  windowBytes?: number;
  /** For the connection to be made, TLS included. */
  connectMs?: number;
  /** Between two pings while calls are open; doubled when the server reports that it is too often. */
  pingMs?: number;
  pingTimeoutMs?: number;
  clock?: Clock;
  random?: () => number;
}

export interface CallOptions {
  metadata?: Readonly<Record<string, string>>;
  /** The server gets it, and the call ends with DEADLINE_EXCEEDED here, whatever the server does. */
  timeoutMs?: number;
  /** Cancels the call: it ends with CANCELLED, and the server is notified. */
  signal?: AbortSignal;
}

export interface GrpcChannel {
  /** As it was given. */
  readonly target: string;
  /** @throws GrpcError */
  unary<Request extends Message, Response extends Message>(
    rpc: Rpc<Request, Response>,
    request: Encodable<Request>,
    options?: CallOptions,
  ): Promise<Decoded<Response>>;
  /**
   * The messages of a stream, on demand: nothing is read ahead of the reader but what fits the window of the connection.
   * Leaving the loop cancels the call. `opened` is called when the server has accepted it. @throws GrpcError while reading.
   */
  serverStream<Request extends Message, Response extends Message>(
    rpc: Rpc<Request, Response>,
    request: Encodable<Request>,
    options?: CallOptions & { opened?: () => void },
  ): AsyncGenerator<Decoded<Response>, void, undefined>;
  /** Ends every call with CANCELLED and closes the connection. Again is harmless. */
  close(): Promise<void>;
}

const CONNECT_MS = 20_000;
const PING_MS = 30_000;
const PING_TIMEOUT_MS = 20_000;
/** How often a call may be refused unseen before that is its answer. */
const REFUSALS_MAX = 3;

/** Opens nothing yet: the first call connects. @throws LongshoreError for a target that is none. */
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
    options: CallOptions & { opened?: () => void } = {},
  ): AsyncGenerator<Decoded<Response>, void, undefined> {
    const call = this.#call(rpc, request, options);
    try {
      await this.#started(call, () => call.head());
      options.opened?.();
      for (let bytes = await call.next(); bytes !== undefined; bytes = await call.next()) {
        yield rpc.response.decode(bytes, receivedValuesMax) as Decoded<Response>;
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

  /** Starts the call, again as long as the server has not seen it, and answers what `answer` waits for. */
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

  /** An error of the decoder is the server's mistake, and one of the network is reported with the server's name. */
  #named(error: unknown, rpc: Rpc): unknown {
    if (error instanceof GrpcError) return error;
    return new GrpcError(GrpcCode.INTERNAL, `The answer of ${this.target} to ${rpc.path} cannot be read: ${(error as Error).message}`, [], {
      cause: error,
    });
  }
}
