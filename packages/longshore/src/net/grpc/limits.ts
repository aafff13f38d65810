// Every limit of a gRPC server, with the reason for its value. Tests make them small.

import { payloadRequestBytes } from "../../core/payload-size.ts";
import type { ValueLimits } from "../http/request-size.ts";

export interface GrpcLimits extends ValueLimits {
  /** One message, in and out, also after it was unpacked: four times what peers take by default (4 MiB). */
  messageBytes: number;
  /** One request of a method that carries inputs, outputs or definitions. It is decoded at once; whatever is larger belongs into a blob. */
  payloadBytes: number;
  /** One request of any other method: names, ids and numbers. */
  callBytes: number;
  /** One request of a method that answers anyone. */
  openBytes: number;
  /**
   * Calls at once on one connection, long-lived streams included; more wait in the client, or go over another connection. Node makes a stream of
   * each as soon as it comes, whatever else there is to do: so many take a few milliseconds.
   */
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
  messageBytes: 16_777_216,
  payloadBytes: payloadRequestBytes,
  callBytes: 65_536,
  openBytes: 4_096,
  bodyValues: 65_536,
  payloadValues: 131_072,
  definitionValues: 262_144,
  streams: 256,
  headerBytes: 16_384,
  requestMs: 300_000,
  idleMs: 300_000,
  pingMs: 30_000,
  pingTimeoutMs: 20_000,
};

/** What may be under way to us on one stream, and on all streams of a connection, before we have read it: a message of usual size at once. */
export const streamWindowBytes = 1_048_576;
export const sessionWindowBytes = 4_194_304;

/** Messages that are unpacked at the same time: each keeps a thread of the pool busy, of which files need some too. */
export const inflationsAtOnce = 2;

/** What a session may hold in memory, in megabytes: the largest message, what waits before it, and room. Node's own 10 is less than a message. */
export const sessionMemoryMb = 160;
