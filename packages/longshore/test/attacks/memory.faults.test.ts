// The attacks on the server's memory at full size, on the built program. During each, the server's memory must stay below a limit that
// results from its budgets, and the server must still respond. The test prints the largest peak that Linux reports for the process.

import { readFileSync } from "node:fs";
import { connect as connectHttp2 } from "node:http2";
import { connect, type Socket } from "node:net";
import { gzipSync } from "node:zlib";
import { expect, it, onTestFinished } from "vitest";
import { HealthService } from "../../src/protocols/stepflow/wire/services.ts";
import { startServer } from "../support/cli.ts";
import { answerOf, grpcHead } from "../support/grpc.ts";
import { call } from "../support/http.ts";

const token = "operator-0123456789";
const bearer = `authorization: Bearer ${token}\r\n`;
/** Both complete budgets, the memory of their bytes as texts, and the program itself. */
const peakMax = 1_200_000_000;

async function started() {
  const server = await startServer(["--ephemeral", "--token", `operator:${token}`]);
  const peak = () => Number(/VmHWM:\s+(\d+) kB/.exec(readFileSync(`/proc/${server.pid}/status`, "utf8"))?.[1]) * 1_024;
  const judge = async (what: string) => {
    expect((await call(`${server.url}/health`)).status).toBe(200);
    process.stdout.write(`${what}: at most ${Math.round(peak() / 1e6)} MB\n`);
    expect(peak()).toBeLessThan(peakMax);
  };
  return { ...server, judge };
}

/** Sends and keeps the connection. Resolves when the other side has read everything or has responded. */
function send(port: number, parts: readonly string[], reads: boolean): Promise<Socket> {
  const socket = connect(port, "127.0.0.1");
  onTestFinished(() => void socket.destroy());
  return new Promise((resolve) => {
    socket.on("error", () => resolve(socket));
    if (reads) socket.on("data", () => resolve(socket));
    else socket.pause();
    for (const part of parts) socket.write(part);
    socket.write("", () => resolve(socket));
  });
}

const elevenMebibytes = "x".repeat(11 * 1_048_576);
const unfinished = (path: string, head = "") =>
  `POST ${path} HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n${head}content-length: 12000000\r\n\r\n`;

it("300 connections that begin 11 MiB without a token", async () => {
  const { port, judge } = await started();
  await Promise.all(Array.from({ length: 300 }, () => send(port, [unfinished("/api/token"), elevenMebibytes], true)));
  await judge("300 unfinished bodies without a token");
});

it("300 connections that begin 11 MiB with a token", async () => {
  const { port, judge } = await started();
  await Promise.all(Array.from({ length: 300 }, () => send(port, [unfinished("/api/tasks", bearer), elevenMebibytes], true)));
  await judge("300 unfinished bodies with a token");
});

it("60 streams of packed messages that unpack to 64 MiB", async () => {
  const { url, judge } = await started();
  const packed = gzipSync(Buffer.alloc(64 * 1_048_576));
  const head = Buffer.alloc(5);
  head[0] = 1;
  head.writeUInt32BE(packed.length, 1);
  const session = connectHttp2(url);
  onTestFinished(() => session.destroy());
  const calls = Array.from({ length: 60 }, () => {
    const stream = session.request(grpcHead(HealthService.HealthCheck.path, { "grpc-encoding": "gzip" }));
    stream.end(Buffer.concat([head, packed]));
    return answerOf(stream);
  });
  for (const answer of await Promise.all(calls)) expect(answer.head["grpc-status"]).toBe("8");
  await judge("60 packed messages");
});

it("60 readers of a large blob that never read", async () => {
  const { url, port, judge } = await started();
  const headers = { authorization: `Bearer ${token}`, "content-type": "application/json" };
  const stored = await call(`${url}/api/v1/blobs`, { method: "POST", headers, body: JSON.stringify({ data: "x".repeat(15_000_000) }) });
  const { blobId } = JSON.parse(stored.text) as { blobId: string };
  const ask = `GET /api/v1/blobs/${blobId} HTTP/1.1\r\nhost: localhost\r\n${bearer}\r\n`;
  await Promise.all(Array.from({ length: 60 }, () => send(port, [ask], false)));
  await judge("60 readers that never read");
});

it("60 readers of the events of a run with 13 MB of inputs that never read", async () => {
  const { url, port, pid } = await started();
  const headers = { authorization: `Bearer ${token}`, "content-type": "application/json" };
  const post = async (path: string, body: object) =>
    JSON.parse((await call(`${url}/api/v1${path}`, { method: "POST", headers, body: JSON.stringify(body) })).text) as never;
  const steps = [{ id: "a", component: "/builtin/put_blob", input: { data: { $input: "x" }, blob_type: "data" } }];
  const { flowId } = (await post("/flows", { flow: { steps, output: { $input: "x" } } })) as { flowId: string };
  const input = Array.from({ length: 13 }, () => ({ x: "y".repeat(1_000_000) }));
  const { summary } = (await post("/runs", { flowId, input, wait: true })) as { summary: { runId: string } };
  const resident = () => Number(/VmRSS:\s+(\d+) kB/.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1]) * 1_024;
  const before = resident();
  let most = before;
  for (const query of ["", "?includeResults=true"]) {
    const ask = `GET /api/v1/runs/${summary.runId}/events${query} HTTP/1.1\r\nhost: localhost\r\n${bearer}\r\n`;
    await Promise.all(Array.from({ length: 60 }, () => send(port, [ask], false)));
    for (let looks = 0; looks < 100; looks++) {
      expect((await call(`${url}/health`)).status).toBe(200);
      most = Math.max(most, resident());
    }
  }
  process.stdout.write(`60 readers of events: ${Math.round((most - before) / 1e6)} MB more\n`);
  expect(most - before).toBeLessThan(150_000_000);
});

it("bodies of 12 MB that are lists of empty lists, one after the other", async () => {
  const { url, judge } = await started();
  const headers = { authorization: `Bearer ${token}`, "content-type": "application/json" };
  const lists = `[${"[],".repeat(4_000_000)}[]]`;
  const bodies: [path: string, body: string][] = [
    ["/api/v1/blobs", `{"data":${lists}}`],
    ["/api/v1/flows", `{"flow":{"output":${lists}}}`],
    ["/api/v1/runs", `{"flowId":"x","input":${lists}}`],
    ["/api/workflow/w", `{"x":${lists}}`],
  ];
  for (const [path, body] of bodies) expect((await call(`${url}${path}`, { method: "POST", headers, body })).status).toBe(413);
  await judge("12 MB of empty lists");
});
