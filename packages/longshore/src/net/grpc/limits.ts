// Every limit of a gRPC server, with the reason for its value. Tests make them small.

import { payloadRequestBytes } from "../../core/payload-size.ts";
import type { ValueLimits } from "../http/request-size.ts";

export interface GrpcLimits extends ValueLimits {
  /** The limit of one message, in both directions, also after decompression: four times the default of peers (4 MiB). */
  messageBytes: number;
  /** The limit of a request that carries inputs, outputs or definitions. It is decoded at once; larger content must be sent as a blob. */
  payloadBytes: number;
  /** The limit of every other request: names, ids and numbers. */
  callBytes: number;
  /** The limit of a request to a method that needs no token. */
  openBytes: number;
  /**
   * Concurrent calls on one connection, including long-lived streams; further calls wait in the client, or use another connection. Node
   * creates a stream for each call as soon as it arrives; to create this many takes a few milliseconds.
   */
  streams: number;
  /** The same while no call on the connection has been allowed for its token. Each such call costs Node up to 75 us, in one piece. */
  strangerStreams: number;
  /**
   * Connections on which no call has been allowed yet. A further one disconnects the oldest. The server opens about 1,500 connections a
   * second, so a client has half a second for its first call.
   */
  strangerSessions: number;
  /** The limit of all metadata of one call: the same as for HTTP/1.1 requests. */
  headerBytes: number;
  /** The time limit for a whole request to arrive; the response may take any time. */
  requestMs: number;
  /** How long a connection without calls is kept, late by at most `pingMs`. Its client connects again for its next call. */
  idleMs: number;
  /** The time between two pings of a connection. */
  pingMs: number;
  /** The time limit for the reply to a ping: the same as in other implementations. */
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
  strangerStreams: 4,
  strangerSessions: 1_024,
  headerBytes: 16_384,
  requestMs: 300_000,
  idleMs: 300_000,
  pingMs: 30_000,
  pingTimeoutMs: 20_000,
};

/** The HTTP/2 windows: how many unread bytes a stream, and all streams of a connection, may send. A message of usual size fits. */
export const streamWindowBytes = 1_048_576;
export const sessionWindowBytes = 4_194_304;

/** How many messages are decompressed at the same time. Each occupies a thread of Node's pool, and file access needs these threads too. */
export const inflationsAtOnce = 2;

/**
 * The memory limit of a session, in megabytes: room for the largest message and the data that waits before it. Node's default of 10 is less
 * than one message.
 */
export const sessionMemoryMb = 160;
