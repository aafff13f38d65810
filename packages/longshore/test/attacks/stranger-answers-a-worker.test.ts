// The attacker answers in the place of a service that a worker calls: the blob API of a Stepflow runtime, or a telemetry collector. The
// response does not end, or redirects the worker to an address that only the worker can reach. The worker must not follow redirects,
// because it would send its headers there. It must read no more than it can use.

import { expect, it, onTestFinished, vi } from "vitest";
import { HttpAgent } from "../../src/net/http/agent.ts";
import { getBlob, putJson } from "../../src/protocols/stepflow/worker/http/blob-api.ts";
import { type TelemetryOptions, telemetry } from "../../src/telemetry/index.ts";
import { TestClock } from "../../src/testing/clock.ts";
import { foreignServer } from "../support/foreign-http.ts";

/** An address that the attacker cannot reach, and one that redirects to it. */
async function inside() {
  const reached: string[] = [];
  const secret = await foreignServer((request, response) => {
    reached.push(`${request.method} ${request.headers["x-key"] ?? ""}`);
    response.end('{"data":"secret","blobId":"secret"}');
  });
  const leading = await foreignServer((request, response) => {
    request.resume();
    response.writeHead(307, { location: `${secret}/internal` }).end();
  });
  return { reached, leading };
}

it("blobs are not fetched from the target of a redirect", async () => {
  const { reached, leading } = await inside();
  const http = new HttpAgent(1);
  onTestFinished(() => http.close());
  const options = { url: leading, http, clock: new TestClock(), signal: new AbortController().signal, trace: undefined };
  await expect(getBlob("any", options)).rejects.toThrow(/answered 307/);
  await expect(putJson("any", "data", options)).rejects.toThrow(/answered 307/);
  expect(reached).toEqual([]);
});

/** Exports one log record over HTTP, and returns what the worker reports about it. */
async function exporting(endpoint: string, protocol: "http/json" | "http/protobuf", more: TelemetryOptions = {}): Promise<string> {
  const texts: string[] = [];
  const write = vi.spyOn(process.stderr, "write").mockImplementation((text) => texts.push(String(text)) > 0);
  onTestFinished(() => write.mockRestore());
  const { logger, close } = await telemetry({ endpoint, protocol, env: {}, ...more });
  logger({ level: "info", message: "hello" });
  await close();
  return texts.join("");
}

const protocols = ["http/json", "http/protobuf"] as const;

it.each(protocols)("telemetry and its key are not sent to the target of a redirect, over %s", async (protocol) => {
  const { reached, leading } = await inside();
  expect(await exporting(leading, protocol, { headers: { "x-key": "key" } })).toMatch(/answered 307.*lost 1 log records/s);
  expect(reached).toEqual([]);
});

it.each(protocols)("only the usable part of an endless collector response is read, over %s", async (protocol) => {
  const piece = Buffer.alloc(1_048_576, "x");
  const piecesMax = 64;
  let written = 0;
  let closed = () => {};
  const over = new Promise<void>((resolve) => {
    closed = resolve;
  });
  const endless = await foreignServer((request, response) => {
    request.resume();
    response.once("close", closed);
    const write = () => {
      while (written < piecesMax && !response.destroyed) {
        written++;
        if (!response.write(piece)) return void response.once("drain", write);
      }
      response.end();
    };
    write();
  });
  await exporting(endless, protocol);
  await over;
  expect(written).toBeLessThan(piecesMax / 2);
});
