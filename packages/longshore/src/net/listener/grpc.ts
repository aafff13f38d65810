// gRPC on the same port. Calls have the same access check, limits and metrics as requests, and end in the same order. net/grpc/ has the
// transport.

import type { Socket } from "node:net";
import { stranger } from "../../core/actions.ts";
import type { ByteBudget } from "../../core/byte-budget.ts";
import type { Clock } from "../../core/clock.ts";
import type { Logger } from "../../core/logger.ts";
import type { LoopTurns } from "../../core/slices/loop-turns.ts";
import type { Stalls } from "../../core/stalls.ts";
import type { Stopwatch } from "../../core/watchdog.ts";
import { GrpcServer } from "../grpc/server.ts";
import type { ServerCall } from "../grpc/server-call.ts";
import type { GrpcMethod } from "../grpc/service.ts";
import { BadRequest, codeName, detailOf, GrpcCode, GrpcError } from "../grpc/status.ts";
import type { Problem, ProblemKind } from "../http/http.ts";
import type { Admission } from "./admission.ts";
import type { AnswerSlots } from "./answer-slots.ts";
import type { Connections } from "./connections.ts";
import type { Gate } from "./gate.ts";
import type { HttpLimits } from "./limits.ts";
import { problemOf } from "./problems.ts";
import type { Traffic } from "./traffic.ts";

export interface GrpcDeps {
  methods: readonly GrpcMethod[];
  gate: Gate;
  connections: Connections;
  places: Admission;
  slots: AnswerSlots;
  traffic: Traffic;
  logger: Logger;
  limits: HttpLimits;
  clock: Clock;
  /** The budget of all bodies and messages that are being received. */
  receiving: ByteBudget;
  /** The budget of all responses that their readers have not taken. */
  sending: ByteBudget;
  receiveStalls: Stalls;
  sendStalls: Stalls;
  /** Limits the work of connections in one turn of the event loop. */
  turns: LoopTurns;
  watch?: Stopwatch;
}

export interface GrpcSide {
  /** Serves this socket from now on; `bytes` are received but not parsed yet. */
  take(socket: Socket, bytes?: Buffer): void;
  /** Ends streams and sends GOAWAY to every client; other calls may finish. */
  drain(): void;
}

export function createGrpc({
  methods,
  gate,
  connections,
  places,
  slots,
  traffic,
  logger,
  limits,
  clock,
  receiving,
  sending,
  receiveStalls,
  sendStalls,
  turns,
  watch,
}: GrpcDeps): GrpcSide {
  function refuse(call: ServerCall, problem: Problem): GrpcError {
    traffic.refused({ method: "gRPC", route: call.method?.path, from: call.session.socket.remoteAddress, caller: call.caller }, problem);
    return grpcErrorOf(problem);
  }

  const server = new GrpcServer({
    ...{ methods, clock, receiving, sending, receiveStalls, sendStalls, turns },
    limits: { ...limits, idleMs: limits.keepAliveMs },
    host: {
      begin(call) {
        const connection = connections.of(call.session.socket);
        if (connection !== undefined) connections.begin(connection, call);
        return (code) => {
          traffic.called(call.method?.path, codeName(code), call.caller);
          if (connection !== undefined) connections.finish(connection, call);
        };
      },
      admit(call, method) {
        const { headers } = call;
        // HTTP/2 has its own field for HTTP/1.1's Host.
        headers.host = headers[":authority"] ?? headers.host;
        const foreign = gate.screen(headers);
        if (foreign !== undefined) return refuse(call, foreign);
        if (method === undefined) return undefined;
        const { problem, caller } = gate.authorize(headers, method.action);
        call.caller = caller;
        if (problem !== undefined) return refuse(call, problem);
        const connection = connections.of(call.session.socket);
        const full = connection && places.enter(connection, call, caller.name, method.action);
        if (connection?.known) call.session.recognise();
        return full && refuse(call, full);
      },
      enter: (call, { action }, bytes) => (slots.counts(action) ? slots.enter(call, bytes, call.caller.name) : undefined),
      leave: (call) => slots.leave(call),
      explain(error, call) {
        const { problem, incident } = problemOf(error);
        if (incident !== undefined) logger.error("A request failed", { incident, method: "gRPC", route: call.method?.path, error });
        return refuse(call, problem);
      },
      ran: (call, ms) => watch?.ran(call.path, ms),
      flooded: () => traffic.broken("flood"),
      crowdedOut: () => traffic.broken("full"),
      refusedPlain(status, socket) {
        const problem: Problem = {
          kind: status === 415 ? "bad-request" : "method-not-allowed",
          status,
          message: "This is not a gRPC call.",
        };
        traffic.refused({ method: "HTTP/2", route: undefined, from: socket.remoteAddress, caller: stranger }, problem);
      },
    },
  });

  return {
    take(socket, bytes) {
      const session = server.take(socket, bytes);
      if (session === undefined) return;
      const connection = connections.of(socket);
      if (connection !== undefined) connection.release = () => session.drain();
    },
    drain: () => server.drain(),
  };
}

const codes: Readonly<Record<ProblemKind, GrpcCode>> = {
  unauthorized: GrpcCode.UNAUTHENTICATED,
  forbidden: GrpcCode.PERMISSION_DENIED,
  "not-found": GrpcCode.NOT_FOUND,
  "method-not-allowed": GrpcCode.UNIMPLEMENTED,
  "too-large": GrpcCode.RESOURCE_EXHAUSTED,
  "bad-request": GrpcCode.INVALID_ARGUMENT,
  // A full server frees places within a second: workers retry after this code.
  overloaded: GrpcCode.UNAVAILABLE,
  unavailable: GrpcCode.UNAVAILABLE,
  internal: GrpcCode.INTERNAL,
};

/** The same refusal as a gRPC error. */
function grpcErrorOf({ kind, message, detail }: Problem): GrpcError {
  if (kind !== "bad-request" || detail?.field === undefined) return new GrpcError(codes[kind], message);
  const description = detail.expected === undefined ? message : `expected ${detail.expected}`;
  return new GrpcError(codes[kind], message, [detailOf(BadRequest, { fieldViolations: [{ field: detail.field, description }] })]);
}
