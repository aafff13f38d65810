// Calls of a gRPC server whose bytes a test writes itself.

import { frameOf } from "../../src/net/grpc/frame.ts";
import { type GrpcCall, type GrpcMethod, unary } from "../../src/net/grpc/service.ts";
import { answerOf, Echo, grpcHead, rawSession, Text } from "./grpc.ts";

export const say = (handle: (text: string, call: GrpcCall) => string | Promise<string> = (text) => text): GrpcMethod =>
  unary(Echo.Say, "server.health", async (request, call) => ({ text: await handle(request.text, call) }));

export const textFrame = (text: string, more: { count?: number; blob?: Uint8Array } = {}): Buffer =>
  frameOf(Text.encode({ text, ...more }));

/** A call whose bytes the test writes. */
export function rawCall(port: number, path: string, more: Record<string, string> = {}) {
  const session = rawSession(port);
  const stream = session.request(grpcHead(path, more));
  return { session, stream, answer: answerOf(stream) };
}

export async function rawUnary(port: number, body: Buffer, more: Record<string, string> = {}, path: string = Echo.Say.path) {
  const { stream, answer } = rawCall(port, path, more);
  stream.end(body);
  return answer;
}
