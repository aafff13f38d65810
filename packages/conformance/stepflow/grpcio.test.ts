// Our gRPC with the library that most users have: Python's grpcio, as a client of our server and as a server for our client. It uses Google's
// own Protocol Buffers, so both implementations read and write the same messages.

import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import fc from "fast-check";
import { describe, expect, it, onTestFinished, type TestContext } from "vitest";
import type { Json } from "../../longshore/src/core/json/json.ts";
import { type ChannelOptions, type GrpcChannel, openChannel } from "../../longshore/src/net/grpc/client.ts";
import { type GrpcMethod, serverStream, unary } from "../../longshore/src/net/grpc/service.ts";
import { detailOf, ErrorInfo, findDetail, GrpcCode, GrpcError } from "../../longshore/src/net/grpc/status.ts";
import { createAuth, parseToken } from "../../longshore/src/net/listener/auth.ts";
import { type Encodable, message, service } from "../../longshore/src/net/protobuf/protobuf.ts";
import { groupOf, latch, startServer, type TestServer } from "../../longshore/test/support/http.ts";
import type { Child } from "../src/child.ts";
import { openStage, type Stage } from "../src/stage.ts";
import { pythonWithSdk } from "./fetch.ts";

const fields = {
  text: [1, "string"],
  count: [2, "uint32"],
  blob: [3, "bytes"],
  value: [4, "Value"],
  labels: [5, "string", "map"],
  numbers: [6, "uint32", "repeated"],
  at: [7, "Timestamp"],
  left: [8, "string", "oneof side"],
  right: [9, "int64", "oneof side"],
  struct: [10, "Struct"],
  single: [11, "float"],
  precise: [12, "double"],
  note: [14, "string", "optional"],
} as const;
const Inner = message("test.Text", fields);
const Text = message("test.Text", { ...fields, inner: [13, Inner] });
type Text = Encodable<typeof Text>;

const Echo = service("test.Echo", {
  Say: [Text, Text],
  Count: [Text, Text, "stream"],
  Fail: [Text, Text],
  FailLater: [Text, Text, "stream"],
  Wait: [Text, Text],
  Begun: [Text, Text],
  Open: [Text, Text, "stream"],
  Metadata: [Text, Text],
  Nothing: [Text, Text],
});

const token = "kV3mQ0rT8xLw2ZpB";
const pem = (name: string): string => fileURLToPath(new URL(`../../longshore/test/fixtures/tls/${name}.pem`, import.meta.url));
const program = (name: string): string => fileURLToPath(new URL(`./programs/${name}`, import.meta.url));
const transports = ["in the clear", "with TLS"] as const;

function python(stage: Stage, name: string, args: readonly string[]): Child {
  return stage.start(pythonWithSdk("0.13"), ["-u", program(name), ...args], { name, cwd: stage.folder() });
}

/** Everything that a program printed as lines of JSON, in one object. */
function resultsOf(child: Child): Record<string, unknown> {
  const lines = child
    .output()
    .split("\n")
    .filter((line) => line.startsWith("{"));
  return Object.assign({}, ...lines.map((line) => JSON.parse(line) as object)) as Record<string, unknown>;
}

describe.each(transports)("grpcio as a client of our server (%s)", (transport) => {
  function methods(begun: (text: string) => Promise<void>, left: (text: string) => void): GrpcMethod[] {
    return [
      unary(Echo.Say, "task.report", (request) => request),
      serverStream(Echo.Count, "task.report", async ({ count: last }, _call, sink) => {
        for (let count = 1; count <= last; count++) await sink.send({ count });
      }),
      unary(Echo.Fail, "task.report", () => {
        throw new GrpcError(GrpcCode.NOT_FOUND, "nicht gefunden: ü", [detailOf(ErrorInfo, { reason: "GONE", metadata: { id: "7" } })]);
      }),
      serverStream(Echo.FailLater, "task.report", async (_request, _call, sink) => {
        await sink.send({ count: 1 });
        throw new GrpcError(GrpcCode.ABORTED, "enough");
      }),
      unary(Echo.Wait, "task.report", ({ text }, call) => {
        void begun(text);
        return new Promise((resolve) =>
          call.gone.addEventListener("abort", () => {
            left(text);
            resolve({});
          }),
        );
      }),
      serverStream(Echo.Open, "task.report", () => {}),
      unary(Echo.Metadata, "task.report", (_request, { metadata }) => ({ text: `${metadata["x-test"]} ${metadata["x-bin"]}` })),
    ];
  }

  function serve(more: readonly GrpcMethod[], port = 0): Promise<TestServer> {
    const tls = transport === "with TLS" ? { cert: readFileSync(pem("cert")), key: readFileSync(pem("key")) } : undefined;
    const auth = createAuth([parseToken(`worker:${token}`, "token")]);
    return startServer({ groups: [groupOf("none", [])], methods: more, auth, tls, port });
  }

  const client = (context: TestContext, server: TestServer, what: string): Child =>
    python(openStage(context), "grpcio_client.py", [`localhost:${server.port}`, token, transport === "with TLS" ? pem("cert") : "", what]);

  it("makes calls and streams, receives errors, sets deadlines and cancels", async (context) => {
    const waiting = latch();
    const left: string[] = [];
    const server = await serve([
      ...methods(
        async (text) => {
          if (text === "cancel") waiting.open();
        },
        (text) => left.push(text),
      ),
      unary(Echo.Begun, "task.report", async () => {
        await waiting.opened;
        return {};
      }),
    ]);
    const child = client(context, server, "calls");
    expect(await child.ended, child.output()).toBe("code 0");
    expect(resultsOf(child)).toEqual({
      say: true,
      stream: [1000, 1, 1000],
      fail: [5, "nicht gefunden: ü", 5, "GONE", { id: "7" }],
      fail_later: [10, "enough"],
      deadline: 4,
      cancelled: true,
      unknown: 12,
      no_token: 16,
      gzip: 10_000,
      deflate: 12,
      large: 15_000_000,
      too_large: 8,
      metadata: "abc AQI",
      parallel: true,
    });
    expect(left.sort()).toEqual(["cancel", "deadline"]);
    expect(server.metrics.text()).toContain('longshore_grpc_calls_total{method="/test.Echo/Wait",code="CANCELLED"}');
  });

  it("is notified when the server closes, and connects to the next server", async (context) => {
    const all = methods(
      async () => {},
      () => {},
    );
    const first = await serve(all);
    const child = client(context, first, "restart");
    await child.printed(/"open": true/);
    await first.close();
    await serve(all, first.port);
    expect(await child.ended, child.output()).toBe("code 0");
    expect(resultsOf(child)).toMatchObject({ closed: 14, again: "again" });
  });
});

describe.each(transports)("grpcio as a server for our client (%s)", (transport) => {
  async function setup(context: TestContext, options: ChannelOptions = {}): Promise<{ child: Child; channel: GrpcChannel }> {
    const secure = transport === "with TLS";
    const child = python(openStage(context), "grpcio_server.py", secure ? [pem("cert"), pem("key")] : ["", ""]);
    const [, port] = await child.printed(/"port": (\d+)/);
    const target = secure ? `https://localhost:${port}` : `localhost:${port}`;
    const channel = openChannel(target, { tls: { ca: readFileSync(pem("cert")) }, metadata: { authorization: "Bearer abc" }, ...options });
    onTestFinished(() => channel.close());
    return { child, channel };
  }

  it("returns responses, streams and errors", async (context) => {
    const { channel } = await setup(context);
    expect(await channel.unary(Echo.Say, { text: "hällo 🚢", count: 7 })).toMatchObject({ text: "hällo 🚢", count: 7 });
    const counts: number[] = [];
    for await (const { count } of channel.serverStream(Echo.Count, { count: 1_000 })) counts.push(count);
    expect([counts.length, counts[0], counts.at(-1)]).toEqual([1_000, 1, 1_000]);
    const error = await channel.unary(Echo.Fail, {}).catch((thrown: unknown) => thrown as GrpcError);
    expect(error).toMatchObject({ code: 5, message: "nicht gefunden: ü" });
    expect(findDetail(error as GrpcError, ErrorInfo)).toEqual({ reason: "GONE", domain: "example.org", metadata: { id: "7" } });
    const reading = channel.serverStream(Echo.FailLater, {});
    expect((await reading.next()).value).toMatchObject({ count: 1 });
    await expect(reading.next()).rejects.toMatchObject({ code: 10, message: "enough" });
    await expect(channel.unary(Echo.Nothing, {})).rejects.toMatchObject({ code: 12 });
    const blob = Buffer.alloc(20_000_000, 1);
    expect(Buffer.compare((await channel.unary(Echo.Say, { blob })).blob, blob)).toBe(0);
    const { text } = await channel.unary(Echo.Metadata, {}, { metadata: { "x-test": "abc", "x-bin": "AQI=" } });
    expect(JSON.parse(text)).toEqual({ "x-test": "abc", authorization: "Bearer abc", "x-bin": [1, 2] });
  });

  it("receives deadlines and cancellation", async (context) => {
    const { child, channel } = await setup(context);
    await expect(channel.unary(Echo.Wait, { text: "deadline" }, { timeoutMs: 600 })).rejects.toMatchObject({ code: 4 });
    await child.printed(/"waits": "deadline", "seconds": 1\}/);
    await child.printed(/"gone": "deadline"/);
    const controller = new AbortController();
    const call = channel.unary(Echo.Wait, { text: "cancel" }, { signal: controller.signal });
    const cancelled = expect(call).rejects.toMatchObject({ code: 1 });
    await child.printed(/"waits": "cancel", "seconds": null/);
    controller.abort();
    await cancelled;
    await child.printed(/"gone": "cancel"/);
    for await (const { count } of channel.serverStream(Echo.Open, { text: "left" })) if (count === 1) break;
    await child.printed(/"gone": "left"/);
  });

  it("may refuse pings that are too frequent; calls continue afterwards", async (context) => {
    const { channel } = await setup(context, { pingMs: 20 });
    const reading = channel.serverStream(Echo.Open, { text: "pinged" });
    await reading.next();
    await expect(reading.next()).rejects.toMatchObject({ code: 14 });
    expect(await channel.unary(Echo.Say, { text: "still" })).toMatchObject({ text: "still" });
  });

  it("fails the open calls when it dies", async (context) => {
    const { child, channel } = await setup(context);
    const call = channel.unary(Echo.Wait, { text: "killed" });
    const failed = expect(call).rejects.toMatchObject({ code: 14 });
    await child.printed(/"waits": "killed"/);
    child.signal("SIGKILL");
    await failed;
  });

  it("understands every message as we do", async (context) => {
    const { channel } = await setup(context);
    const text = fc.string({ unit: "grapheme", maxLength: 20 });
    const json = fc.jsonValue({ maxDepth: 4 }).map((value) => JSON.parse(JSON.stringify(value)) as Json);
    const members = {
      text,
      count: fc.integer({ min: 0, max: 2 ** 32 - 1 }),
      blob: fc.uint8Array(),
      value: json,
      labels: fc.dictionary(text, text, { noNullPrototype: true }),
      numbers: fc.array(fc.integer({ min: 0, max: 2 ** 32 - 1 })),
      at: fc.integer({ min: -62_135_596_800_000, max: 253_402_300_799_999 }),
      right: fc.maxSafeInteger(),
      struct: fc.dictionary(text, json, { noNullPrototype: true }),
      single: fc.float(),
      precise: fc.double(),
      note: text,
    };
    const inner = fc.record(members, { requiredKeys: [], noNullPrototype: true });
    const whole = fc.record({ ...members, inner }, { requiredKeys: [], noNullPrototype: true });
    await fc.assert(
      fc.asyncProperty(whole, async (value) => {
        expect(await channel.unary(Echo.Say, value as Text)).toEqual(Text.decode(Text.encode(value as Text)));
      }),
      { numRuns: 300 },
    );
  });
});
