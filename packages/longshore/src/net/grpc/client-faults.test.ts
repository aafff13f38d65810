// The client with servers that misbehave, and with servers that close or restart.

import { createServer as createHttp } from "node:http";
import { constants, createServer as createHttp2, type ServerHttp2Stream } from "node:http2";
import { createServer, type Socket } from "node:net";
import { gzipSync } from "node:zlib";
import { describe, expect, it, onTestFinished } from "vitest";
import { channelTo, Echo, startGrpc, startRelay, Text } from "../../../test/support/grpc.ts";
import { answerWith, grpcType, handMade, listening, respondWith, textFrame } from "../../../test/support/hand-made-grpc.ts";
import { latch } from "../../../test/support/http.ts";
import { until } from "../../../test/support/until.ts";
import { TestClock } from "../../testing/clock.ts";
import { frameOf } from "./frame.ts";
import { serverStream, unary } from "./service.ts";
import { GrpcCode } from "./status.ts";

const echo = unary(Echo.Say, "server.health", (request) => request);

describe("a server that", () => {
  it("cannot be reached is named, and is tried again later each time", async () => {
    const clock = new TestClock();
    const target = await listening(createServer());
    const gone = await startGrpc([echo]);
    await gone.crash();
    expect(target).not.toBe(gone.target);
    const channel = channelTo(gone.target, { clock, random: () => 0.5 });
    const startedMs = clock.now();
    const waits: number[] = [];
    for (let index = 0; index < 3; index++) {
      const call = channel.unary(Echo.Say, {});
      const expectation = expect(call).rejects.toMatchObject({
        code: 14,
        message: expect.stringContaining(`Cannot reach ${gone.target}: `),
      });
      if (index > 0) {
        await clock.armed(10_000, 1);
        const nextMs = clock.nextAtMs as number;
        waits.push(nextMs - clock.now());
        await clock.advance(nextMs - clock.now());
      }
      await expectation;
    }
    expect(waits).toEqual([100, 160]);
    expect(clock.now() - startedMs).toBe(260);
  });

  it("comes back gets calls again", async () => {
    const first = await startGrpc([echo]);
    const channel = channelTo(first.target, { random: () => 0 });
    await channel.unary(Echo.Say, { text: "one" });
    await first.crash();
    await expect(channel.unary(Echo.Say, { text: "two" })).rejects.toMatchObject({ code: 14 });
    await startGrpc([echo], { port: first.port });
    expect(await channel.unary(Echo.Say, { text: "three" })).toMatchObject({ text: "three" });
  });

  it("breaks off in the middle of calls fails them as unavailable", async () => {
    const begun = latch();
    const { target, crash } = await startGrpc([
      unary(Echo.Say, "server.health", () => {
        begun.open();
        return new Promise(() => {});
      }),
      serverStream(Echo.Count, "server.health", () => {}),
    ]);
    const channel = channelTo(target);
    const opened = latch();
    const reading = channel.serverStream(Echo.Count, {}, { opened: () => opened.open() }).next();
    const call = channel.unary(Echo.Say, {});
    await Promise.all([begun.opened, opened.opened]);
    const expectations = [expect(call).rejects.toMatchObject({ code: 14 }), expect(reading).rejects.toMatchObject({ code: 14 })];
    await crash();
    await Promise.all(expectations);
  });

  it("closes gracefully keeps its open calls, and new calls go to the next server", async () => {
    const begun = latch();
    const finish = latch<{ text: string }>();
    const first = await startGrpc([
      unary(Echo.Say, "server.health", () => {
        begun.open();
        return finish.opened;
      }),
    ]);
    const channel = channelTo(first.target);
    const old = channel.unary(Echo.Say, {});
    await begun.opened;
    first.grpc.drain();
    finish.open({ text: "from the first" });
    expect(await old).toMatchObject({ text: "from the first" });
    await until(() => first.sockets.size === 0);
    await first.crash();
    await startGrpc([unary(Echo.Say, "server.health", () => ({ text: "from the second" }))], { port: first.port });
    expect(await channel.unary(Echo.Say, {})).toMatchObject({ text: "from the second" });
  });

  it("refuses a call before it has seen it gets the call again", async () => {
    const target = await handMade((stream, count) => {
      if (count <= 2) stream.close(constants.NGHTTP2_REFUSED_STREAM);
      else answerWith(stream, textFrame(`call ${count}`));
    });
    expect(await channelTo(target).unary(Echo.Say, {})).toMatchObject({ text: "call 3" });
  });

  it("refuses a call each time gets it only a few times", async () => {
    let count = 0;
    const target = await handMade((stream) => {
      count++;
      stream.close(constants.NGHTTP2_REFUSED_STREAM);
    });
    await expect(channelTo(target).unary(Echo.Say, {})).rejects.toMatchObject({ code: 14 });
    expect(count).toBe(4);
  });

  const resets: [code: number, expected: GrpcCode][] = [
    [constants.NGHTTP2_INTERNAL_ERROR, GrpcCode.INTERNAL],
    [constants.NGHTTP2_CANCEL, GrpcCode.CANCELLED],
    [constants.NGHTTP2_ENHANCE_YOUR_CALM, GrpcCode.RESOURCE_EXHAUSTED],
    [constants.NGHTTP2_INADEQUATE_SECURITY, GrpcCode.PERMISSION_DENIED],
  ];
  it.each(resets)("resets a call with %i gives the code %i", async (code, expected) => {
    const target = await handMade((stream) => stream.close(code));
    await expect(channelTo(target).unary(Echo.Say, {})).rejects.toMatchObject({ code: expected });
  });

  const misfits: [name: string, answer: (stream: ServerHttp2Stream) => void, code: GrpcCode, message: string][] = [
    ["answers without a message", (stream) => answerWith(stream, Buffer.alloc(0)), GrpcCode.UNIMPLEMENTED, "no message, expected one"],
    [
      "answers twice",
      (stream) => answerWith(stream, Buffer.concat([textFrame("a"), textFrame("b")])),
      GrpcCode.UNIMPLEMENTED,
      "2 messages or more, expected one",
    ],
    [
      "stops in a message",
      (stream) => answerWith(stream, textFrame("abc").subarray(0, 7)),
      GrpcCode.INTERNAL,
      "in the middle of a message",
    ],
    [
      "sends what is no message",
      (stream) => answerWith(stream, frameOf(Buffer.from([0x0a, 5]))),
      GrpcCode.INTERNAL,
      "Text.text: the input ends early",
    ],
    ["sends no status", (stream) => answerWith(stream, textFrame("a"), { "x-odd": "1" }), GrpcCode.UNKNOWN, "without a status"],
    ["answers with HTML", respondWith({ ":status": 200, "content-type": "text/html" }), GrpcCode.UNKNOWN, "text/html"],
    ["answers 503", respondWith({ ":status": 503 }), GrpcCode.UNAVAILABLE, "HTTP status 503"],
    ["answers 401", respondWith({ ":status": 401 }), GrpcCode.UNAUTHENTICATED, "HTTP status 401"],
    ["answers 500", respondWith({ ":status": 500 }), GrpcCode.UNKNOWN, "HTTP status 500"],
    [
      "packs in its own way",
      (stream) => answerWith(stream, textFrame("a"), undefined, { "grpc-encoding": "br" }),
      GrpcCode.UNIMPLEMENTED,
      '"br"',
    ],
  ];
  it.each(misfits)("%s is reported as a failure", async (_name, answer, code, message) => {
    const target = await handMade(answer);
    await expect(channelTo(target).unary(Echo.Say, {})).rejects.toMatchObject({ code, message: expect.stringContaining(message) });
  });

  it("compresses its responses with gzip is understood", async () => {
    const packed = frameOf(gzipSync(Text.encode({ text: "packed" })));
    packed[0] = 1;
    const target = await handMade((stream) => answerWith(stream, packed, undefined, { "grpc-encoding": "gzip" }));
    expect(await channelTo(target).unary(Echo.Say, {})).toMatchObject({ text: "packed" });
  });

  it("accepts only HTTP/1.1 is detected when connecting", async () => {
    const target = await listening(createHttp((_request, response) => response.end("hello")));
    await expect(channelTo(target).unary(Echo.Say, {})).rejects.toMatchObject({
      code: 14,
      message: expect.stringContaining("Cannot reach"),
    });
  });

  it("accepts and sends nothing is disconnected", async () => {
    const clock = new TestClock();
    const target = await listening(createServer((socket) => onTestFinished(() => void socket.destroy())));
    const call = channelTo(target, { clock, connectMs: 3_000 }).unary(Echo.Say, {});
    const expectation = expect(call).rejects.toMatchObject({ code: 14, message: expect.stringContaining("no answer within 3000 ms") });
    await clock.advance(3_000);
    await expectation;
  });

  it("disappears silently is detected by pings while calls are open", async () => {
    const clock = new TestClock();
    const { port } = await startGrpc([serverStream(Echo.Count, "server.health", () => {})]);
    const relay = await startRelay(port);
    const opened = latch();
    const channel = channelTo(relay.target, { clock, pingMs: 1_000, pingTimeoutMs: 500 });
    const reading = channel.serverStream(Echo.Count, {}, { opened: () => opened.open() }).next();
    await opened.opened;
    await clock.advance(1_000);
    await until(() => clock.nextAtMs === clock.now() + 1_000);
    relay.cut();
    const expectation = expect(reading).rejects.toMatchObject({ code: 14, message: "The server has not answered a ping within 500 ms." });
    await clock.advance(1_500);
    await expectation;
  });

  it("complains about too many pings is pinged half as often on the next connection", async () => {
    const clock = new TestClock();
    const sockets: Socket[] = [];
    const server = createHttp2();
    server.on("sessionError", () => {});
    server.on("connection", (socket: Socket) => sockets.push(socket));
    server.on("session", (session) => onTestFinished(() => session.destroy()));
    server.on("stream", (stream, headers) => {
      stream.on("error", () => {});
      stream.resume();
      if (headers[":path"] === Echo.Say.path) stream.session?.goaway(constants.NGHTTP2_ENHANCE_YOUR_CALM, 0, Buffer.from("too_many_pings"));
      else stream.respond(grpcType);
    });
    const channel = channelTo(await listening(server), { clock, pingMs: 1_000 });
    await expect(channel.unary(Echo.Say, {})).rejects.toMatchObject({ code: 14 });
    await until(() => clock.pending === 0);
    const opened = latch();
    const reading = channel.serverStream(Echo.Count, {}, { opened: () => opened.open() }).next();
    reading.catch(() => {});
    await opened.opened;
    expect(clock.nextAtMs).toBe(clock.now() + 2_000);
    expect(sockets.length).toBe(2);
  });
});
