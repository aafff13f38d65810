// Every limit of the HTTP listener, with the reason for its value. `listen` takes any of them as an option; tests make them small.

import { grpcLimits } from "../grpc/limits.ts";
import type { ValueLimits } from "../http/request-size.ts";

/** What one request may cost. docs/reference/limits.md has the defaults. */
export interface HttpLimits extends ValueLimits {
  /** Largest request body a route reads unless it names its own. Workers that exist know this limit (2 MiB). */
  bodyBytes: number;
  /** The same of a route that needs no token. A caller without a token has nothing large to send. */
  openBytes: number;
  /** The same of a route that carries inputs, outputs or definitions, and of such a request of gRPC: a value with what surrounds it. */
  payloadBytes: number;
  /** How much of a refused body is read and thrown away so that the client can read the refusal; beyond it the socket is cut. */
  discardBytes: number;
  /** Request line and headers together: Node's own default, twice what proxies commonly pass on. */
  headerBytes: number;
  /** Below `headerBytes`, so that a long URL is refused in the protocol's own words; what common proxies accept. */
  urlChars: number;
  /** One path parameter, decoded. Ids are at most 256 characters wherever they are made; twice that leaves room for scoped ones. */
  idChars: number;
  /** Open sockets. About 15 KB each when idle, so ten thousand stay near 150 MB. */
  connections: number;
  /**
   * Requests under way at once beyond those that connections have places of their own for; long polls and event streams count. Some
   * kilobytes each.
   */
  inFlight: number;
  /** Places of a connection that nothing else can take: a worker's stream or long poll, its reports and heartbeats. */
  inFlightOwn: number;
  /** Requests under way on one connection: more than any client multiplexes, and a twentieth of the pool. */
  inFlightConnection: number;
  /** Places of the pool for the connections of one token together: a quarter, so that four tokens gone wild leave the others their own. */
  inFlightToken: number;
  /** Places of the pool for requests that need no token, all together: they are answered at once, so few are ever under way. */
  inFlightOpen: number;
  /** How far health, figures and cancellations may go beyond each of these. */
  inFlightReserve: number;
  /** A client that has not sent its headers by then is not a worker on a slow line but a slow-header attack. */
  headersMs: number;
  /** For the whole request to arrive, body included; the answer may take any time. Allows 100 MB at 3 Mbit/s. */
  requestMs: number;
  /** A body, or a message of gRPC, of which nothing has come for so long was left half-way. Late by a quarter. */
  receiveStallMs: number;
  /** Bytes a second that must come of a body or message on average, after `receiveStallMs`. Far below every line that a worker works over. */
  receiveRate: number;
  /** A reader that has taken nothing for so long does not read. Late by a quarter. */
  sendStallMs: number;
  /** Answers that their readers have not taken yet, all together. */
  sendingBytes: number;
  /** How often Node looks for sockets past the two limits above. Those limits are late by at most this. */
  checkMs: number;
  /** How long an idle socket is kept. Above the 90 s of Go and reqwest clients, so that never the server closes first. */
  keepAliveMs: number;
  /** Quiet time after which the system probes the other side, so that the long poll of a machine that vanished does not wait forever. */
  probeMs: number;
  /** What may wait in memory for one reader of server-sent events before `send` returns false. */
  eventBufferBytes: number;
  /** The same for all readers of events together: the largest share of 256 of them. One that needs more is cut, and may resume. */
  eventBytes: number;
  /** Quiet time after which an event stream gets a comment: below the 30 s to 60 s after which proxies cut. */
  eventQuietMs: number;
  /** Quiet periods in which a reader may take nothing before it is cut: half a minute with the defaults. */
  eventStallsMax: number;
  /** One message of gRPC, in and out. */
  messageBytes: number;
  /** One request of gRPC that carries none. */
  callBytes: number;
  /** Bodies and messages of gRPC that are being received, unpacked, all together: sixteen of the largest. */
  receivingBytes: number;
  /** gRPC calls at once on one connection, long-lived streams included: what one read of a connection may bring to life. */
  streams: number;
  /** Between two pings of a gRPC connection, which notice that the other side has vanished. */
  pingMs: number;
  /** For the answer to such a ping. */
  pingTimeoutMs: number;
  /** Default for how long `close` waits for requests in flight: an orchestrator commonly kills after 30 s. */
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
  pingMs: grpcLimits.pingMs,
  pingTimeoutMs: grpcLimits.pingTimeoutMs,
  closeMs: 10_000,
};
