// Hands a connection over to another protocol, which its client asks for with `Upgrade` on one path. Without such a path, this is off.
// node:http cannot do this here. With a listener for upgrades, it treats every request that offers one as an upgrade, such as those of
// clients that offer HTTP/2.
//
// The access check does not see these requests: neither the token nor the name in `Host`. The protocol that takes the connection must check
// who is at the other end before it accepts anything else.

import type { IncomingHttpHeaders } from "node:http";
import type { Socket } from "node:net";
import type { Clock } from "../../core/clock.ts";
import type { Connections } from "./connections.ts";
import { headEnd, headShape } from "./direct-request.ts";
import type { HttpLimits } from "./limits.ts";

export interface UpgradeRequest {
  readonly headers: IncomingHttpHeaders;
  /** To be called when the client has proved who it is: then a full listener does not disconnect it. */
  known(): void;
}

export interface UpgradeRoute {
  /** The one path of these requests, without a query. */
  readonly path: string;
  /**
   * Takes over the socket, which has no listeners of ours and stays among the listener's connections: `close` ends it. Nothing was written.
   * `head` are bytes that arrived after the request.
   */
  take(request: UpgradeRequest, socket: Socket, head: Buffer): void;
}

export interface UpgradesOptions {
  route: UpgradeRoute;
  connections: Connections;
  limits: HttpLimits;
  clock: Clock;
  /** Takes a socket whose request asks for no upgrade, or is not in the usual form. */
  handOver(socket: Socket, bytes: Buffer): void;
  /** Called when the headers are not complete in time. */
  tooSlow(socket: Socket): void;
}

export interface Upgrades {
  /** Whether these first bytes of a request are for the path. */
  isFor(bytes: Buffer): boolean;
  /** Takes a socket without listeners of ours, and the bytes it has received. */
  take(socket: Socket, bytes: Buffer): void;
}

export function createUpgrades({ route, connections, limits, clock, handOver, tooSlow }: UpgradesOptions): Upgrades {
  const start = Buffer.from(`GET ${route.path} HTTP/1.1\r\n`, "latin1");

  function decide(socket: Socket, bytes: Buffer, end: number): void {
    const headers = end > limits.headerBytes ? undefined : headersIn(bytes.toString("latin1", 0, end));
    const connection = connections.of(socket);
    // The socket closed after the bytes arrived.
    if (connection === undefined) return;
    if (headers === undefined) return handOver(socket, bytes);
    const known = () => {
      connection.known = true;
    };
    route.take({ headers, known }, socket, bytes.subarray(end + headEnd.length));
  }

  /** The headers come in several pieces. */
  function collect(socket: Socket, first: Buffer): void {
    let bytes = first;
    const release = () => {
      cancel();
      socket.removeListener("data", onData);
      socket.removeListener("end", onEnd);
      socket.removeListener("close", release);
      // A socket that fails meanwhile closes next; without a listener its error would end the process.
      socket.removeListener("error", onError);
    };
    const onError = () => undefined;
    const onEnd = () => void socket.end();
    const onData = (more: Buffer) => {
      bytes = Buffer.concat([bytes, more]);
      const end = bytes.indexOf(headEnd);
      if (end < 0 && bytes.length <= limits.headerBytes) return;
      release();
      if (end < 0) handOver(socket, bytes);
      else decide(socket, bytes, end);
    };
    const cancel = clock.at(clock.now() + limits.headersMs, () => {
      release();
      tooSlow(socket);
    });
    socket.on("data", onData);
    socket.on("end", onEnd);
    socket.on("error", onError);
    socket.once("close", release);
  }

  return {
    isFor: (bytes) => bytes[0] === start[0] && bytes.length >= start.length && bytes.compare(start, 0, start.length, 0, start.length) === 0,
    take(socket, bytes) {
      const end = bytes.indexOf(headEnd);
      if (end < 0) collect(socket, bytes);
      else decide(socket, bytes, end);
    },
  };
}

/** Headers of a message with a body. A request for an upgrade has no body. */
const framing = ["content-length", "transfer-encoding"];

/** Returns undefined when these lines ask for no upgrade, or are not in the usual form. */
function headersIn(head: string): IncomingHttpHeaders | undefined {
  if (!headShape.test(head)) return undefined;
  const headers: IncomingHttpHeaders = {};
  for (const line of head.split("\r\n").slice(1)) {
    const colon = line.indexOf(":");
    const name = line.slice(0, colon).toLowerCase();
    if (headers[name] !== undefined || framing.includes(name)) return undefined;
    headers[name] = line.slice(colon + 1).trim();
  }
  const asked = headers.connection?.split(",").some((option) => option.trim().toLowerCase() === "upgrade");
  return asked && headers.upgrade !== undefined ? headers : undefined;
}
