// A gRPC server under test on a free loopback port, without the listener around it. Also raw HTTP/2, for tests of single bytes.

import { type ClientHttp2Session, type ClientHttp2Stream, connect, type IncomingHttpHeaders } from "node:http2";
import { type AddressInfo, createServer, connect as dial, type Socket } from "node:net";
import { onTestFinished } from "vitest";
import { ByteBudget } from "../../src/core/byte-budget.ts";
import { systemClock } from "../../src/core/clock.ts";
import { LongshoreError } from "../../src/core/errors.ts";
import { LoopTurns } from "../../src/core/slices/loop-turns.ts";
import { Stalls } from "../../src/core/stalls.ts";
import { type ChannelOptions, type GrpcChannel, openChannel } from "../../src/net/grpc/client.ts";
import { type GrpcLimits, grpcLimits } from "../../src/net/grpc/limits.ts";
import { type GrpcHost, GrpcServer, type GrpcServerOptions } from "../../src/net/grpc/server.ts";
import type { GrpcMethod } from "../../src/net/grpc/service.ts";
import { GrpcCode, GrpcError } from "../../src/net/grpc/status.ts";
import { httpLimits } from "../../src/net/listener/limits.ts";
import { message, service } from "../../src/net/protobuf/protobuf.ts";
import { until } from "./until.ts";

export const Text = message("Text", { text: [1, "string"], count: [2, "uint32"], blob: [3, "bytes"] });
/** A service to test with. */
export const Echo = service("test.Echo", { Say: [Text, Text], Count: [Text, Text, "stream"], Unknown: [Text, Text] });

export interface TestGrpc {
  readonly port: number;
  readonly target: string;
  readonly grpc: GrpcServer;
  /** Sockets that are open. */
  readonly sockets: ReadonlySet<Socket>;
  /** Calls in progress, and how those that are over ended. */
  readonly open: Set<unknown>;
  readonly ended: [path: string, code: GrpcCode][];
  /** Stops listening and cuts every connection, as a crash does. */
  crash(): Promise<void>;
}

export interface TestGrpcOptions extends Partial<Pick<GrpcServerOptions, "clock" | "receiving" | "sending">> {
  limits?: Partial<GrpcLimits>;
  host?: Partial<GrpcHost>;
  port?: number;
}

export async function startGrpc(methods: readonly GrpcMethod[], options: TestGrpcOptions = {}): Promise<TestGrpc> {
  const open = new Set<unknown>();
  const ended: TestGrpc["ended"] = [];
  const host: GrpcHost = {
    begin(call) {
      open.add(call);
      return (code) => {
        open.delete(call);
        ended.push([call.path, code]);
      };
    },
    admit: () => undefined,
    explain: (error) => {
      const code = error instanceof LongshoreError && error.code === "LONGSHORE_BAD_INPUT" ? GrpcCode.INVALID_ARGUMENT : GrpcCode.INTERNAL;
      return new GrpcError(code, (error as Error).message);
    },
    refusedPlain: () => {},
    ...options.host,
  };
  const { clock = systemClock } = options;
  const large = options.limits?.messageBytes ?? grpcLimits.messageBytes;
  const grpc = new GrpcServer({
    ...{ methods, host, clock },
    receiving: options.receiving ?? new ByteBudget(4 * large),
    sending: options.sending ?? new ByteBudget(4 * large),
    receiveStalls: new Stalls(clock, httpLimits.receiveStallMs),
    sendStalls: new Stalls(clock, httpLimits.sendStallMs),
    turns: new LoopTurns(),
    // Every method takes large messages, unless the test is about those that do not.
    limits: { ...grpcLimits, callBytes: large, openBytes: large, ...options.limits },
  });
  const sockets = new Set<Socket>();
  const server = createServer({ allowHalfOpen: true }, (socket) => {
    sockets.add(socket);
    socket.on("error", () => {});
    socket.once("close", () => sockets.delete(socket));
    grpc.take(socket);
  });
  const crash = () =>
    new Promise<void>((resolve) => {
      server.close(() => resolve());
      for (const socket of sockets) socket.resetAndDestroy();
    });
  await new Promise<void>((resolve) => server.listen(options.port ?? 0, "127.0.0.1", resolve));
  onTestFinished(async () => {
    if (server.listening) await crash();
    // A call that is never notified of its end would be a leak.
    await until(() => open.size === 0);
  });
  const { port } = server.address() as AddressInfo;
  return { port, target: `127.0.0.1:${port}`, grpc, sockets, open, ended, crash };
}

/** A channel that is closed at the end of the test. */
export function channelTo(target: string, options: ChannelOptions = {}): GrpcChannel {
  const channel = openChannel(target, options);
  onTestFinished(() => channel.close());
  return channel;
}

/** A plain HTTP/2 client, for requests that our own client would never send. */
export function rawSession(port: number): ClientHttp2Session & { readonly tcp: Socket } {
  const tcp = dial({ port, host: "127.0.0.1", allowHalfOpen: true });
  const session = connect(`http://127.0.0.1:${port}`, { createConnection: () => tcp });
  session.on("error", () => {});
  onTestFinished(() => session.destroy());
  return Object.assign(session, { tcp });
}

/** Resolves when the client knows how many calls it may have at once; it keeps further ones until others have ended. */
export function settled(session: ClientHttp2Session): Promise<void> {
  return new Promise((resolve) => session.once("remoteSettings", () => resolve()));
}

/** Resolves after a round trip on the connection: whatever was sent before has been read by now. */
export function roundTrip(session: ClientHttp2Session): Promise<void> {
  return new Promise((resolve, reject) => {
    session.ping((error) => (error === null ? resolve() : reject(error)));
  });
}

export interface Relay {
  readonly port: number;
  readonly target: string;
  /** From now on nothing arrives in either direction, and neither side is notified, as when a cable is cut. */
  cut(): void;
  /** New connections are passed on again; those that were cut stay cut. */
  mend(): void;
}

/** A proxy between a client and a server. What the client sends first may be passed on byte by byte. */
export async function startRelay(port: number, { slowBytes = 0 } = {}): Promise<Relay> {
  const sockets = new Set<Socket>();
  let cable = { isCut: false };
  const server = createServer((near) => {
    const own = cable;
    const far = dial({ port, host: "127.0.0.1", noDelay: true });
    let slow = slowBytes;
    let passing = Promise.resolve();
    const pass = async (bytes: Buffer) => {
      const single = Math.min(slow, bytes.length);
      slow -= single;
      for (let at = 0; at < single; at++) {
        await new Promise((resolve) => far.write(bytes.subarray(at, at + 1), resolve));
        await new Promise((resolve) => setImmediate(resolve));
      }
      far.write(bytes.subarray(single));
    };
    for (const [from, to] of [
      [near, far],
      [far, near],
    ] as const) {
      sockets.add(from);
      from.on("error", () => {});
      from.on("data", (bytes) => {
        if (own.isCut) return;
        if (to === far && slowBytes > 0) passing = passing.then(() => pass(bytes));
        else to.write(bytes);
      });
      from.on("close", () => own.isCut || to.destroy());
    }
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  onTestFinished(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  const own = (server.address() as AddressInfo).port;
  return {
    port: own,
    target: `127.0.0.1:${own}`,
    cut() {
      cable.isCut = true;
    },
    mend() {
      cable = { isCut: false };
    },
  };
}

export interface RawAnswer {
  readonly head: IncomingHttpHeaders & { ":status"?: number };
  readonly trailers: IncomingHttpHeaders;
  readonly body: Buffer;
}

export const grpcHead = (path: string, more: Record<string, string> = {}): Record<string, string> => ({
  ":method": "POST",
  ":path": path,
  te: "trailers",
  "content-type": "application/grpc",
  ...more,
});

/** Everything that comes back on a stream, until it closes. */
export function answerOf(stream: ClientHttp2Stream): Promise<RawAnswer> {
  return new Promise((resolve) => {
    let head: RawAnswer["head"] = {};
    let trailers: IncomingHttpHeaders = {};
    const chunks: Buffer[] = [];
    stream.on("response", (headers) => {
      head = headers;
    });
    stream.on("trailers", (headers) => {
      trailers = headers;
    });
    stream.on("data", (chunk: Buffer) => chunks.push(chunk));
    stream.on("error", () => {});
    stream.on("close", () => resolve({ head, trailers, body: Buffer.concat(chunks) }));
  });
}
