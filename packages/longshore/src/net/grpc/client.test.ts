// The client, with our own server and with servers that misbehave.

import { createServer } from "node:net";
import { describe, expect, expectTypeOf, it, onTestFinished, vi } from "vitest";
import { channelTo, Echo, startGrpc } from "../../../test/support/grpc.ts";
import { answerWith, handMade, listening, textFrame } from "../../../test/support/hand-made-grpc.ts";
import { latch } from "../../../test/support/http.ts";
import { until } from "../../../test/support/until.ts";
import { TestClock } from "../../testing/clock.ts";
import { openChannel } from "./client.ts";
import { type GrpcCall, type GrpcSink, serverStream, unary } from "./service.ts";
import { detailOf, ErrorInfo, findDetail, GrpcCode, GrpcError } from "./status.ts";
import { parseTarget } from "./target.ts";

const echo = unary(Echo.Say, "server.health", (request) => request);

describe("a call", () => {
  it("gets a response, with types from its tables", async () => {
    const { target } = await startGrpc([echo]);
    const answer = await channelTo(target).unary(Echo.Say, { text: "hällo", count: 3, blob: new Uint8Array([1, 2]) });
    expect(answer).toEqual({ text: "hällo", count: 3, blob: new Uint8Array([1, 2]) });
    expectTypeOf(answer).toEqualTypeOf<{ text: string; count: number; blob: Uint8Array }>();
  });

  it("sends and receives messages of many megabytes", async () => {
    const { target } = await startGrpc([echo]);
    const blob = Buffer.alloc(16_000_000, 7);
    const answer = await channelTo(target).unary(Echo.Say, { blob });
    expect(Buffer.compare(answer.blob, blob)).toBe(0);
  });

  it("sends the metadata of the channel and its own", async () => {
    let seen: GrpcCall["metadata"] = {};
    const { target } = await startGrpc([
      unary(Echo.Say, "server.health", (request, call) => {
        seen = call.metadata;
        return request;
      }),
    ]);
    const channel = channelTo(target, { metadata: { authorization: "Bearer abc", "x-one": "1" } });
    await channel.unary(Echo.Say, {}, { metadata: { "x-one": "2", "x-two": "3" } });
    expect(seen).toMatchObject({ authorization: "Bearer abc", "x-one": "2", "x-two": "3", "user-agent": "longshore" });
  });

  it("that failed has code, message and details", async () => {
    const { target } = await startGrpc([
      unary(Echo.Say, "server.health", () => {
        throw new GrpcError(GrpcCode.NOT_FOUND, "kein Eintrag für 'ü'", [detailOf(ErrorInfo, { reason: "RESOURCE_NOT_FOUND" })]);
      }),
    ]);
    const error = await channelTo(target)
      .unary(Echo.Say, {})
      .catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(GrpcError);
    expect(error).toMatchObject({ code: 5, message: "kein Eintrag für 'ü'" });
    expect(findDetail(error as GrpcError, ErrorInfo)).toMatchObject({ reason: "RESOURCE_NOT_FOUND" });
  });

  it("acknowledges each piece of its response at once with a byte of window, so that no server waits before it sends the next", async () => {
    const body = textFrame("x");
    const windows: number[] = [];
    const target = await handMade((stream) => {
      windows.push(stream.session?.state.remoteWindowSize ?? 0);
      answerWith(stream, body);
    });
    const channel = channelTo(target);
    for (let count = 0; count < 5; count++) await channel.unary(Echo.Say, {});
    const steps = windows.slice(1).map((window, at) => window - (windows[at] as number));
    expect(steps).toEqual(Array(4).fill(1 - body.length));
  });

  it("that is larger than the limit is not sent, and a response that is larger is not read", async () => {
    const { target, ended } = await startGrpc([unary(Echo.Say, "server.health", () => ({ text: "x".repeat(2_000) }))]);
    const channel = channelTo(target, { messageBytes: 1_000 });
    await expect(channel.unary(Echo.Say, { text: "y".repeat(2_000) })).rejects.toMatchObject({ code: 8 });
    expect(ended).toEqual([]);
    await expect(channel.unary(Echo.Say, {})).rejects.toMatchObject({ code: 8, message: "The message has 2003 bytes, the limit is 1000." });
  });

  it("that cannot be encoded names the field", async () => {
    await expect(channelTo("127.0.0.1:1").unary(Echo.Say, { count: -1 })).rejects.toMatchObject({
      code: "LONGSHORE_BAD_OUTPUT",
      detail: { field: "count" },
    });
  });
});

describe("deadlines and cancellation", () => {
  function stuck() {
    const begun = latch<GrpcCall>();
    const gone = latch();
    const wait = (call: GrpcCall) => {
      call.gone.addEventListener("abort", () => gone.open());
      begun.open(call);
      return new Promise<never>(() => {});
    };
    const methods = [
      unary(Echo.Say, "server.health", (_request, call) => wait(call)),
      serverStream(Echo.Count, "server.health", (_request, call) => void wait(call)),
    ];
    return { begun, gone, methods };
  }

  it("a deadline ends the call here, and the server gets it", async () => {
    const clock = new TestClock();
    const { begun, gone, methods } = stuck();
    const { target } = await startGrpc(methods);
    const call = channelTo(target, { clock }).unary(Echo.Say, {}, { timeoutMs: 5_000 });
    const { metadata } = await begun.opened;
    expect(metadata["grpc-timeout"]).toBe("5000m");
    const expectation = expect(call).rejects.toMatchObject({ code: 4, message: "No answer came within 5000 ms." });
    await clock.advance(5_000);
    await expectation;
    await gone.opened;
  });

  it("a signal cancels the call, and the server is notified", async () => {
    const { begun, gone, methods } = stuck();
    const { target } = await startGrpc(methods);
    const controller = new AbortController();
    const call = channelTo(target).unary(Echo.Say, {}, { signal: controller.signal });
    await begun.opened;
    const reason = new Error("not needed");
    controller.abort(reason);
    await expect(call).rejects.toMatchObject({ code: 1, cause: reason });
    await gone.opened;
  });

  it("a signal that was aborted before sends nothing", async () => {
    const { methods } = stuck();
    const { target, ended, sockets } = await startGrpc(methods);
    const channel = channelTo(target);
    await expect(channel.unary(Echo.Say, {}, { signal: AbortSignal.abort() })).rejects.toMatchObject({ code: 1 });
    expect([ended.length, sockets.size]).toEqual([0, 0]);
  });

  it("leaves no listener on the signal and no timer behind", async () => {
    const clock = new TestClock();
    const { target } = await startGrpc([echo]);
    const channel = channelTo(target, { clock });
    await channel.unary(Echo.Say, {});
    const before = clock.pending;
    const { signal } = new AbortController();
    const adding = vi.spyOn(signal, "addEventListener");
    const removing = vi.spyOn(signal, "removeEventListener");
    await channel.unary(Echo.Say, {}, { timeoutMs: 1_000, signal });
    expect(clock.pending).toBe(before);
    expect(removing.mock.calls).toEqual(adding.mock.calls);
  });

  it("leaving the loop over a stream cancels it", async () => {
    const { gone, methods } = stuck();
    const { target } = await startGrpc([
      methods[0]!,
      serverStream(Echo.Count, "server.health", async (_request, call, sink) => {
        call.gone.addEventListener("abort", () => gone.open());
        for (let count = 1; !call.gone.aborted; count++) await sink.send({ count });
      }),
    ]);
    for await (const { count } of channelTo(target).serverStream(Echo.Count, {})) if (count === 3) break;
    await gone.opened;
  });

  it("a signal ends a stream that is being read", async () => {
    const { begun, gone, methods } = stuck();
    const { target } = await startGrpc(methods);
    const controller = new AbortController();
    const opened = latch();
    const reading = channelTo(target)
      .serverStream(Echo.Count, {}, { signal: controller.signal, opened: () => opened.open() })
      .next();
    await begun.opened;
    await opened.opened;
    controller.abort();
    await expect(reading).rejects.toMatchObject({ code: 1 });
    await gone.opened;
  });

  it("a call that waits for a connection ends with its deadline", async () => {
    const clock = new TestClock();
    // Accepts and sends nothing.
    const target = await listening(createServer((socket) => onTestFinished(() => void socket.destroy())));
    const call = channelTo(target, { clock }).unary(Echo.Say, {}, { timeoutMs: 50 });
    const expectation = expect(call).rejects.toMatchObject({ code: 4 });
    await clock.advance(50);
    await expectation;
  });
});

describe("a stream", () => {
  it("delivers every message in order, then ends", async () => {
    const { target } = await startGrpc([
      serverStream(Echo.Count, "server.health", async ({ count: last }, _call, sink) => {
        for (let count = 1; count <= last; count++) await sink.send({ count });
      }),
    ]);
    const counts: number[] = [];
    for await (const { count } of channelTo(target).serverStream(Echo.Count, { count: 500 })) counts.push(count);
    expect(counts).toEqual(Array.from({ length: 500 }, (_, index) => index + 1));
  });

  it("delivers what arrived before a failure", async () => {
    const { target } = await startGrpc([
      serverStream(Echo.Count, "server.health", async (_request, _call, sink) => {
        await sink.send({ count: 1 });
        await sink.send({ count: 2 });
        throw new GrpcError(GrpcCode.ABORTED, "enough");
      }),
    ]);
    const counts: number[] = [];
    const reading = (async () => {
      for await (const { count } of channelTo(target).serverStream(Echo.Count, {})) counts.push(count);
    })();
    await expect(reading).rejects.toMatchObject({ code: 10, message: "enough" });
    expect(counts).toEqual([1, 2]);
  });

  it("that is refused fails before its first message", async () => {
    const { target } = await startGrpc([
      serverStream(Echo.Count, "server.health", () => {
        throw new GrpcError(GrpcCode.NOT_FOUND, "queue 'x' not found");
      }),
    ]);
    let opened = false;
    const stream = channelTo(target).serverStream(Echo.Count, {}, { opened: () => (opened = true) });
    await expect(stream.next()).rejects.toMatchObject({ code: 5, message: "queue 'x' not found" });
    expect(opened).toBe(false);
  });

  it.each([
    ["what the window of one stream holds (1 MiB)", {}, 16],
    ["a window that was made small", { windowBytes: 16_384 }, 4],
  ])("is not read ahead of its reader, except for %s", async (_name, options, messagesMax) => {
    let sent = 0;
    const { target } = await startGrpc([
      serverStream(Echo.Count, "server.health", async (_request, call, sink) => {
        while (!call.gone.aborted) {
          await sink.send({ blob: new Uint8Array(100_000) });
          sent++;
        }
      }),
      echo,
    ]);
    const channel = channelTo(target, options);
    const stream = channel.serverStream(Echo.Count, {});
    await stream.next();
    let before = -1;
    while (sent !== before) {
      before = sent;
      for (let index = 0; index < 5; index++) await channel.unary(Echo.Say, {});
    }
    // And a small amount in the two processes.
    expect(sent).toBeLessThan(messagesMax);
    const resumed = sent;
    for (let index = 0; index < 20; index++) await stream.next();
    expect(sent).toBeGreaterThan(resumed);
    await stream.return();
  });

  it("is known to be open before anything was sent", async () => {
    const sinks = latch<GrpcSink<{ count?: number }>>();
    const { target } = await startGrpc([serverStream(Echo.Count, "server.health", (_request, _call, sink) => sinks.open(sink))]);
    const opened = latch();
    const first = channelTo(target)
      .serverStream(Echo.Count, {}, { opened: () => opened.open() })
      .next();
    await opened.opened;
    await (await sinks.opened).send({ count: 5 });
    expect((await first).value).toMatchObject({ count: 5 });
  });
});

describe("a channel", () => {
  it("connects once for all its calls, and not before the first", async () => {
    const { target, sockets } = await startGrpc([echo]);
    const channel = channelTo(target);
    expect(sockets.size).toBe(0);
    await Promise.all(Array.from({ length: 50 }, () => channel.unary(Echo.Say, {})));
    expect(sockets.size).toBe(1);
  });

  it("ends its calls when it is closed, and accepts no more", async () => {
    const begun = latch();
    const { target, sockets } = await startGrpc([
      unary(Echo.Say, "server.health", () => {
        begun.open();
        return new Promise(() => {});
      }),
    ]);
    const channel = openChannel(target);
    const call = channel.unary(Echo.Say, {});
    await begun.opened;
    const expectation = expect(call).rejects.toMatchObject({ code: 1, message: "The channel was closed." });
    await channel.close();
    await channel.close();
    await expectation;
    await until(() => sockets.size === 0);
    await expect(channel.unary(Echo.Say, {})).rejects.toMatchObject({ code: 1, message: "The channel was closed." });
  });

  it("stops trying when it is closed", async () => {
    const clock = new TestClock();
    const gone = await startGrpc([echo]);
    await gone.crash();
    const channel = openChannel(gone.target, { clock });
    await expect(channel.unary(Echo.Say, {})).rejects.toMatchObject({ code: 14 });
    const waiting = channel.unary(Echo.Say, {});
    const expectation = expect(waiting).rejects.toMatchObject({ code: 1 });
    await channel.close();
    await expectation;
    expect(clock.pending).toBe(0);
  });
});

describe("a target", () => {
  it("is a host and a port, or a URL", () => {
    expect(parseTarget("localhost:7837")).toEqual({ host: "localhost", port: 7837, secure: false, authority: "localhost:7837" });
    expect(parseTarget("http://10.0.0.1:80")).toMatchObject({ host: "10.0.0.1", port: 80, secure: false });
    expect(parseTarget("https://example.org")).toMatchObject({ host: "example.org", port: 443, secure: true });
    expect(parseTarget("https://example.org:7837/")).toMatchObject({ port: 7837, secure: true });
    expect(parseTarget("[::1]:7837")).toEqual({ host: "::1", port: 7837, secure: false, authority: "[::1]:7837" });
  });

  it.each([
    "",
    "localhost",
    "host:0",
    "host:99999",
    "host:port",
    "ftp://host:1",
    "http://host:1/path",
    "http://u:p@host:1",
    "http://host:1?q",
  ])("is not %j", (text) => {
    expect(() => parseTarget(text)).toThrow(`${JSON.stringify(text)} is not an address of a gRPC server`);
  });
});
