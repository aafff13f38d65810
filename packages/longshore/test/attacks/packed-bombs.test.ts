// The attacker sends gRPC messages that are small when compressed and huge when unpacked, on many streams at once, to an open method. The
// attacker holds no token. The server must stop unpacking at the limit of the method, and unpack few messages at a time. Unpacked bytes
// must count as memory that all callers share.

import { gzipSync } from "node:zlib";
import { expect, it } from "vitest";
import { ByteBudget } from "../../src/core/byte-budget.ts";
import { unary } from "../../src/net/grpc/service.ts";
import { GrpcCode } from "../../src/net/grpc/status.ts";
import { HealthService } from "../../src/protocols/stepflow/wire/services.ts";
import { answerOf, Echo, grpcHead, rawSession, settled, startGrpc } from "../support/grpc.ts";
import { startStepflow } from "../support/stepflow-server.ts";

const gzip = { "grpc-encoding": "gzip" };

function packed(bytes: Buffer): Buffer {
  const body = gzipSync(bytes);
  const frame = Buffer.alloc(5 + body.length);
  frame[0] = 1;
  frame.writeUInt32BE(body.length, 1);
  frame.set(body, 5);
  return frame;
}

it("a compressed bomb to an open method ends at 4 KiB", async () => {
  const { url } = await startStepflow({ tokens: ["operator:operator-0123456789"] });
  const session = rawSession(Number(new URL(url).port));
  await settled(session);
  const bombs = Array.from({ length: 20 }, () => {
    const stream = session.request(grpcHead(HealthService.HealthCheck.path, gzip));
    stream.end(packed(Buffer.alloc(3_000_000)));
    return answerOf(stream);
  });
  for (const { head } of await Promise.all(bombs)) {
    expect(head["grpc-status"]).toBe(String(GrpcCode.RESOURCE_EXHAUSTED));
    expect(head["grpc-message"]).toContain("more than 4096 bytes when unpacked");
  }
  const plain = session.request(grpcHead(HealthService.HealthCheck.path));
  plain.end(Buffer.concat([Buffer.from([0, 0, 0, 0x20, 0]), Buffer.alloc(8_192)]));
  expect((await answerOf(plain)).head).toMatchObject({ "grpc-status": "8" });
});

it("unpacked bytes count as shared memory, and only a few messages are unpacked at a time", async () => {
  const receiving = new Watched(3_000_000);
  const { port, grpc } = await startGrpc([unary(Echo.Say, "task.report", (message) => message)], { receiving });
  const session = rawSession(port);
  await settled(session);
  const message = Buffer.concat([Buffer.from([0x1a, 0x80, 0x89, 0x7a]), Buffer.alloc(2_000_000)]);
  const calls = Array.from({ length: 12 }, () => {
    const stream = session.request(grpcHead(Echo.Say.path, gzip));
    stream.end(packed(message));
    return answerOf(stream);
  });
  const codes = (await Promise.all(calls)).map(({ head, trailers }) => trailers["grpc-status"] ?? head["grpc-status"]);
  expect(new Set(codes)).toEqual(new Set(["0", "8"]));
  // Two messages that are unpacked at the same time need more than the budget. One alone does not.
  expect(receiving.peak).toBeGreaterThan(2_000_000);
  expect(receiving.peak).toBeLessThanOrEqual(3_000_000);
  expect(receiving.held).toBe(0);
  expect(grpc.inflations.running).toBe(0);
  expect(grpc.inflations.most).toBe(2);
});

class Watched extends ByteBudget {
  peak = 0;

  override take(bytes: number): boolean {
    const taken = super.take(bytes);
    this.peak = Math.max(this.peak, this.held);
    return taken;
  }
}
