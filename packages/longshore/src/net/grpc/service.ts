// The parts of a gRPC service: methods as data, so that the same access check guards routes and methods, and a test can walk the table. No
// sockets here; server.ts owns those. A protocol makes its methods from the tables of its services:
//
//   const methods = [unary(OrchestratorService.CompleteTask, "task.report", (request, call) => ...)];
import type { Action, Caller } from "../../core/actions.ts";
import type { Decoded, Encodable, Message, Rpc } from "../protobuf/protobuf.ts";

export interface GrpcMethod<Request = unknown, Response = unknown> {
  /** `/package.v1.TasksService/PullTasks` */
  readonly path: string;
  /** The action of the method: the same access check as for routes, with the metadata `authorization: Bearer ...`. */
  readonly action: Action;
  readonly request: Message<Request>;
  readonly response: Message<Response>;
  readonly kind: "unary" | "server-stream";
  /** For `unary`. Throws a GrpcError to refuse; any other error is handled as for a route. */
  unary?(request: Request, call: GrpcCall): Promise<Response> | Response;
  /** For `server-stream`. The stream ends when the promise settles. Without a promise, `sink.end` ends it. */
  stream?(request: Request, call: GrpcCall, sink: GrpcSink<Response>): void | Promise<void>;
}

/** What a handler knows about the call. */
export interface GrpcCall {
  /** Names in lower case; several values of one name are joined by a comma. Values of names that end in `-bin` are base64. */
  readonly metadata: Readonly<Record<string, string>>;
  /** The caller, and what it may do. */
  readonly caller: Caller;
  /** The address that the caller has called, from its own header: `host:port`. */
  readonly authority?: string;
  /**
   * Aborts when the result is not needed any more: the call was cancelled, its deadline has passed, the caller has disconnected, or the
   * server closes.
   */
  readonly gone: AbortSignal;
  /** Address and port of the caller. */
  readonly peer: string;
  /** When the caller gives up, in milliseconds of the server's clock. */
  readonly deadline?: number;
  /** In a cluster: the id of this call. When the call is performed again because the owner of the data was lost, it has the same id. */
  id?: string | undefined;
}

export interface GrpcSink<Response> {
  /**
   * Resolves when the message has left this process, so that the next one may be sent; also when the caller has disconnected (see `gone`).
   * Never rejects because of the network. A handler that does not wait is ended once the unsent bytes exceed the limit of one message.
   */
  send(message: Response): Promise<void>;
  /** True when no bytes wait to be sent. */
  readonly idle: boolean;
  /** Ends the stream after everything that was sent: successfully, or with an error. Calling it again has no effect. */
  end(error?: Error): void;
}

/** A method that returns one message. */
export function unary<Request extends Message, Response extends Message>(
  rpc: Rpc<Request, Response>,
  action: Action,
  handle: (request: Decoded<Request>, call: GrpcCall) => Promise<Encodable<Response>> | Encodable<Response>,
): GrpcMethod {
  return { ...rpc, action, unary: handle as NonNullable<GrpcMethod["unary"]> };
}

/** A method that returns a stream. */
export function serverStream<Request extends Message, Response extends Message>(
  rpc: Rpc<Request, Response>,
  action: Action,
  handle: (request: Decoded<Request>, call: GrpcCall, sink: GrpcSink<Encodable<Response>>) => void | Promise<void>,
): GrpcMethod {
  return { ...rpc, action, stream: handle as NonNullable<GrpcMethod["stream"]> };
}
