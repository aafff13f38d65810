import { describe, expect, it, onTestFinished } from "vitest";
import { callOf } from "../../../../../test/support/stepflow-call.ts";
import type { Json } from "../../../../core/json/json.ts";
import { openEngine } from "../../../../server/engine.ts";
import { BlobLibrary } from "../blob-library.ts";
import { getBlob, putBlob } from "./blobs.ts";

async function setup() {
  const engine = await openEngine({ directory: null });
  onTestFinished(() => engine.close());
  const library = new BlobLibrary(engine.blobs, async (id) => (id === "f".repeat(64) ? '{"steps":[]}' : undefined));
  return {
    library,
    put: async (input: Json) => putBlob(library).perform(callOf("/put_blob", input)),
    get: async (blob_id: Json) => getBlob(library).perform(callOf("/get_blob", { blob_id })),
  };
}

const failure = (code: string, message: string) =>
  expect.objectContaining({ error: expect.objectContaining({ code }), message: expect.stringContaining(message) });

describe("put_blob and get_blob", () => {
  it.each([
    [
      "868591347a854ba1d0f4875b2dd44e1e8335052af03725a9819f89e0142318b0",
      '{"message":"Hello, blobs!","number":42,"nested":{"array":[1,2,3],"boolean":true}}',
    ],
    [
      "aa05cc227a02bd66a2a91fde7500be122d28e87c45832d1aa9cb0b432eef7e04",
      '{"simple":"test","complex":{"deeply":{"nested":{"value":"works"}}}}',
    ],
  ])("give the reference's id %s and the same data back", async (id, text) => {
    const { put, get } = await setup();
    const data: Json = JSON.parse(text);
    expect(await put({ data, blob_type: "data" })).toEqual({ blob_id: id });
    expect(await get(id)).toEqual({ data });
    expect(await get(`sha256:${id}`)).toEqual({ data });
  });

  it("find flows that are kept as definitions", async () => {
    expect(await (await setup()).get("f".repeat(64))).toEqual({ data: { steps: [] } });
  });

  it("report what is wrong with an id, a type, or data that is not JSON", async () => {
    const { library, put, get } = await setup();
    await expect(get("short")).rejects.toThrow(failure("INVALID_INPUT", '"short", expected 64 hexadecimal digits'));
    await expect(get("0".repeat(64))).rejects.toThrow(failure("COMPONENT_FAILED", "there is no blob"));
    const { blobId } = await library.putBytes(Buffer.from([0xff, 0x00]), "x.bin");
    await expect(get(blobId)).rejects.toThrow(failure("COMPONENT_FAILED", "its type is binary"));
    await expect(put({ data: 1, blob_type: "picture" })).rejects.toThrow(failure("INVALID_INPUT", "expected one of data, flow, binary"));
    await expect(put({})).rejects.toThrow(failure("INVALID_INPUT", "data is missing"));
  });
});
