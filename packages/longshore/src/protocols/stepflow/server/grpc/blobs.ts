// BlobService: workers store and read values that are too large for inputs and outputs, and flows that they start.

import type { Json } from "../../../../core/json/json.ts";
import { sortedText } from "../../../../core/json/json-text.ts";
import type { GrpcMethod } from "../../../../net/grpc/service.ts";
import { unary } from "../../../../net/grpc/service.ts";
import { GrpcCode, GrpcError } from "../../../../net/grpc/status.ts";
import type { Encodable } from "../../../../net/protobuf/protobuf.ts";
import { blobIdIn } from "../../wire/blob-id.ts";
import type { GetBlobResponse } from "../../wire/messages.ts";
import { BlobService } from "../../wire/services.ts";
import { type BlobLibrary, type BlobType, blobTypes, type FoundBlob, jsonValueBytesMax } from "../blob-library.ts";
import { invalid, notFound } from "../refuse.ts";

export function blobMethods(blobs: BlobLibrary): GrpcMethod[] {
  return [
    unary(BlobService.PutBlob, "blob.write", ({ jsonData, rawData, blobType, filename }) => {
      const type = typeIn(blobType);
      if (rawData !== undefined) {
        if (type === "flow") throw invalid("blob_type", "is flow, which goes with json_data: a flow is JSON");
        return blobs.putBytes(rawData, filename);
      }
      if (jsonData === undefined) throw invalid("content", "is missing, expected one of json_data and raw_data");
      if (type === "binary") throw invalid("blob_type", "is binary, which goes with raw_data");
      // The keys of a Struct have no order, so they are sorted: the same value must always have the same id.
      return blobs.putJson(sortedText(jsonData), { type: type ?? "data", ...(filename === undefined ? {} : { filename }) });
    }),
    unary(BlobService.GetBlob, "blob.read", async ({ blobId }) => {
      const hash = blobIdIn(blobId);
      if (hash === undefined)
        throw invalid("blob_id", `is ${JSON.stringify(blobId.slice(0, 80))}, expected 64 hexadecimal digits in lower case`);
      const found = await blobs.find(hash);
      if (found === undefined) throw notFound("blob", blobId);
      return contentOf(found, blobs);
    }),
  ];
}

/** Undefined when it is not set. */
function typeIn(text: string): BlobType | undefined {
  if (text === "") return undefined;
  const type = blobTypes.find((known) => known === text);
  if (type === undefined) throw invalid("blob_type", `is ${JSON.stringify(text.slice(0, 80))}, expected one of ${blobTypes.join(", ")}`);
  return type;
}

async function contentOf(found: FoundBlob, blobs: BlobLibrary): Promise<Encodable<typeof GetBlobResponse>> {
  const { blobId, type: blobType, filename, bytes, content } = found;
  const about = { blobId, blobType, ...(filename === undefined ? {} : { filename, contentType: "application/octet-stream" }) };
  if (bytes > jsonValueBytesMax) {
    content.destroy();
    const message = `blob '${blobId}' has ${bytes} bytes, more than the ${jsonValueBytesMax} of a message: read it by GET /api/v1/blobs/${blobId}`;
    throw new GrpcError(GrpcCode.RESOURCE_EXHAUSTED, message);
  }
  if (blobType === "binary") return { ...about, rawData: await blobs.bytes(found) };
  const text = await blobs.jsonText(found);
  // A blob that another API stored may be any bytes.
  if (text === undefined) return { ...about, rawData: await rereadAsBytes(found, blobs) };
  return { ...about, jsonData: JSON.parse(text) as Json };
}

async function rereadAsBytes({ blobId }: FoundBlob, blobs: BlobLibrary): Promise<Uint8Array> {
  const found = await blobs.find(blobId);
  if (found === undefined) throw notFound("blob", blobId);
  return blobs.bytes(found);
}
