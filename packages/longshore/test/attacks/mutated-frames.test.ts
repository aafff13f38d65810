// The attacker has no token and sends HTTP/2 that is almost correct: wrong lengths, types, flags and streams, wrongly compressed headers,
// incomplete messages. Each connection must end, nothing may stay in memory, and other connections must be served as before.

import { connect } from "node:net";
import fc from "fast-check";
import { expect, it } from "vitest";
import { callFields, field, frame, preface } from "../support/raw-frames.ts";
import { deferred, untilElsewhere } from "../support/until.ts";
import { type GraphServer, startGraphServer } from "../support/workflow-graph.ts";

const conversations = 500;
/** Longer than a connection may be idle. */
const idleMs = 120_000;

const headers = callFields("/stepflow.v1.HealthService/HealthCheck");
const message = Buffer.from([0, 0, 0, 0, 0]);
/** SETTINGS, HEADERS, DATA, WINDOW_UPDATE, PING, RST_STREAM, PRIORITY, GOAWAY, CONTINUATION, and types that do not exist. */
const good = [
  frame(4, 0, 0, Buffer.alloc(0)),
  frame(1, 4, 1, headers),
  frame(0, 1, 1, message),
  frame(8, 0, 0, Buffer.from([0, 0, 255, 255])),
  frame(6, 0, 0, Buffer.alloc(8)),
];

const anyFrame = fc.oneof(
  { weight: 4, arbitrary: fc.constantFrom(...good) },
  fc
    .tuple(fc.nat(12), fc.nat(255), fc.constantFrom(0, 1, 2, 3, 0x7f_ff_ff_ff, 0xff_ff_ff_ff), fc.uint8Array({ maxLength: 40 }))
    .map(([type, flags, stream, payload]) => frame(type, flags, stream, Buffer.from(payload))),
);
const edit = fc.record({ at: fc.nat(), cut: fc.nat(3), put: fc.uint8Array({ maxLength: 3 }) });
const conversation = fc.tuple(fc.array(anyFrame, { maxLength: 6 }), fc.array(edit, { maxLength: 3 })).map(([frames, edits]) => {
  let bytes = Buffer.concat([...good.slice(0, 3), ...frames]);
  for (const { at, cut, put } of edits) {
    const from = at % (bytes.length + 1);
    bytes = Buffer.concat([bytes.subarray(0, from), Buffer.from(put), bytes.subarray(from + cut)]);
  }
  return Buffer.concat([preface, bytes]);
});

/** Sends everything and ends its side. Then lets time pass until the server has closed the connection. */
async function converse({ url, clock }: GraphServer, bytes: Buffer): Promise<number> {
  let received = 0;
  const heard = deferred<void>();
  const socket = connect(Number(new URL(url).port), "127.0.0.1", () => socket.end(bytes));
  socket.on("data", (chunk) => {
    received += chunk.length;
    heard.resolve();
  });
  // A connection that the server resets is also closed.
  socket.on("error", () => {});
  socket.on("close", () => heard.resolve());
  await heard.promise;
  await untilElsewhere(async () => {
    // The server answers some mistakes with GOAWAY, and the connection is idle afterwards.
    if (!socket.closed) await clock.advance(idleMs);
    return socket.closed;
  });
  return received;
}

it(`${conversations} connections with mutated HTTP/2 end, and the server continues`, async () => {
  const server = await startGraphServer();
  expect(await converse(server, Buffer.concat([preface, ...good]))).toBeGreaterThan(50);
  await fc.assert(
    fc.asyncProperty(conversation, async (bytes) => {
      await converse(server, bytes);
    }),
    { numRuns: conversations },
  );
  expect((await server.get("/health")).status).toBe(200);
  expect(await converse(server, Buffer.concat([preface, ...good]))).toBeGreaterThan(50);
});

it("a request that is reset together with its headers has no caller and does not end the server", async () => {
  const server = await startGraphServer();
  const plain = frame(
    1,
    5,
    1,
    Buffer.concat([headers.subarray(0, headers.indexOf("content-type") - 2), field("content-type", "text/plain")]),
  );
  const reset = frame(3, 0, 1, Buffer.alloc(4));
  const call = frame(1, 4, 3, headers);
  const resetCall = frame(3, 0, 3, Buffer.alloc(4));
  const settings = good[0] as Buffer;
  await converse(server, Buffer.concat([preface, settings, plain, reset, call, resetCall]));
  expect((await server.get("/health")).status).toBe(200);
});
