// What a gRPC service is made of: methods as data, so that the gate in front of routes guards them too and a test can walk the table.
// No sockets here; server.ts owns those. A protocol makes its methods from the tables of its services:
//
//   const methods = [unary(OrchestratorService.CompleteTask, "task.report", (request, call) => ...)];
import type { Action, Caller } from "../../core/actions.ts";
import type { Decoded, Encodable, Message, Rpc } from "../protobuf/protobuf.ts";

export interface GrpcMethod<Request = unknown, Response = unknown> {
  /** `/package.v1.TasksService/PullTasks` */
  readonly path: string;
  /** What it does: the same gate as for routes, with the metadata `authorization: Bearer ...`. */
  readonly action: Action;
  readonly request: Message<Request>;
  readonly response: Message<Response>;
  readonly kind: "unary" | "server-stream";
  /** For `unary`. Throws a GrpcError to refuse; any other error is what it would be for a route. */
  unary?(request: Request, call: GrpcCall): Promise<Response> | Response;
  /** For `server-stream`. The stream ends when the promise settles; when there is none, by `sink.end`. */
  stream?(request: Request, call: GrpcCall, sink: GrpcSink<Response>): void | Promise<void>;
}

/** What a handler knows of the call. */
export interface GrpcCall {
  /** Names in lower case; several values of one name are joined by a comma. Values of names that end in `-bin` are base64. */
  readonly metadata: Readonly<Record<string, string>>;
  /** The caller, and what else it may do. */
  readonly caller: Caller;
  /** The address that the caller has called, by its own header: `host:port`. */
  readonly authority?: string;
  /** Aborted when nothing waits for the answer any more: cancelled, past its deadline, disconnected, or ended by a closing server. */
  readonly gone: AbortSignal;
  /** Address and port of the caller. */
  readonly peer: string;
  /** When the caller gives up, in milliseconds of the server's clock. */
  readonly deadline?: number;
}

export interface GrpcSink<Response> {
  /**
   * Resolves when the message has left this process, so that the next one may be sent; also when the caller has gone (see `gone`). Never
   * rejects because of the network. A handler that does not wait is cut off once the unsent bytes exceed the limit of one message.
   */
  send(message: Response): Promise<void>;
  /** True when nothing waits unsent in our process. */
  readonly idle: boolean;
  /** Ends the stream after what was sent: well, or with an error. Again is harmless. */
  end(error?: Error): void;
}

/** A method that answers once. */
export function unary<Request extends Message, Response extends Message>(
  rpc: Rpc<Request, Response>,
  action: Action,
  handle: (request: Decoded<Request>, call: GrpcCall) => Promise<Encodable<Response>> | Encodable<Response>,
): GrpcMethod {
  return { ...rpc, action, unary: handle as NonNullable<GrpcMethod["unary"]> };
}

/** A method that answers with a stream. */
export function serverStream<Request extends Message, Response extends Message>(
  rpc: Rpc<Request, Response>,
  action: Action,
  handle: (request: Decoded<Request>, call: GrpcCall, sink: GrpcSink<Encodable<Response>>) => void | Promise<void>,
): GrpcMethod {
  return { ...rpc, action, stream: handle as NonNullable<GrpcMethod["stream"]> };
}
