// Blobs: bytes too large to travel inside inputs and outputs, addressed by the SHA-256 of their content.

import { z } from "zod";
import { LongshoreError } from "../../../core/errors.ts";
import { blobBytesMax } from "../../../engine/blob/blob.ts";
import type { HttpRequest } from "../../../net/http/http.ts";
import type { ProtocolEngine } from "../../server-half.ts";
import { json, type Operation, operation, rawOperation } from "./operation.ts";

const tag = "blobs";
const anyType = "application/octet-stream";

const blobShape = z
  .object({ hash: z.string().describe("SHA-256 of the content, 64 hexadecimal digits."), bytes: z.number().int() })
  .meta({ id: "Blob" });

const body = { read: "stream", contentTypes: [anyType], description: `The content, at most ${blobBytesMax} bytes.` } as const;
const stored = {
  201: { description: "It is stored; the same content again is stored once.", schema: blobShape },
  507: { description: "All blobs together have reached the quota." },
};

type BlobDeps = Pick<ProtocolEngine, "blobs">;

export function blobOperations({ blobs }: BlobDeps): Operation[] {
  const put = async (request: HttpRequest, hash: string | undefined) => {
    const blob = await blobs.put(request.stream, { hash });
    return json(201, { hash: blob.hash, bytes: blob.bytes });
  };
  return [
    rawOperation({
      ...{ id: "storeBlob", tag, method: "POST", path: "/blobs", action: "blob.write", bodyMax: blobBytesMax },
      summary: "Store content.",
      body,
      answers: stored,
      handle: (request) => put(request, undefined),
    }),
    rawOperation({
      ...{ id: "putBlob", tag, method: "PUT", path: "/blobs/:hash", action: "blob.write", bodyMax: blobBytesMax },
      summary: "Store content whose hash is known; content that does not match is refused.",
      body,
      answers: stored,
      handle: (request) => put(request, request.params.hash as string),
    }),
    operation({
      ...{ id: "getBlob", tag, method: "GET", path: "/blobs/:hash", action: "blob.read", stored: true },
      summary: "Read content.",
      openEnded: true,
      answers: { 200: { description: "The content.", contentType: anyType }, 404: { description: "There is no such blob." } },
      async handle({ params: { hash } }) {
        const found = await blobs.get(hash as string);
        if (found === undefined)
          throw new LongshoreError("LONGSHORE_NOT_FOUND", `There is no blob ${hash}.`, { detail: { field: "hash" } });
        const headers = { "content-type": anyType, "content-length": String(found.bytes), etag: `"${hash}"` };
        return { status: 200, headers, body: found.content };
      },
    }),
  ];
}
