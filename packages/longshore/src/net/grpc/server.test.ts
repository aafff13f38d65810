// The server, with a client that sends anything.

import { constants } from "node:http2";
import { connect } from "node:net";
import { gzipSync } from "node:zlib";
import { describe, expect, it } from "vitest";
import { answerOf, channelTo, Echo, rawSession, roundTrip, startGrpc, Text } from "../../../test/support/grpc.ts";
import { latch } from "../../../test/support/http.ts";
import { rawCall, rawUnary, say, textFrame } from "../../../test/support/raw-grpc.ts";
import { until } from "../../../test/support/until.ts";
import { callerWith } from "../../core/actions.ts";
import { ByteBudget } from "../../core/byte-budget.ts";
import { TestClock } from "../../testing/clock.ts";
import { frameOf } from "./frame.ts";
import { type GrpcCall, type GrpcSink, serverStream } from "./service.ts";
import { detailOf, ErrorInfo, GrpcCode, GrpcError } from "./status.ts";

describe("a call", () => {
  it("gets headers, one message and trailers", async () => {
    const { port, ended } = await startGrpc([say((text) => `you said ${text}`)]);
    const { head, trailers, body } = await rawUnary(port, textFrame("hello"));
    expect(head).toMatchObject({ ":status": 200, "content-type": "application/grpc+proto", "grpc-accept-encoding": "identity,gzip" });
    expect(Text.decode(body.subarray(5)).text).toBe("you said hello");
    expect(trailers).toMatchObject({ "grpc-status": "0" });
    expect(ended).toEqual([[Echo.Say.path, GrpcCode.OK]]);
  });

  it("that fails gets only trailers, with the details", async () => {
    const { port } = await startGrpc([
      say(() => {
        throw new GrpcError(GrpcCode.NOT_FOUND, "größe 100%", [detailOf(ErrorInfo, { reason: "GONE" })]);
      }),
    ]);
    const { head, trailers, body } = await rawUnary(port, textFrame("x"));
    expect(head).toMatchObject({ ":status": 200, "grpc-status": "5", "grpc-message": "gr%C3%B6%C3%9Fe 100%25" });
    expect(Buffer.from(head["grpc-status-details-bin"] as string, "base64").toString()).toContain("google.rpc.ErrorInfo");
    expect([trailers, body.length]).toEqual([{}, 0]);
  });

  it("knows its metadata, its caller and its deadline", async () => {
    const clock = new TestClock();
    let seen: GrpcCall | undefined;
    const { port } = await startGrpc(
      [
        say((text, call) => {
          seen = call;
          return text;
        }),
      ],
      {
        clock,
        host: {
          admit(call) {
            call.caller = callerWith("ci", ["worker"]);
            return undefined;
          },
        },
      },
    );
    await rawUnary(port, textFrame("x"), { "x-trace": "abc", "x-data-bin": "AAE=", "grpc-timeout": "5S" });
    expect(seen?.metadata).toMatchObject({ "x-trace": "abc", "x-data-bin": "AAE=" });
    expect(Object.keys(seen?.metadata ?? {}).filter((name) => name.startsWith(":"))).toEqual([]);
    expect(seen?.caller.name).toBe("ci");
    expect(seen?.peer).toMatch(/^127\.0\.0\.1:\d+$/);
    expect(seen?.authority).toBe(`127.0.0.1:${port}`);
    expect(seen?.deadline).toBe(clock.now() + 5_000);
    // Its deadline timer is gone. The remaining timers are for the connection, and for requests that do not progress.
    expect(clock.pending).toBe(3);
  });

  it("may arrive in chunks of any size", async () => {
    const { port } = await startGrpc([say()]);
    const { stream, answer } = rawCall(port, Echo.Say.path);
    for (const byte of textFrame("byte by byte")) stream.write(Buffer.from([byte]));
    stream.end();
    expect(Text.decode((await answer).body.subarray(5)).text).toBe("byte by byte");
  });

  it("may have its message compressed with gzip", async () => {
    const { port } = await startGrpc([say()]);
    const packed = frameOf(gzipSync(Text.encode({ text: "packed" })));
    packed[0] = 1;
    const { body } = await rawUnary(port, packed, { "grpc-encoding": "gzip" });
    expect(Text.decode(body.subarray(5)).text).toBe("packed");
  });

  it("runs at the same time as many others on one connection", async () => {
    const { target } = await startGrpc([say()]);
    const channel = channelTo(target);
    const texts = Array.from({ length: 300 }, (_, index) => `call ${index}`);
    const answers = await Promise.all(texts.map((text) => channel.unary(Echo.Say, { text })));
    expect(answers.map(({ text }) => text)).toEqual(texts);
  });
});

describe("a call is refused", () => {
  const refusals: [name: string, body: Buffer, head: Record<string, string>, code: GrpcCode, message: string][] = [
    ["without a message", Buffer.alloc(0), {}, GrpcCode.UNIMPLEMENTED, "no message"],
    ["with two messages", Buffer.concat([textFrame("a"), textFrame("b")]), {}, GrpcCode.UNIMPLEMENTED, "more than one message"],
    ["when its body ends half way", textFrame("hello").subarray(0, 8), {}, GrpcCode.INTERNAL, "in the middle of a message"],
    ["with a message that is none", frameOf(Buffer.from("0a05", "hex")), {}, GrpcCode.INVALID_ARGUMENT, "Text.text: the input ends early"],
    ["with an unknown flag", Buffer.from([9, 0, 0, 0, 0]), {}, GrpcCode.INTERNAL, "begins with the byte 9"],
    ["with an unknown encoding", textFrame("x"), { "grpc-encoding": "snappy" }, GrpcCode.UNIMPLEMENTED, '"snappy" is not supported'],
    ["with a bad timeout", textFrame("x"), { "grpc-timeout": "soon" }, GrpcCode.INVALID_ARGUMENT, 'grpc-timeout is "soon"'],
    ["with a message beyond the limit", textFrame("x".repeat(2_000)), {}, GrpcCode.RESOURCE_EXHAUSTED, "the limit is 1000"],
  ];
  for (const [name, body, head, code, message] of refusals) {
    it(name, async () => {
      const { port } = await startGrpc([say()], { limits: { messageBytes: 1_000 } });
      const answer = await rawUnary(port, body, head);
      expect(answer.head).toMatchObject({ ":status": 200, "grpc-status": String(code) });
      expect(decodeURIComponent(answer.head["grpc-message"] as string)).toContain(message);
    });
  }

  it("for a method that does not exist, and the connection continues", async () => {
    const { target, ended } = await startGrpc([say()]);
    const channel = channelTo(target);
    await expect(channel.unary(Echo.Unknown, {})).rejects.toMatchObject({ code: 12, message: "There is no method /test.Echo/Unknown." });
    expect(await channel.unary(Echo.Say, { text: "still here" })).toMatchObject({ text: "still here" });
    expect(ended.map(([, code]) => code)).toEqual([12, 0]);
  });

  it("by the host before its body is read", async () => {
    const refusal = new GrpcError(GrpcCode.UNAUTHENTICATED, "no token");
    const { port } = await startGrpc([say()], { host: { admit: () => refusal } });
    const { stream, answer } = rawCall(port, Echo.Say.path);
    // Nothing of the body has been sent, and more is announced.
    stream.write(Buffer.from([0, 0, 0, 255, 255]));
    expect((await answer).head).toMatchObject({ "grpc-status": "16" });
    expect(stream.rstCode).toBe(constants.NGHTTP2_NO_ERROR);
  });

  it("when the answer is larger than the limit", async () => {
    const { target } = await startGrpc([say(() => "x".repeat(2_000))], { limits: { messageBytes: 1_000 } });
    await expect(channelTo(target).unary(Echo.Say, {})).rejects.toMatchObject({ code: 8 });
  });

  it("when the requests that are being received are too large together", async () => {
    const { port, grpc } = await startGrpc([say()], { receiving: new ByteBudget(1_000) });
    const first = rawCall(port, Echo.Say.path);
    first.stream.write(textFrame("x".repeat(900)).subarray(0, 800));
    await until(() => grpc.receiving.held === 800);
    const second = await rawUnary(port, textFrame("y".repeat(300)));
    expect(second.head).toMatchObject({ "grpc-status": "8" });
    first.stream.end(textFrame("x".repeat(900)).subarray(800));
    expect((await first.answer).trailers).toMatchObject({ "grpc-status": "0" });
    expect(grpc.receiving.held).toBe(0);
  });

  it("when its request does not arrive in time", async () => {
    const clock = new TestClock();
    const { port, grpc } = await startGrpc([say()], { clock, limits: { requestMs: 10_000, pingMs: 4_000 } });
    const { session, stream, answer } = rawCall(port, Echo.Say.path);
    stream.write(textFrame("hello").subarray(0, 7));
    await until(() => grpc.receiving.held === 7);
    for (let waited = 0; waited <= 10_000; waited += 4_000) {
      await clock.advance(4_000);
      // The answer to the server's ping is sent before this request's end.
      await roundTrip(session);
    }
    expect((await answer).head).toMatchObject({ "grpc-status": "4" });
    expect(grpc.receiving.held).toBe(0);
  });

  it("with the host's text for an unexpected error", async () => {
    const explain = () => new GrpcError(GrpcCode.INTERNAL, "see the log");
    const { target } = await startGrpc([say(() => Promise.reject(new TypeError("secret")))], { host: { explain } });
    await expect(channelTo(target).unary(Echo.Say, {})).rejects.toMatchObject({ code: 13, message: "see the log" });
  });
});

describe("a request that is not gRPC", () => {
  it("gets an explanation in plain text", async () => {
    const refused: number[] = [];
    const { port } = await startGrpc([say()], { host: { refusedPlain: (status) => refused.push(status) } });
    const session = rawSession(port);
    const get = await answerOf(session.request({ ":path": "/health" }));
    expect(get.head[":status"]).toBe(415);
    expect(get.body.toString()).toContain("Over HTTP/2 this server speaks gRPC only");
    const json = await answerOf(session.request({ ":path": Echo.Say.path, ":method": "POST", "content-type": "application/grpc+json" }));
    expect(json.head[":status"]).toBe(415);
    const put = await answerOf(session.request({ ":path": Echo.Say.path, ":method": "PUT", "content-type": "application/grpc" }));
    expect(put.head[":status"]).toBe(405);
    expect(refused).toEqual([415, 415, 405]);
  });

  it("is disconnected when its bytes are not HTTP/2", async () => {
    const { port, sockets } = await startGrpc([say()]);
    const socket = connect(port, "127.0.0.1");
    socket.on("error", () => {});
    socket.resume();
    socket.write("GET / HTTP/1.1\r\nhost: x\r\n\r\n".repeat(20));
    await new Promise((resolve) => socket.once("close", resolve));
    await until(() => sockets.size === 0);
  });
});

describe("a stream", () => {
  const counting = (
    handle: (sink: GrpcSink<{ text?: string; count?: number; blob?: Uint8Array }>, call: GrpcCall) => void | Promise<void>,
  ) => serverStream(Echo.Count, "server.health", (_request, call, sink) => handle(sink, call));

  it("sends messages one after the other, and ends when its promise resolves", async () => {
    const { port } = await startGrpc([
      counting(async (sink) => {
        for (let count = 1; count <= 3; count++) await sink.send({ count });
      }),
    ]);
    const { trailers, body } = await rawUnary(port, textFrame("x"), {}, Echo.Count.path);
    expect(body.length).toBe(3 * 7);
    expect(trailers).toMatchObject({ "grpc-status": "0" });
  });

  it("stays open without a promise until it is ended, and reports at once that it is open", async () => {
    const sinks = latch<GrpcSink<{ count?: number }>>();
    const { port } = await startGrpc([counting((sink) => sinks.open(sink))]);
    const { stream, answer } = rawCall(port, Echo.Count.path);
    stream.end(textFrame("x"));
    await new Promise((resolve) => stream.once("response", resolve));
    const sink = await sinks.opened;
    expect(sink.idle).toBe(true);
    await sink.send({ count: 7 });
    sink.end();
    sink.end(new GrpcError(GrpcCode.ABORTED, "too late"));
    await sink.send({ count: 8 });
    const { trailers, body } = await answer;
    expect(Text.decode(body.subarray(5)).count).toBe(7);
    expect(trailers).toMatchObject({ "grpc-status": "0" });
  });

  it("may fail after messages, at once, or later", async () => {
    const fail = () => {
      throw new GrpcError(GrpcCode.NOT_FOUND, "no such queue");
    };
    const { port } = await startGrpc([
      counting(async (sink) => {
        await sink.send({ count: 1 });
        fail();
      }),
      { ...counting(fail), path: "/test.Echo/AtOnce" },
      { ...counting(async () => fail()), path: "/test.Echo/Later" },
    ]);
    const after = await rawUnary(port, textFrame("x"), {}, Echo.Count.path);
    expect([after.body.length, after.trailers["grpc-status"], after.trailers["grpc-message"]]).toEqual([7, "5", "no such queue"]);
    expect((await rawUnary(port, textFrame("x"), {}, "/test.Echo/AtOnce")).head).toMatchObject({ "grpc-status": "5" });
    expect((await rawUnary(port, textFrame("x"), {}, "/test.Echo/Later")).head).toMatchObject({ "grpc-status": "5" });
  });

  it("waits for a slow reader instead of filling memory", async () => {
    let sent = 0;
    const { port, open } = await startGrpc([
      counting(async (sink, call) => {
        const blob = new Uint8Array(10_000);
        while (!call.gone.aborted) {
          await sink.send({ blob });
          sent++;
        }
      }),
    ]);
    const { session, stream } = rawCall(port, Echo.Count.path);
    stream.pause();
    stream.end(textFrame("x"));
    await new Promise((resolve) => stream.once("response", resolve));
    await until(() => sent > 0);
    // Round trips on the same connection: the server has had every chance to send more.
    let before = -1;
    while (sent !== before) {
      before = sent;
      for (let index = 0; index < 5; index++) await roundTrip(session);
    }
    expect(sent).toBeLessThan(20);
    stream.close(constants.NGHTTP2_CANCEL);
    await until(() => open.size === 0);
  });

  it("is ended when its handler continues to send although the reader does not read", async () => {
    const { port, ended } = await startGrpc(
      [
        counting((sink) => {
          for (let index = 0; index < 100; index++) void sink.send({ blob: new Uint8Array(10_000) });
        }),
      ],
      { limits: { messageBytes: 200_000 } },
    );
    const { stream, answer } = rawCall(port, Echo.Count.path);
    stream.end(textFrame("x"));
    expect((await answer).trailers).toMatchObject({ "grpc-status": "8" });
    expect(ended).toEqual([[Echo.Count.path, GrpcCode.RESOURCE_EXHAUSTED]]);
  });

  it("reports to its handler a message that cannot be sent, and continues", async () => {
    const { port } = await startGrpc([
      counting(async (sink) => {
        await expect(sink.send({ count: -1 })).rejects.toMatchObject({ code: "LONGSHORE_BAD_OUTPUT" });
        await sink.send({ count: 1 });
      }),
    ]);
    const { body, trailers } = await rawUnary(port, textFrame("x"), {}, Echo.Count.path);
    expect([body.length, trailers["grpc-status"]]).toEqual([7, "0"]);
  });
});

it("two methods with one path are refused", async () => {
  await expect(startGrpc([say(), say()])).rejects.toThrow("Two gRPC methods have one path.");
});
