// What only a client over a network must handle: tokens, lost responses, servers that are unavailable.

import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { describe, expect, it, onTestFinished } from "vitest";
import { temporaryFolder } from "../../test/support/parts.ts";
import { until, untilElsewhere } from "../../test/support/until.ts";
import { task } from "../core/task.ts";
import { graph } from "../graph.ts";
import type { Ref } from "../reference.ts";
import { serve } from "../server/server.ts";
import { TestClock } from "../testing/clock.ts";
import { work } from "../work.ts";
import { type ConnectOptions, connect, connectBy } from "./connect.ts";
import type { RunEvent } from "./run-event.ts";

const echo = task("echo", async (value: unknown) => value);
const echoing = graph("echoing", (g, input: Ref<unknown>) => g.step(echo, input));

const operator = "kV3mQ0rT8xLw2ZpB";
const reader = "aa3mQ0rT8xLw2ZpC";

async function setup(options: ConnectOptions = {}) {
  const server = await serve({ ephemeral: true, port: 0, logger: { level: "silent" } });
  onTestFinished(() => server.close());
  return { server, client: connect(server.url as string, options) };
}

/** A server that answers each request with the next of these responses. */
async function strangeServer(...answers: readonly [status: number, body: string][]): Promise<{ url: string; asked: string[] }> {
  const asked: string[] = [];
  const server = createServer((request, response) => {
    const [status, body] = answers[Math.min(asked.length, answers.length - 1)] as [number, string];
    asked.push(`${request.method} ${request.url}`);
    response.writeHead(status).end(body);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  onTestFinished(() => void server.close());
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, asked };
}

/** Performs requests, but loses the first response to each request that matches. */
function losing(matches: (path: string) => boolean): { fetch: typeof fetch; sent: string[] } {
  const lost = new Set<string>();
  const sent: string[] = [];
  const send: typeof fetch = async (input, init) => {
    const path = new URL(String(input)).pathname;
    sent.push(path);
    const response = await fetch(input, init);
    if (!matches(path) || lost.has(path)) return response;
    lost.add(path);
    await response.arrayBuffer();
    throw new TypeError("fetch failed", { cause: Object.assign(new Error("read ECONNRESET"), { code: "ECONNRESET" }) });
  };
  return { fetch: send, sent };
}

describe("a token", () => {
  const start = async (token?: string) => {
    const server = await serve({ ephemeral: true, port: 0, tokens: [operator, `read:${reader}`], logger: { level: "silent" } });
    onTestFinished(() => server.close());
    await server.define(echoing);
    return connect(server.url as string, token === undefined ? {} : { token })
      .start("echoing", 1)
      .catch((error: unknown) => error);
  };

  it("that is missing, wrong or too weak gets a different error for each case", async () => {
    expect(await start()).toMatchObject({
      code: "LONGSHORE_UNAUTHORIZED",
      message: expect.stringMatching(/requires a token: connect\(url, \{ token \}\)/),
    });
    expect(await start("wrong0rT8xLw2ZpB")).toMatchObject({
      code: "LONGSHORE_UNAUTHORIZED",
      message: expect.stringMatching(/does not know the token/),
    });
    expect(await start(reader)).toMatchObject({
      code: "LONGSHORE_UNAUTHORIZED",
      message: expect.stringMatching(/does not have the scope operator/),
    });
    expect(await start(operator)).toHaveProperty("id");
  });
});

describe("an address", () => {
  it("that is not a URL is refused at once", () => {
    for (const url of ["", "127.0.0.1:4500", "ftp://x"])
      expect(() => connect(url)).toThrow(
        expect.objectContaining({ code: "LONGSHORE_BAD_CONFIG", detail: expect.objectContaining({ field: "url" }) }),
      );
  });

  it("may have a path in front of the API", async () => {
    const { url, asked } = await strangeServer([200, "{}"]);
    await connect(`${url}/behind/a/proxy/`).run("r/1").status();
    expect(asked).toEqual(["GET /behind/a/proxy/api/longshore/v1/runs/r%2F1"]);
  });

  it("of a server that is not Longshore is reported, with its response", async () => {
    const page = await strangeServer([404, "<html>nothing here</html>"]);
    await expect(connect(page.url).run("r").status()).rejects.toMatchObject({
      code: "LONGSHORE_BAD_CONFIG",
      message: expect.stringMatching(/answered 404: <html>nothing here.*Is that a Longshore server\?/),
    });
    const text = await strangeServer([200, "hello"]);
    await expect(connect(text.url).run("r").status()).rejects.toMatchObject({
      code: "LONGSHORE_BAD_CONFIG",
      message: expect.stringMatching(/is not JSON/),
    });
  });

  it("without a server is retried for a while, and then reported", async () => {
    const { url } = await strangeServer([200, "{}"]);
    const away = url.replace(/\d+$/, "1");
    await expect(connect(away, { retryFor: 0 }).run("r").status()).rejects.toMatchObject({
      code: "LONGSHORE_UNREACHABLE",
      message: expect.stringMatching(/^No server answers at http:\/\/127\.0\.0\.1:1 \(/),
    });
  });
});

describe("a server that is busy or unavailable", () => {
  it("gets the request again", async () => {
    const { url, asked } = await strangeServer([503, "{}"], [502, "bad gateway"], [200, '{"id":"r","state":"running"}']);
    expect(await connect(url).run("r").status()).toMatchObject({ id: "r" });
    expect(asked).toHaveLength(3);
  });

  it("does not get a change again that it may have made already", async () => {
    const { url, asked } = await strangeServer([502, "bad gateway"], [200, "{}"]);
    await expect(connect(url).run("r").retry()).rejects.toMatchObject({ code: "LONGSHORE_UNREACHABLE" });
    expect(asked).toHaveLength(1);
    const refusing = await strangeServer([503, '{"error":{"code":"LONGSHORE_SHUTDOWN","message":"closing"}}'], [202, "{}"]);
    await connect(refusing.url).run("r").retry();
    expect(refusing.asked).toHaveLength(2);
  });

  it("does not get the request again after the caller's signal fired", async () => {
    const { url } = await strangeServer([503, "{}"]);
    const stopping = new AbortController();
    const waiting = expect(connect(url).run("r").status({ signal: stopping.signal })).rejects.toThrow("enough");
    stopping.abort(new Error("enough"));
    await waiting;
  });
});

describe("a lost response", () => {
  it("to a start, a call or a signal leads to no second change", async () => {
    const { fetch, sent } = losing((path) => /\/(runs|tasks|signals)$/.test(path));
    const { server, client } = await setup({ fetch });
    const run = await client.start(echoing, 1);
    await run.signal("unheard", 1);
    const worker = await work({ tasks: [echo], on: server, logger: false, signals: false });
    onTestFinished(() => worker.stop({ force: true }));
    expect(await client.call(echo, 2)).toBe(2);
    expect(sent.filter((path) => path.endsWith("/v1/runs"))).toHaveLength(2);
    expect(sent.filter((path) => path.endsWith("/v1/tasks"))).toHaveLength(2);
    expect(sent.filter((path) => path.endsWith("/signals"))).toHaveLength(2);
    let runs = 0;
    for await (const _ of server.runs()) runs++;
    expect(runs).toBe(1);
    expect((await run.status()).signals.sent).toBe(1);
    expect(worker.status().counts.done).toBe(2);
  });
});

describe("a start that waits for the end", () => {
  it("is one request, and starts one run when its response is lost", async () => {
    const { fetch, sent } = losing((path) => path.endsWith("/runs"));
    const { server, client } = await setup({ fetch });
    const worker = await work({ tasks: [echo], on: server, logger: false, signals: false });
    onTestFinished(() => worker.stop({ force: true }));
    await client.define(echoing);
    expect(await client.execute("echoing", 5)).toBe(5);
    expect(sent.filter((path) => path.includes("/v1/runs"))).toHaveLength(2);
    expect(await client.execute("echoing", 6)).toBe(6);
    expect(sent.filter((path) => path.includes("/v1/runs"))).toHaveLength(3);
    expect(worker.status().counts.done).toBe(2);
  });

  it("survives the end of its server", async () => {
    const data = temporaryFolder();
    const first = await serve({ data, port: 0, logger: { level: "silent" } });
    const client = connect(first.url as string);
    const result = client.execute(echoing, { n: 1 });
    await untilElsewhere(async () => {
      for await (const _ of first.runs()) return true;
      return false;
    });
    await first.close();
    const second = await serve({ data, port: first.port as number, logger: { level: "silent" } });
    onTestFinished(() => second.close());
    const worker = await work({ tasks: [echo], on: second, logger: false, signals: false });
    onTestFinished(() => worker.stop({ force: true }));
    expect(await result).toEqual({ n: 1 });
  });
});

describe("a restart of the server", () => {
  it("does not end a wait for a result or for events, and a workflow is defined again when the data is lost", async () => {
    const first = await serve({ ephemeral: true, port: 0, logger: { level: "silent" } });
    const url = first.url as string;
    const client = connect(url);
    await client.start(echoing, 1);
    await first.close();
    const second = await serve({ ephemeral: true, port: Number(new URL(url).port), logger: { level: "silent" } });
    onTestFinished(() => second.close());
    const run = await client.start(echoing, 2);
    const worker = await work({ tasks: [echo], on: second, logger: false, signals: false });
    onTestFinished(() => worker.stop({ force: true }));
    expect(await run.result()).toBe(2);
  });

  it("is followed by the states that the client missed, each once", async () => {
    const data = temporaryFolder();
    const first = await serve({ data, port: 0, logger: { level: "silent" } });
    const port = first.port as number;
    const client = connect(first.url as string);
    const run = await client.start(echoing, { n: 1 });
    const result = run.result();
    const events: RunEvent[] = [];
    const following = (async () => {
      for await (const event of run.events()) events.push(event);
    })();
    await until(() => events.length === 2);
    await first.close();
    const second = await serve({ data, port: 0, logger: { level: "silent" } });
    const worker = await work({ tasks: [echo], on: second, logger: false, signals: false });
    await second.result(run.id);
    await worker.stop();
    await second.close();
    const third = await serve({ data, port, logger: { level: "silent" } });
    onTestFinished(() => third.close());
    expect(await result).toEqual({ n: 1 });
    await following;
    expect(events.map(({ kind, state }) => `${kind} ${state}`)).toEqual(["task queued", "run running", "task done", "run succeeded"]);
  });
});

it("a request to a silent server fails after its timeout, measured by the clock", async () => {
  const clock = new TestClock();
  const silent: typeof fetch = (_input, init) =>
    new Promise((_resolve, reject) => init?.signal?.addEventListener("abort", () => reject(init.signal?.reason)));
  const client = connectBy("http://127.0.0.1:1", { fetch: silent, retryFor: 0 }, clock);
  const waiting = expect(client.run("r").status()).rejects.toMatchObject({
    code: "LONGSHORE_UNREACHABLE",
    message: expect.stringMatching(/no reply for 30 s/),
  });
  await clock.advance(30_000);
  await waiting;
});
