// Blobs: bytes too large to travel inside inputs and outputs, addressed by the SHA-256 of their content.

import { z } from "zod";
import { LongshoreError } from "../../../core/errors.ts";
import { inTurns } from "../../../core/slices/slice-work.ts";
import { hasTextInSlices } from "../../../core/text-search.ts";
import { blobBytesMax, isBlobHash } from "../../../engine/blob/blob.ts";
import type { Run } from "../../../engine/run/run.ts";
import type { HttpRequest } from "../../../net/http/http.ts";
import type { ProtocolEngine } from "../../server-half.ts";
import { json, type Operation, operation, rawOperation } from "./operation.ts";
import { knownRun } from "./runs.ts";

const tag = "blobs";
const anyType = "application/octet-stream";

const blobShape = z
  .object({ hash: z.string().describe("SHA-256 of the content, 64 hexadecimal digits."), bytes: z.number().int() })
  .meta({ id: "Blob" });

const body = { read: "stream", contentTypes: [anyType], description: `The content, at most ${blobBytesMax} bytes.` } as const;
const stored = {
  201: { description: "The content is stored. Content that is sent several times is stored only once.", schema: blobShape },
  507: { description: "All blobs together have reached the quota." },
};

type BlobDeps = Pick<ProtocolEngine, "blobs" | "reader" | "slices">;

export function blobOperations(deps: BlobDeps): Operation[] {
  const { blobs, reader } = deps;
  const contentOf = async (hash: string) => {
    const found = await blobs.get(hash);
    if (found === undefined) throw noBlob(hash);
    const headers = { "content-type": anyType, "content-length": String(found.bytes), etag: `"${hash}"` };
    return { status: 200, headers, body: found.content };
  };
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
      handle: ({ params: { hash } }) => contentOf(hash as string),
    }),
    operation({
      ...{ id: "getRunBlob", tag, method: "GET", path: "/runs/:id/blobs/:hash", action: "blob.show", stored: true },
      summary: "Read content whose hash is in the input, output or variables of a run, or in the input or output of one of its steps.",
      openEnded: true,
      answers: {
        200: { description: "The content.", contentType: anyType },
        404: { description: "There is no such run or blob, or the run does not refer to it." },
      },
      async handle({ params: { id, hash } }) {
        const run = await knownRun((runId) => reader.run(runId), id);
        if (!isBlobHash(hash as string) || !(await refersTo(deps, run, hash as string))) throw noBlob(hash as string);
        return contentOf(hash as string);
      },
    }),
  ];
}

function noBlob(hash: string): LongshoreError {
  return new LongshoreError("LONGSHORE_NOT_FOUND", `There is no blob ${hash}.`, { detail: { field: "hash" } });
}

async function refersTo({ reader, slices }: BlobDeps, run: Run, hash: string): Promise<boolean> {
  const has = async (...texts: readonly (string | null)[]) => {
    for (const text of texts) if (text !== null && (await inTurns(hasTextInSlices(text, hash), slices))) return true;
    return false;
  };
  if (await has(run.input, run.output, run.variables)) return true;
  for await (const { input, output } of reader.records(run.id)) if (await has(input, output)) return true;
  return false;
}
