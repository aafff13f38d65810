// Every limit of a gRPC server, with the reason for its value. Tests make them small.
import { messageBytesDefault } from "./frame.ts";

export interface GrpcLimits {
  /** One message, in and out, also after it was unpacked. */
  messageBytes: number;
  /** Requests that are being received, all together: beyond it calls are refused until others are done. */
  receivingBytes: number;
  /** Calls at once on one connection, long-lived streams included; the host may take fewer. A client that needs more opens another connection. */
  streams: number;
  /** All metadata of one call: what HTTP/1.1 requests may have. */
  headerBytes: number;
  /** For a whole request to arrive; the answer may take as long as it likes. */
  requestMs: number;
  /** How long a connection without calls is kept, late by at most `pingMs`. Its client connects again when it has something to call. */
  idleMs: number;
  /** Between two pings of a connection. */
  pingMs: number;
  /** For the answer to a ping: what other implementations wait too. */
  pingTimeoutMs: number;
}

export const grpcLimits: Readonly<GrpcLimits> = {
  messageBytes: messageBytesDefault,
  receivingBytes: 4 * messageBytesDefault,
  streams: 1_100,
  headerBytes: 16_384,
  requestMs: 300_000,
  idleMs: 300_000,
  pingMs: 30_000,
  pingTimeoutMs: 20_000,
};

/** What may be under way to us on one stream, and on all streams of a connection, before we have read it: a message of usual size at once. */
export const streamWindowBytes = 1_048_576;
export const sessionWindowBytes = 4_194_304;

/** What a session may hold in memory, in megabytes: the largest message, what waits before it, and room. Node's own 10 is less than a message. */
export const sessionMemoryMb = 160;
