// Bounds what a NATS server may do to this process. The NATS client reads whatever arrives in one turn of the event loop, up to 2 MiB: a
// hundred thousand pings, each of which it answers. It also keeps a line until its end, and copies all of the first line for each piece of
// it. So a server that sends the first line without an end held the event loop for seconds.
//
// The client has no hook for its socket, but Node publishes each socket that a program opens. The sockets of one client are known by the
// async context in which they are opened, also when it connects again. With TLS, Node reads the socket elsewhere: the bytes before TLS
// begins are bounded, and those after it come from a server with a certificate.

import { AsyncLocalStorage } from "node:async_hooks";
import { subscribe, unsubscribe } from "node:diagnostics_channel";
import { Socket } from "node:net";

/** What the client gets in one turn: one read of a socket, and as many lines as take some milliseconds. It answers each ping with a write. */
const turnBytes = 65_536;
const turnLines = 400;
/** The longest line: what a server says about itself, with the addresses of a large cluster, takes a few thousand bytes. */
const lineBytesMax = 65_536;

interface Connection {
  closed(): Promise<unknown>;
}

/** Calls `connect` and bounds the sockets of its connection, until it is closed. */
export async function guarded<Opened extends Connection>(connect: () => Promise<Opened>): Promise<Opened> {
  const context = new AsyncLocalStorage<true>();
  const opened = (message: unknown) => {
    const { socket } = message as { socket: unknown };
    if (context.getStore() === true && socket instanceof Socket) guardSocket(socket);
  };
  subscribe("net.client.socket", opened);
  const end = () => void unsubscribe("net.client.socket", opened);
  try {
    const connection = await context.run(true, connect);
    void connection.closed().then(end, end);
    return connection;
  } catch (error) {
    end();
    throw error;
  }
}

/** The socket gives its reader a bounded number of bytes in each turn, and reads no more meanwhile. It is destroyed by a line without an end. */
export function guardSocket(socket: Socket): void {
  const { push, _read: read } = socket;
  const lines = new Lines();
  let held: Buffer[] = [];
  let left = turnBytes;
  let linesLeft = turnLines;
  let scheduled = false;
  let wanted = false;
  let ended = false;

  const later = () => {
    if (scheduled) return;
    scheduled = true;
    setImmediate(next);
  };
  const next = () => {
    scheduled = false;
    left = turnBytes;
    linesLeft = turnLines;
    give();
    if (held.length > 0 || left < turnBytes) later();
    if (held.length > 0) return;
    if (ended) {
      push.call(socket, null);
      socket.read(0);
    } else if (wanted) {
      wanted = false;
      read.call(socket, turnBytes);
    }
  };
  /** Returns what `push` returned last. */
  const give = (): boolean => {
    let more = true;
    while (held.length > 0 && left > 0 && linesLeft > 0 && !socket.destroyed) {
      const [bytes] = held as [Buffer];
      const slice = bytes.subarray(0, Math.min(left, endOfLines(bytes)));
      left -= slice.length;
      if (slice.length === bytes.length) held.shift();
      else held[0] = bytes.subarray(slice.length);
      more = push.call(socket, slice);
    }
    if (socket.destroyed) held = [];
    return more;
  };
  /** Counts the lines that are left for this turn, and returns where the last of them ends. */
  const endOfLines = (bytes: Buffer): number => {
    for (let at = bytes.indexOf(newline); at >= 0 && at < left; at = bytes.indexOf(newline, at + 1)) if (--linesLeft === 0) return at + 1;
    return bytes.length;
  };
  socket.push = (bytes: Buffer | null) => {
    if (bytes === null) {
      ended = true;
      if (held.length > 0) return false;
      return push.call(socket, null);
    }
    const fault = lines.fault(bytes);
    if (fault !== undefined) {
      held = [];
      socket.destroy(new Error(`The NATS server sent ${fault}.`));
      return false;
    }
    held.push(bytes);
    const more = give();
    later();
    return more && held.length === 0;
  };
  socket._read = (size: number) => {
    if (held.length > 0) wanted = true;
    else read.call(socket, size);
  };
}

const carriageReturn = 0x0d;
const newline = 0x0a;

/** Finds the ends of lines, and passes over the payloads of messages. */
class Lines {
  /** The line that has begun. */
  #begun: Buffer[] = [];
  #length = 0;
  /** The bytes of the payload that follow. */
  #payload = 0;

  fault(bytes: Buffer): string | undefined {
    let at = 0;
    while (at < bytes.length) {
      const skipped = Math.min(this.#payload, bytes.length - at);
      this.#payload -= skipped;
      at += skipped;
      if (at === bytes.length) return undefined;
      const end = bytes.indexOf(newline, at);
      const piece = bytes.subarray(at, end < 0 ? bytes.length : end);
      this.#begun.push(piece);
      this.#length += piece.length;
      if (this.#length > lineBytesMax) return `a line of more than ${lineBytesMax} bytes`;
      if (end < 0) return undefined;
      this.#payload = payloadOf(this.#begun.length === 1 ? piece : Buffer.concat(this.#begun));
      this.#begun = [];
      this.#length = 0;
      at = end + 1;
    }
    return undefined;
  }
}

/** `MSG <subject> <sid> [reply] <bytes>` and `HMSG ... <bytes>` are followed by this many bytes and the end of a line. */
function payloadOf(line: Buffer): number {
  const first = line[0] as number | undefined;
  // M and H, in both cases.
  if (first !== 0x4d && first !== 0x6d && first !== 0x48 && first !== 0x68) return 0;
  const text = line.toString("latin1", 0, line.at(-1) === carriageReturn ? line.length - 1 : line.length).trimEnd();
  const bytes = Number(text.slice(text.lastIndexOf(" ") + 1));
  // The client refuses a size that is none.
  return Number.isSafeInteger(bytes) && bytes >= 0 ? bytes + 2 : 0;
}
