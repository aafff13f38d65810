// Every limit of the link between a node and the owner, with the reason for its value. Tests make them small.

export interface LinkLimits {
  /** One frame. Above the largest payload with its envelope, so only a fault or another program sends more. */
  frameBytes: number;
  /** A frame of several messages is closed at this many characters, so that the other side parses it in a few milliseconds. */
  frameChars: number;
  /** A frame before both sides have proved who they are: a proof, and a reason with the longest names. */
  strangerBytes: number;
  /** Calls of one link that wait for their answer: every long poll of a full listener, and as much again. */
  calls: number;
  /** The bytes of all calls that wait for their answer, in characters. They are kept in memory until they are answered. */
  callBytes: number;
  /** The bytes that may wait at the owner until a node reads them. A node that reads so slowly is cut off and starts again. */
  sendingBytes: number;
  /** Links of one owner: far more nodes than any cluster has. */
  links: number;
  /** Handshakes under way at one owner. The oldest is cut for a new one, so that strangers who never finish keep no node out. */
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
