// gRPC and HTTP/1.1 on one port, and what both share: the gate, the limits, the metrics, the log and the close.

import { describe, expect, it } from "vitest";
import { answerOf, channelTo, Echo, grpcHead, rawSession, startRelay, Text } from "../../../test/support/grpc.ts";
import { call, groupOf, latch, RawClient, route, startServer, type TestServer } from "../../../test/support/http.ts";
import { walkMethodTable } from "../../../test/support/route-table.ts";
import { until } from "../../../test/support/until.ts";
import type { Action } from "../../core/actions.ts";
import { LongshoreError } from "../../core/errors.ts";
import { TestClock } from "../../testing/clock.ts";
import { frameOf } from "../grpc/frame.ts";
import { type GrpcCall, type GrpcMethod, serverStream, unary } from "../grpc/service.ts";
import { BadRequest, findDetail, GrpcCode, type GrpcError } from "../grpc/status.ts";
import { createAuth, parseToken } from "./auth.ts";
import type { ListenOptions } from "./listener.ts";

const secrets = { worker: "worker-secret-0123456789", operator: "operator-secret-0123456789", read: "read-secret-0123456789" };
const auth = createAuth(Object.entries(secrets).map(([scope, secret]) => parseToken(`${scope}:${secret}:${scope}-token`, scope)));

const hello = route("GET /hello", () => ({ status: 200, body: "hello" }));
const say = (
  action: Action = "server.health",
  handle: (text: string, call: GrpcCall) => string | Promise<string> = (text) => text,
): GrpcMethod => unary(Echo.Say, action, async ({ text }, call) => ({ text: await handle(text, call) }));
const count = (action: Action = "server.health"): GrpcMethod => serverStream(Echo.Count, action, () => {});

function serve(methods: readonly GrpcMethod[], options: Partial<ListenOptions> = {}): Promise<TestServer> {
  return startServer({ groups: [groupOf("main", [hello])], methods, ...options });
}

const targetOf = (server: TestServer): string => `127.0.0.1:${server.port}`;
const bearer = (token: string) => ({ metadata: { authorization: `Bearer ${token}` } });

const metric = (server: TestServer, line: RegExp): string | undefined => line.exec(server.metrics.text())?.[1];

describe("one port", () => {
  it("accepts HTTP/1.1 and gRPC", async () => {
    const server = await serve([say()]);
    expect((await call(`${server.url}/hello`)).text).toBe("hello");
    expect(await channelTo(targetOf(server)).unary(Echo.Say, { text: "hi" })).toMatchObject({ text: "hi" });
    expect((await call(`${server.url}/hello`)).text).toBe("hello");
  });

  it("recognises both when they arrive byte by byte", async () => {
    const server = await serve([say()]);
    const relay = await startRelay(server.port, { slowBytes: 60 });
    expect(await channelTo(relay.target).unary(Echo.Say, { text: "slow" })).toMatchObject({ text: "slow" });
    expect((await call(`http://${relay.target}/hello`)).text).toBe("hello");
    // With its first three bytes, this could still become the preface.
    expect((await call(`http://${relay.target}/hello`, { method: "PROPFIND" })).status).toBe(405);
  });

  it("disconnects a client that stops within the preface, when it ends its side or after a time", async () => {
    const server = await serve([say()], { limits: { headersMs: 30 } });
    const ending = new RawClient(server).send("PRI * HT");
    ending.socket.end();
    expect(await ending.closed()).toBe("");
    expect(await new RawClient(server).send("PRI").closed()).toMatch(/^HTTP\/1.1 408 /);
    await until(() => server.connections() === 0);
  });

  it("reads the preface only at the beginning of a connection", async () => {
    const server = await serve([say()]);
    const client = new RawClient(server).send("GET /hello HTTP/1.1\r\nhost: localhost\r\n\r\n");
    await client.until("hello");
    client.send("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");
    expect(await client.closed()).toContain("HTTP/1.1 400 ");
  });

  it("explains to plain HTTP/2 clients what it serves", async () => {
    const server = await serve([say()]);
    const answer = await answerOf(rawSession(server.port).request({ ":path": "/hello" }));
    expect([answer.head[":status"], answer.body.toString()]).toEqual([415, expect.stringContaining("speaks gRPC only")]);
    expect(metric(server, /longshore_http_refusals_total\{kind="bad-request"\} (\d+)/)).toBe("1");
  });

  it("closes the socket when a gRPC client ends its side", async () => {
    const gone = latch();
    const server = await serve([
      serverStream(Echo.Count, "server.health", (_request, { gone: signal }) => signal.addEventListener("abort", () => gone.open())),
    ]);
    const session = rawSession(server.port);
    const stream = session.request(grpcHead(Echo.Count.path));
    stream.on("error", () => {});
    stream.end(frameOf(Text.encode({})));
    await new Promise((resolve) => stream.once("response", resolve));
    session.tcp.end();
    await gone.opened;
    await until(() => server.connections() === 0);
    expect(metric(server, /longshore_http_in_flight (\d+)/)).toBe("0");
  });
});

describe("the gate", () => {
  it("requires a token on every method that is not open, and its scope", async () => {
    const methods = [
      say("task.claim"),
      count("task.claim"),
      { ...say("run.start"), path: "/test.Echo/Operate" },
      { ...say("run.read"), path: "/test.Echo/Read" },
    ];
    const server = await serve([...methods, { ...say("server.health"), path: "/test.Echo/Open" }], { auth });
    const { calls, findings } = await walkMethodTable(methods, targetOf(server), secrets);
    expect([calls, findings]).toEqual([2 * 4 + 2 + 2 + 1, []]);
    const open = channelTo(targetOf(server)).unary({ ...Echo.Say, path: "/test.Echo/Open" }, { text: "anyone" });
    expect(await open).toMatchObject({ text: "anyone" });
  });

  it("lets the test above fail for a method that is open by mistake", async () => {
    const methods = [say("task.claim"), { ...say("run.start"), path: "/test.Echo/Operate" }];
    const server = await serve(methods);
    const { calls, findings } = await walkMethodTable(methods, targetOf(server), secrets);
    expect(findings).toHaveLength(calls);
  });

  it("accepts a caller whose token allows it, and passes the caller to the method", async () => {
    const principals: (string | undefined)[] = [];
    const server = await serve(
      [
        say("task.claim", (text, { caller }) => {
          principals.push(caller.name);
          return text;
        }),
      ],
      { auth },
    );
    const channel = channelTo(targetOf(server));
    await channel.unary(Echo.Say, {}, bearer(secrets.worker));
    await channel.unary(Echo.Say, {}, { metadata: { authorization: `bearer ${secrets.operator}` } });
    expect(principals).toEqual(["worker-token", "operator-token"]);
  });

  it("refuses foreign host names and pages", async () => {
    const server = await serve([say()]);
    const statusOf = async (head: Record<string, string>) => {
      const stream = rawSession(server.port).request(grpcHead(Echo.Say.path, head));
      const answer = answerOf(stream);
      stream.end(frameOf(Text.encode({})));
      const { head: first, trailers } = await answer;
      return first["grpc-status"] ?? trailers["grpc-status"];
    };
    expect(await statusOf({ ":authority": "rebound.example" })).toBe("7");
    expect(await statusOf({ origin: "https://evil.example" })).toBe("7");
    expect(await statusOf({ ":authority": `localhost:${server.port}` })).toBe("0");
  });

  it("writes no token into the log", async () => {
    const server = await serve([say("task.claim", () => Promise.reject(new Error("failed")))], { auth });
    const channel = channelTo(targetOf(server));
    for (const token of [...Object.values(secrets), "unknown-secret-0123456789"]) {
      await expect(channel.unary(Echo.Say, {}, bearer(token))).rejects.toThrow();
    }
    expect(server.log.length).toBeGreaterThan(0);
    for (const secret of [...Object.values(secrets), "unknown-secret"]) expect(server.log.join("\n")).not.toContain(secret);
  });
});

describe("errors", () => {
  const failWith = async (error: Error): Promise<{ error: GrpcError; server: TestServer }> => {
    const server = await serve([say("server.health", () => Promise.reject(error))]);
    const thrown = await channelTo(targetOf(server))
      .unary(Echo.Say, {})
      .catch((caught: unknown) => caught);
    return { error: thrown as GrpcError, server };
  };

  it.each([
    ["LONGSHORE_BAD_INPUT", GrpcCode.INVALID_ARGUMENT],
    ["LONGSHORE_NOT_FOUND", GrpcCode.NOT_FOUND],
    ["LONGSHORE_LIMIT", GrpcCode.UNAVAILABLE],
    ["LONGSHORE_STORE_UNAVAILABLE", GrpcCode.UNAVAILABLE],
    ["LONGSHORE_CLOSED", GrpcCode.UNAVAILABLE],
  ] as const)("%s is the code %i", async (code, expected) => {
    const { error } = await failWith(new LongshoreError(code, "so it is"));
    expect(error).toMatchObject({ code: expected, message: "so it is" });
  });

  it("in a field name the field in a machine-readable form", async () => {
    const { error } = await failWith(
      new LongshoreError("LONGSHORE_BAD_INPUT", "bad", { detail: { field: "worker_id", expected: "a text" } }),
    );
    expect(findDetail(error, BadRequest)).toEqual({ fieldViolations: [{ field: "worker_id", description: "expected a text" }] });
  });

  it("that were not expected are reported by an incident id, and the log has the rest", async () => {
    const { error, server } = await failWith(new TypeError("the inner reason"));
    const incident = /under ([0-9a-f-]{36})/.exec(error.message)?.[1];
    expect(error).toMatchObject({ code: GrpcCode.INTERNAL });
    expect(error.message).not.toContain("inner reason");
    expect(server.log.find((line) => line.includes(incident as string))).toContain("the inner reason");
  });

  it("of a message that cannot be read name its field", async () => {
    const server = await serve([say()]);
    const stream = rawSession(server.port).request(grpcHead(Echo.Say.path));
    const answer = answerOf(stream);
    stream.end(frameOf(Buffer.from([0x0a, 9, 1])));
    const { head } = await answer;
    expect(head).toMatchObject({ "grpc-status": "3", "grpc-message": expect.stringContaining("Text.text: the input ends early") });
  });
});

describe("limits and metrics", () => {
  it("count calls by method and code, in flight and by connection", async () => {
    const finish = latch<string>();
    const begun = latch();
    const server = await serve([
      say("server.health", () => {
        begun.open();
        return finish.opened;
      }),
    ]);
    const channel = channelTo(targetOf(server));
    const answer = channel.unary(Echo.Say, {});
    await begun.opened;
    expect(metric(server, /longshore_http_in_flight (\d+)/)).toBe("1");
    expect(metric(server, /longshore_http_connections (\d+)/)).toBe("1");
    finish.open("done");
    await answer;
    await expect(channel.unary(Echo.Unknown, {})).rejects.toMatchObject({ code: 12 });
    await until(() => metric(server, /longshore_http_in_flight (\d+)/) === "0");
    expect(metric(server, /longshore_grpc_calls_total\{method="\/test.Echo\/Say",code="OK"\} (\d+)/)).toBe("1");
    expect(metric(server, /longshore_grpc_calls_total\{method="",code="UNIMPLEMENTED"\} (\d+)/)).toBe("1");
  });

  it("refuse calls when too many calls and requests are in flight", async () => {
    const finish = latch<string>();
    const server = await serve([say("server.health", () => finish.opened)], {
      limits: { inFlightOwn: 1, inFlight: 1, inFlightReserve: 0 },
    });
    const channel = channelTo(targetOf(server));
    const waiting = [channel.unary(Echo.Say, {}), channel.unary(Echo.Say, {})];
    await until(() => metric(server, /longshore_http_in_flight (\d+)/) === "2");
    await expect(channel.unary(Echo.Say, {})).rejects.toMatchObject({
      code: 14,
      message: expect.stringContaining("1 requests of the server under way"),
    });
    // Another connection has its own places.
    expect((await call(`${server.url}/hello`)).status).toBe(200);
    finish.open("done");
    await Promise.all(waiting);
  });

  it("apply to messages", async () => {
    const server = await serve([say()], { limits: { messageBytes: 100 } });
    await expect(channelTo(targetOf(server)).unary(Echo.Say, { text: "x".repeat(200) })).rejects.toMatchObject({ code: 8 });
  });
});

describe("closing", () => {
  it("lets calls finish, ends streams, and leaves no socket open", async () => {
    const finish = latch<string>();
    const begun = latch();
    const server = await serve([
      say("server.health", () => {
        begun.open();
        return finish.opened;
      }),
      count(),
    ]);
    const channel = channelTo(targetOf(server));
    const opened = latch();
    const reading = channel.serverStream(Echo.Count, {}, { opened: () => opened.open() }).next();
    const answer = channel.unary(Echo.Say, {});
    // A second client has no open call.
    await channelTo(targetOf(server))
      .unary(Echo.Unknown, {})
      .catch(() => {});
    await Promise.all([begun.opened, opened.opened]);
    const ended = expect(reading).rejects.toMatchObject({ code: 14, message: "The server is shutting down." });
    const closed = server.close();
    await ended;
    finish.open("in time");
    expect(await answer).toMatchObject({ text: "in time" });
    await closed;
    expect(server.connections()).toBe(0);
  });

  it("disconnects a client that does not finish", async () => {
    const clock = new TestClock();
    const begun = latch();
    const gone = latch();
    const server = await serve(
      [
        say("server.health", (_text, { gone: signal }) => {
          signal.addEventListener("abort", () => gone.open());
          begun.open();
          return new Promise(() => {});
        }),
      ],
      { clock },
    );
    const answer = channelTo(targetOf(server)).unary(Echo.Say, {});
    const ended = expect(answer).rejects.toMatchObject({ code: 14 });
    await begun.opened;
    const closed = server.close(5_000);
    await clock.advance(5_000);
    await Promise.all([ended, gone.opened, closed]);
  });
});
