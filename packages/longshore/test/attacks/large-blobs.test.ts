// The attacker holds a worker token, stores JSON of megabytes as plain bytes, and reads it many times at once as a Stepflow value. The server
// must check whether it is JSON. Only one such content may be in memory at a time, and it must be read in slices.

import { Readable } from "node:stream";
import { expect, it, vi } from "vitest";
import { sliceChars } from "../../src/core/json/json-slices.ts";
import { BlobService } from "../../src/protocols/stepflow/wire/services.ts";
import { type StepflowServer, startStepflow } from "../support/stepflow-server.ts";

const readers = 6;
const list = JSON.stringify(Array.from({ length: 1_000 }, () => "x".repeat(1_000)));

/** Stores the text as bytes of an unknown type. */
async function store(server: StepflowServer, text: string): Promise<string> {
  return (await server.engine.blobs.put(Buffer.from(text))).hash;
}

/** Counts the contents that are read at the same time. */
function countReadings(server: StepflowServer): { most: number } {
  const count = { most: 0 };
  let now = 0;
  const { blobs } = server.engine;
  const get = blobs.get.bind(blobs);
  vi.spyOn(blobs, "get").mockImplementation(async (hash) => {
    const found = await get(hash);
    if (found === undefined) return undefined;
    const counted = async function* () {
      count.most = Math.max(count.most, ++now);
      yield* found.content;
      now--;
    };
    return { ...found, content: Readable.from(counted(), { objectMode: false, highWaterMark: 0 }) };
  });
  return count;
}

it.each([
  ["JSON", list],
  ["bytes", `${list}, which is not JSON`],
])("of many that read %s over gRPC, one is in memory at a time", async (_what, text) => {
  const server = await startStepflow();
  const blobId = await store(server, text);
  const count = countReadings(server);
  const answers = await Promise.all(Array.from({ length: readers }, () => server.channel.unary(BlobService.GetBlob, { blobId })));
  expect(
    answers.every(({ jsonData, rawData }) => JSON.stringify(jsonData) === text || Buffer.from(rawData ?? []).toString() === text),
  ).toBe(true);
  expect(count.most).toBe(1);
});

it("over REST it is read in slices, and sent in pieces as it was stored", async () => {
  const server = await startStepflow();
  const blobId = await store(server, list);
  const parse = vi.spyOn(JSON, "parse");
  const answers = await Promise.all(Array.from({ length: readers }, () => fetch(`${server.url}/api/v1/blobs/${blobId}`)));
  const texts = await Promise.all(answers.map((answer) => answer.text()));
  const longest = Math.max(0, ...parse.mock.calls.map(([text]) => text.length));
  parse.mockRestore();
  expect(texts).toEqual(texts.map(() => `{"data":${list},"blobType":"data","blobId":"${blobId}"}`));
  expect(answers.map(({ headers }) => headers.get("transfer-encoding"))).toEqual(answers.map(() => "chunked"));
  expect(longest).toBeLessThanOrEqual(sliceChars);
});

it.each([
  ["nests deeper than a request may", "[".repeat(60_000) + "]".repeat(60_000)],
  ["is not UTF-8", Buffer.from([0x22, 0xff, 0x22])],
  ["has a byte order mark", "\uFEFF[]"],
])("what %s is bytes and no value", async (_what, content) => {
  const server = await startStepflow();
  const blobId = (await server.engine.blobs.put(Buffer.from(content))).hash;
  expect((await server.call("GET", `/blobs/${blobId}`)).body).toMatchObject({ data: null });
  const answer = await server.channel.unary(BlobService.GetBlob, { blobId });
  expect(Buffer.from(answer.rawData as Uint8Array)).toEqual(Buffer.from(content));
});
