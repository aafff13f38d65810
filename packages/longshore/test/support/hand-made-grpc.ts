// A gRPC server whose responses a test writes itself, and the frames that it sends.

import type { createServer as createHttp } from "node:http";
import { createServer as createHttp2, type OutgoingHttpHeaders, type ServerHttp2Stream } from "node:http2";
import type { AddressInfo, Server } from "node:net";
import { onTestFinished } from "vitest";
import { frameOf } from "../../src/net/grpc/frame.ts";
import { Text } from "./grpc.ts";

export async function listening(server: Server | ReturnType<typeof createHttp2> | ReturnType<typeof createHttp>): Promise<string> {
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  onTestFinished(() => void server.close());
  return `127.0.0.1:${(server.address() as AddressInfo).port}`;
}

/** A server whose responses the test writes. */
export async function handMade(answer: (stream: ServerHttp2Stream, count: number) => void): Promise<string> {
  let count = 0;
  const server = createHttp2();
  server.on("sessionError", () => {});
  server.on("session", (session) => onTestFinished(() => session.destroy()));
  server.on("stream", (stream) => {
    stream.on("error", () => {});
    stream.resume();
    answer(stream, ++count);
  });
  return listening(server);
}

export const grpcType = { ":status": 200, "content-type": "application/grpc" };

/** Sends one message and this status. */
export function answerWith(
  stream: ServerHttp2Stream,
  body: Buffer,
  trailers: Record<string, string> = { "grpc-status": "0" },
  head: object = {},
): void {
  stream.respond({ ...grpcType, ...head }, { waitForTrailers: true });
  stream.on("wantTrailers", () => stream.sendTrailers(trailers));
  stream.end(body);
}

/** Sends only the response headers. */
export const respondWith = (head: OutgoingHttpHeaders) => (stream: ServerHttp2Stream) => {
  stream.respond(head);
  stream.end();
};

export const textFrame = (text: string): Buffer => frameOf(Text.encode({ text }));
