// Every limit of the link between a node and the owner, with the reason for its value. Tests make them small.

import { shareUnits } from "../../core/slices/loop-turns.ts";

/**
 * The limit of messages that all links of a node deliver in one turn of the event loop, in units. It is the full share of two links: 128
 * requests. Each request takes 50 to 100 us, and the listener of the node begins requests in the same turn.
 */
export const linkTurnUnits = 2 * shareUnits;

/**
 * Calls or streams of a lost link that are ended in one turn of the event loop. A stream of events takes up to 200 us to end, because its
 * reader ends with it.
 */
export const endedAtOnce = 32;

export interface LinkLimits {
  /** The bytes of one frame. No payload with its envelope is larger, so only a faulty or foreign program sends more. */
  frameBytes: number;
  /** A frame of several messages is closed at this many characters, so that the other side parses it in a few milliseconds. */
  frameChars: number;
  /**
   * The bytes of a frame before both sides have proved who they are. Such a frame holds a proof, or a refusal with names of any allowed
   * length.
   */
  strangerBytes: number;
  /** Calls of one link that wait for their reply: twice as many as the long polls of a full listener. */
  calls: number;
  /** The characters of all calls that wait for their reply: they are in memory until then. */
  callBytes: number;
  /** The bytes that may wait at the owner until a node reads them. A node that reads so slowly is cut off and starts again. */
  sendingBytes: number;
  /** Links of one owner: far more nodes than any cluster has. */
  links: number;
  /**
   * Handshakes in progress at one owner. Above this number, the oldest is cut: a program that never finishes its handshake must not block a
   * node.
   */
  handshakes: number;
  /** The time for a connection and its handshake: several round trips of a slow line. */
  handshakeMs: number;
  /** The time between two pings, which each side sends. */
  pingMs: number;
  /** After this many ping times in which nothing arrived, the link is cut. */
  quietPings: number;
  /** The pause before the second try to connect; it doubles with each try. */
  retryMs: number;
  /** The longest pause between two tries: callers wait meanwhile. */
  retryMsMax: number;
  /** How long a call waits for a link before it is rejected: longer than a take-over after a freeze. */
  waitMs: number;
}

export const linkLimits: Readonly<LinkLimits> = {
  frameBytes: 67_108_864,
  frameChars: 1_048_576,
  strangerBytes: 16_384,
  calls: 50_000,
  callBytes: 268_435_456,
  sendingBytes: 268_435_456,
  links: 1_000,
  handshakes: 100,
  handshakeMs: 5_000,
  pingMs: 1_000,
  quietPings: 3,
  retryMs: 50,
  retryMsMax: 1_000,
  waitMs: 10_000,
};
