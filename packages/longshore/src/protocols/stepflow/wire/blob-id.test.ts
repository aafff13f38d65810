import { expect, it } from "vitest";
import { blobIdIn, blobIdOfBytes, blobIdOfJson } from "./blob-id.ts";

const golden = {
  "868591347a854ba1d0f4875b2dd44e1e8335052af03725a9819f89e0142318b0": {
    message: "Hello, blobs!",
    number: 42,
    nested: { array: [1, 2, 3], boolean: true },
  },
  aa05cc227a02bd66a2a91fde7500be122d28e87c45832d1aa9cb0b432eef7e04: {
    simple: "test",
    complex: { deeply: { nested: { value: "works" } } },
  },
};

it("[S-HTTP-29] a blob's id is the SHA-256 of its data, so the same data has the same id", () => {
  for (const [id, data] of Object.entries(golden)) {
    expect(blobIdOfJson(data)).toBe(id);
    expect(blobIdOfJson(structuredClone(data))).toBe(id);
    expect(blobIdOfBytes(Buffer.from(JSON.stringify(data)))).toBe(id);
  }
});

it("[S-HTTP-29] an id is accepted with and without its prefix, and no other form is", () => {
  const id = Object.keys(golden)[0] as string;
  expect([id, `sha256:${id}`].map(blobIdIn)).toEqual([id, id]);
  expect([id.slice(1), id.toUpperCase(), `md5:${id}`, "", 5, undefined].map(blobIdIn)).toEqual(Array(6).fill(undefined));
});
