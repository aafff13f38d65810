// The attacker sends more requests at the same time than the server accepts, and so leaves no place for other callers. The attacker holds no
// token, or one worker token. Requests of other callers must still succeed: health, claims, the cancellation of a run.

import { connect as connectHttp2 } from "node:http2";
import { connect } from "node:net";
import { expect, it, onTestFinished } from "vitest";
import { type HttpLimits, httpLimits } from "../../src/net/listener/limits.ts";
import type { ServeOptions } from "../../src/server/config.ts";
import { serve } from "../../src/server/server.ts";
import { call } from "../support/http.ts";
import { untilElsewhere as until } from "../support/until.ts";

/** A hundredth of the usual pool and of its parts. */
const small: Partial<HttpLimits> = {
  inFlight: httpLimits.inFlight / 100,
  inFlightConnection: httpLimits.inFlightConnection / 100,
  inFlightToken: httpLimits.inFlightToken / 100,
};
const attacker = "worker:attacker-0123456789:attacker";
const others = ["worker:honest-worker-012345:honest", "operator:operator-0123456789:operator"];

async function started(options: Partial<ServeOptions> = {}) {
  const server = await serve({ ephemeral: true, port: 0, limits: small, ...options });
  onTestFinished(() => server.close(0));
  const url = server.url as string;
  const authorization = (token: string) => ({ authorization: `Bearer ${token.split(":")[1]}` });
  const inFlight = async () => {
    const headers = options.tokens === undefined ? {} : authorization(others[1] as string);
    const { text } = await call(`${url}/metrics`, { headers });
    return Number(/longshore_http_in_flight (\d+)/.exec(text)?.[1]);
  };
  const claim = (headers: Record<string, string>) => {
    const body = '{"worker_id":"honest","labels":[],"wait_secs":0}';
    return call(`${url}/api/jobs/claim`, { method: "POST", body, headers: { "content-type": "application/json", ...headers } });
  };
  return { url, port: server.port as number, inFlight, claim, authorization };
}

/** Conductor's API: a run whose only task is of this type. */
async function startRun(url: string, type: string): Promise<string> {
  const headers = { "content-type": "application/json" };
  const post = (path: string, body: object) => call(`${url}/api${path}`, { method: "POST", headers, body: JSON.stringify(body) });
  const tasks = [{ name: type, taskReferenceName: type, type: "SIMPLE" }];
  await post("/metadata/workflow?overwrite=true", { name: type, schemaVersion: 2, ownerEmail: "a@b.c", tasks });
  return (await post("/workflow", { name: type })).text;
}

/** Claims that wait, one after the other on one connection, without waiting for an answer. */
function pipelineClaims(port: number, count: number, header = ""): void {
  const body = '{"worker_id":"w","labels":[],"wait_secs":30}';
  const claim = `POST /api/jobs/claim HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n${header}content-length: ${body.length}\r\n\r\n${body}`;
  const socket = connect(port, "127.0.0.1");
  socket.on("error", () => {});
  onTestFinished(() => void socket.destroy());
  socket.write(claim.repeat(count));
}

it("pipelined claims on one connection leave every other connection its places", async () => {
  const { url, port, inFlight, claim } = await started();
  pipelineClaims(port, 1_000);
  await until(async () => (await inFlight()) > 5);
  expect((await call(`${url}/health`)).status).toBe(200);
  expect((await claim({})).status).toBe(200);
  // The connection keeps the places that one connection may have, and no more.
  expect(await inFlight()).toBeLessThanOrEqual(httpLimits.inFlightConnection / 100 + 1);
});

it("many connections of one token use only a part of the pool, and other callers keep theirs", async () => {
  const { url, port, inFlight, claim, authorization } = await started({ tokens: [attacker, ...others] });
  const header = `authorization: Bearer ${attacker.split(":")[1]}\r\n`;
  for (let at = 0; at < 30; at++) pipelineClaims(port, 20, header);
  const own = 30 * httpLimits.inFlightOwn;
  await until(async () => (await inFlight()) >= own);
  expect(await inFlight()).toBeLessThanOrEqual(own + httpLimits.inFlightToken / 100 + 1);
  expect((await call(`${url}/health`)).status).toBe(200);
  for (const token of others) expect((await claim(authorization(token))).status).toBe(200);
});

it("health, metrics and a cancellation have a reserve when all places of the server and of their own connection are taken", async () => {
  const { url, port, inFlight } = await started();
  const toCancel = await startRun(url, "attacked");
  for (let at = 0; at < 40; at++) pipelineClaims(port, 20);
  await until(async () => (await inFlight()) >= 40 * httpLimits.inFlightOwn + httpLimits.inFlight / 100);
  const refused = async () => Number(/http_refusals_total\{kind="overloaded"\} (\d+)/.exec((await call(`${url}/metrics`)).text)?.[1]);
  const before = await refused();
  expect(before).toBeGreaterThan(0);

  // The operator's own places have waiting polls in them. What comes next on this connection needs a place of the pool.
  const asked = [...Array<string>(httpLimits.inFlightOwn).fill("GET /api/tasks/poll/batch/own?count=1&timeout=5000")];
  asked.push("GET /health", "GET /metrics", `DELETE /api/workflow/${toCancel}`);
  const socket = connect(port, "127.0.0.1");
  onTestFinished(() => void socket.destroy());
  let answers = "";
  socket.on("data", (bytes) => {
    answers += bytes.toString("latin1");
  });
  socket.write(asked.map((request) => `${request} HTTP/1.1\r\nhost: localhost\r\n\r\n`).join(""));
  const status = async () => (JSON.parse((await call(`${url}/api/workflow/${toCancel}`)).text) as { status: string }).status;
  await until(async () => (await status()) === "TERMINATED" || (await refused()) >= before + 3);
  expect([await status(), await refused()]).toEqual(["TERMINATED", before]);

  // The answers come in the order of the requests, so the polls are answered first.
  for (let at = 0; at < httpLimits.inFlightOwn; at++) await startRun(url, "own");
  const codes = () => [...answers.matchAll(/HTTP\/1\.1 (\d)\d\d /g)].map(([, first]) => first);
  await until(() => codes().length === asked.length);
  expect(codes()).toEqual(asked.map(() => "2"));
});

it("half-sent health checks over HTTP/2 without a token take no place of other callers", async () => {
  const limits = { ...small, inFlightOpen: 10 };
  const { url, port, inFlight, claim, authorization } = await started({ tokens: [attacker, ...others], limits });
  for (let at = 0; at < 21; at++) {
    const session = connectHttp2(`http://127.0.0.1:${port}`);
    session.on("error", () => {});
    onTestFinished(() => session.destroy());
    for (let call = 0; call < 20; call++) {
      const headers = { ":path": "/stepflow.v1.HealthService/HealthCheck", "content-type": "application/grpc", ":method": "POST" };
      const stream = session.request(headers);
      stream.on("error", () => {});
      // The frame announces more than is ever sent.
      stream.write(Buffer.from([0, 0, 0, 0, 9, 1]));
    }
  }
  await until(async () => (await inFlight()) >= 21 * httpLimits.inFlightOwn);
  expect((await call(`${url}/health`)).status).toBe(200);
  for (const token of others) expect((await claim(authorization(token))).status).toBe(200);
  await until(async () => (await inFlight()) <= 21 * httpLimits.inFlightOwn + limits.inFlightOpen + httpLimits.inFlightReserve + 1);
});
