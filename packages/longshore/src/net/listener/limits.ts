// Every limit of the HTTP listener, with the reason for its value. `listen` accepts each of them as an option; tests make them small.

import { grpcLimits } from "../grpc/limits.ts";
import type { ValueLimits } from "../http/request-size.ts";

/** The limits of a request. docs/reference/limits.md has the defaults. */
export interface HttpLimits extends ValueLimits {
  /** The largest request body of a route that sets no limit itself. Existing workers know this limit (2 MiB). */
  bodyBytes: number;
  /** The same for a route that needs no token. A caller without a token has nothing large to send. */
  openBytes: number;
  /** The same for a route that carries inputs, outputs or definitions: a value with its envelope. */
  payloadBytes: number;
  /** How much of a refused body is read and discarded so that the client can read the refusal; beyond it, the client is disconnected. */
  discardBytes: number;
  /** Request line and headers together: Node's default, twice what proxies commonly pass on. */
  headerBytes: number;
  /** Below `headerBytes`, so that a long URL is refused in the protocol's own format; the limit of common proxies. */
  urlChars: number;
  /** One path parameter, decoded. Ids have at most 256 characters; twice that leaves room for scoped ones. */
  idChars: number;
  /** Open sockets. About 15 KB each when idle, so ten thousand stay near 150 MB. */
  connections: number;
  /**
   * Concurrent requests in addition to the places that each connection has of its own. Long polls and event streams count too. Each takes
   * some kilobytes.
   */
  inFlight: number;
  /** The places that each connection has of its own: enough for a worker's stream or long poll, its reports and heartbeats. */
  inFlightOwn: number;
  /** Concurrent requests on one connection: more than any client multiplexes, and a twentieth of the pool. */
  inFlightConnection: number;
  /**
   * Places of the pool for all connections of one token: a quarter. Even four faulty tokens leave the other connections the places that
   * these have of their own.
   */
  inFlightToken: number;
  /** Places of the pool for all requests that need no token: they are answered at once, so few are ever in progress. */
  inFlightOpen: number;
  /** How far health, metrics and cancellations may exceed each of these limits. */
  inFlightReserve: number;
  /** The time limit for headers. A client that takes longer is not a worker on a slow line but a slow-header attack. */
  headersMs: number;
  /** The time limit for the whole request including its body; the response may take any time. Allows 100 MB at 3 Mbit/s. */
  requestMs: number;
  /** A body or gRPC message without new data for this long is refused. Late by up to a quarter. */
  receiveStallMs: number;
  /** The minimum average bytes per second of a body or message, after `receiveStallMs`. Far below every line that a worker uses. */
  receiveRate: number;
  /** A reader that has taken nothing for this long is disconnected. Late by up to a quarter. */
  sendStallMs: number;
  /** The bytes of all responses that their readers have not taken yet. */
  sendingBytes: number;
  /** How often Node checks `headersMs` and `requestMs`. Those limits are late by at most this. */
  checkMs: number;
  /** How long an idle socket is kept. Above the 90 s of Go and reqwest clients, so that the server never closes first. */
  keepAliveMs: number;
  /** The quiet time after which the system checks the other side: the long poll of a lost machine must end. */
  probeMs: number;
  /** The bytes that may wait in memory for one reader of server-sent events before `send` returns false. */
  eventBufferBytes: number;
  /**
   * The same for all readers of events together: room for 256 readers with the largest share. A reader that needs more is disconnected, and
   * may resume.
   */
  eventBytes: number;
  /** The quiet time after which an event stream sends a comment. Proxies disconnect after 30 s to 60 s. */
  eventQuietMs: number;
  /** After this many quiet periods in which a reader takes nothing, it is disconnected: half a minute with the defaults. */
  eventStallsMax: number;
  /** One gRPC message, in both directions. */
  messageBytes: number;
  /** One gRPC request that carries no payload. */
  callBytes: number;
  /** All bodies and gRPC messages that are being received, decompressed: sixteen of the largest. */
  receivingBytes: number;
  /** Concurrent gRPC calls on one connection, including long-lived streams: one read of a connection may start this many. */
  streams: number;
  /** The same for a client that has shown no valid token, and how many connections such clients may have. */
  strangerStreams: number;
  strangerSessions: number;
  /** The time between two pings of a gRPC connection, which detect a lost peer. */
  pingMs: number;
  /** The time limit for the reply to such a ping. */
  pingTimeoutMs: number;
  /** How long `close` waits for running requests by default: orchestrators commonly kill after 30 s. */
  closeMs: number;
}

export const httpLimits: Readonly<HttpLimits> = {
  bodyBytes: 2_097_152,
  openBytes: 4_096,
  payloadBytes: grpcLimits.payloadBytes,
  bodyValues: grpcLimits.bodyValues,
  payloadValues: grpcLimits.payloadValues,
  definitionValues: grpcLimits.definitionValues,
  discardBytes: 8_388_608,
  headerBytes: 16_384,
  urlChars: 8_000,
  idChars: 512,
  connections: 10_000,
  inFlight: 20_000,
  inFlightOwn: 4,
  inFlightConnection: 1_000,
  inFlightToken: 5_000,
  inFlightOpen: 256,
  inFlightReserve: 100,
  headersMs: 10_000,
  requestMs: 300_000,
  receiveStallMs: 10_000,
  receiveRate: 1_024,
  sendStallMs: 30_000,
  sendingBytes: 268_435_456,
  checkMs: 5_000,
  keepAliveMs: 95_000,
  probeMs: 30_000,
  eventBufferBytes: 262_144,
  eventBytes: 67_108_864,
  eventQuietMs: 15_000,
  eventStallsMax: 2,
  messageBytes: grpcLimits.messageBytes,
  callBytes: grpcLimits.callBytes,
  receivingBytes: 268_435_456,
  streams: grpcLimits.streams,
  strangerStreams: grpcLimits.strangerStreams,
  strangerSessions: grpcLimits.strangerSessions,
  pingMs: grpcLimits.pingMs,
  pingTimeoutMs: grpcLimits.pingTimeoutMs,
  closeMs: 10_000,
};
