// Connections of the server: clients that disconnect, a graceful close, and idle connections.

import { constants } from "node:http2";
import { describe, expect, it } from "vitest";
import { answerOf, Echo, grpcHead, rawSession, roundTrip, startGrpc, startRelay } from "../../../test/support/grpc.ts";
import { latch } from "../../../test/support/http.ts";
import { rawCall, say, textFrame } from "../../../test/support/raw-grpc.ts";
import { until } from "../../../test/support/until.ts";
import { TestClock } from "../../testing/clock.ts";
import { type GrpcCall, serverStream } from "./service.ts";
import { GrpcCode } from "./status.ts";

describe("a caller may disconnect", () => {
  function waiting() {
    const begun = latch<GrpcCall>();
    const left = latch();
    const methods = [
      say((_text, call) => {
        begun.open(call);
        return new Promise((_resolve, reject) =>
          call.gone.addEventListener("abort", () => {
            left.open();
            reject(new Error("nobody waits"));
          }),
        );
      }),
      serverStream(Echo.Count, "server.health", (_request, call) => {
        begun.open(call);
        call.gone.addEventListener("abort", () => left.open());
      }),
    ];
    return { begun, left, methods };
  }

  for (const path of [Echo.Say.path, Echo.Count.path]) {
    it(`by cancelling ${path}`, async () => {
      const { begun, left, methods } = waiting();
      const { port, ended } = await startGrpc(methods);
      const { stream } = rawCall(port, path);
      stream.end(textFrame("x"));
      await begun.opened;
      stream.close(constants.NGHTTP2_CANCEL);
      await left.opened;
      await until(() => ended.length === 1);
      expect(ended).toEqual([[path, GrpcCode.CANCELLED]]);
    });

    it(`by ending its side of the connection during ${path}`, async () => {
      const { begun, left, methods } = waiting();
      const { port, sockets } = await startGrpc(methods);
      const { session, stream } = rawCall(port, path);
      stream.end(textFrame("x"));
      await begun.opened;
      session.tcp.end();
      await left.opened;
      await until(() => sockets.size === 0);
    });
  }

  it("and a handler that checks later is notified", async () => {
    const begun = latch<GrpcCall>();
    const { port, open } = await startGrpc([
      say((_text, call) => {
        begun.open(call);
        return new Promise(() => {});
      }),
    ]);
    const { stream } = rawCall(port, Echo.Say.path);
    stream.end(textFrame("x"));
    const call = await begun.opened;
    stream.close(constants.NGHTTP2_CANCEL);
    await until(() => open.size === 0);
    expect(call.gone.aborted).toBe(true);
  });

  it("when its deadline has passed, and a later response of the handler is dropped", async () => {
    const clock = new TestClock();
    const { begun, left, methods } = waiting();
    const { port, ended } = await startGrpc(methods, { clock });
    const { stream, answer } = rawCall(port, Echo.Say.path, { "grpc-timeout": "200m" });
    stream.end(textFrame("x"));
    await begun.opened;
    await clock.advance(200);
    await left.opened;
    expect((await answer).head).toMatchObject({ "grpc-status": "4" });
    expect(ended).toEqual([[Echo.Say.path, GrpcCode.DEADLINE_EXCEEDED]]);
  });

  it("silently, which pings detect", async () => {
    const clock = new TestClock();
    const { begun, left, methods } = waiting();
    const { port, sockets } = await startGrpc(methods, { clock, limits: { pingMs: 1_000, pingTimeoutMs: 500 } });
    const relay = await startRelay(port);
    const { stream } = rawCall(relay.port, Echo.Count.path);
    stream.end(textFrame("x"));
    await begun.opened;
    // A live peer answers the pings, and its connection is kept.
    await clock.advance(1_000);
    await until(() => clock.nextAtMs === clock.now() + 1_000);
    expect(sockets.size).toBe(1);
    relay.cut();
    await clock.advance(1_000);
    expect(sockets.size).toBe(1);
    await clock.advance(500);
    await left.opened;
    await until(() => sockets.size === 0);
  });
});

describe("a graceful close", () => {
  it("lets calls finish, ends streams as unavailable, and closes the connection after", async () => {
    const begun = latch();
    const finish = latch<string>();
    const { port, grpc, sockets, ended } = await startGrpc([
      say(() => {
        begun.open();
        return finish.opened;
      }),
      serverStream(Echo.Count, "server.health", () => {}),
    ]);
    const session = rawSession(port);
    const goaway = new Promise<number>((resolve) => session.once("goaway", resolve));
    const stream = session.request(grpcHead(Echo.Count.path));
    const streamed = answerOf(stream);
    stream.end(textFrame("x"));
    await new Promise((resolve) => stream.once("response", resolve));
    const call = session.request(grpcHead(Echo.Say.path));
    const answered = answerOf(call);
    call.end(textFrame("x"));
    await begun.opened;

    grpc.drain();
    grpc.drain();
    expect((await streamed).trailers).toMatchObject({ "grpc-status": "14", "grpc-message": "The server is shutting down." });
    expect(await goaway).toBe(constants.NGHTTP2_NO_ERROR);
    expect(sockets.size).toBe(1);
    finish.open("done");
    expect((await answered).trailers).toMatchObject({ "grpc-status": "0" });
    await until(() => sockets.size === 0);
    expect(ended.map(([, code]) => code)).toEqual([14, 0]);
  });

  it("is immediate for connections without calls, and for connections that arrive too late", async () => {
    const { port, grpc, sockets } = await startGrpc([say()]);
    const session = rawSession(port);
    await new Promise((resolve) => session.once("remoteSettings", resolve));
    grpc.drain();
    await until(() => sockets.size === 0);
    const late = rawSession(port);
    await new Promise((resolve) => late.once("close", resolve));
  });
});

describe("a connection", () => {
  it("is closed when it has had no call for a long time, and not during a call", async () => {
    const clock = new TestClock();
    const left = latch();
    const { port, sockets } = await startGrpc(
      [serverStream(Echo.Count, "server.health", (_request, { gone }) => gone.addEventListener("abort", () => left.open()))],
      { clock, limits: { idleMs: 2_500, pingMs: 1_000 } },
    );
    const { session, stream } = rawCall(port, Echo.Count.path);
    stream.end(textFrame("x"));
    await new Promise((resolve) => stream.once("response", resolve));
    const second = async () => {
      await clock.advance(1_000);
      await roundTrip(session);
    };
    for (let seconds = 0; seconds < 5; seconds++) await second();
    expect(sockets.size).toBe(1);
    stream.close(constants.NGHTTP2_CANCEL);
    await left.opened;
    for (let seconds = 0; seconds < 2; seconds++) await second();
    expect(sockets.size).toBe(1);
    const goaway = new Promise((resolve) => session.once("goaway", resolve));
    await clock.advance(1_000);
    expect(await goaway).toBe(constants.NGHTTP2_NO_ERROR);
    await until(() => sockets.size === 0);
  });

  it("is kept when one of its calls fails because of too much metadata", async () => {
    const { port } = await startGrpc([say()]);
    const session = rawSession(port);
    const large = session.request(grpcHead(Echo.Say.path, { "x-large": "x".repeat(40_000) }));
    const refused = answerOf(large);
    large.end(textFrame("x"));
    expect((await refused).head).toMatchObject({ "grpc-status": "8", "grpc-message": expect.stringContaining("bytes of metadata") });
    const small = session.request(grpcHead(Echo.Say.path));
    const answered = answerOf(small);
    small.end(textFrame("x"));
    expect((await answered).trailers["grpc-status"]).toBe("0");
  });
});
