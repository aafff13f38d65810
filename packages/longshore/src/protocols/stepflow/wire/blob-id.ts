// Blob ids: the SHA-256 of the content. The reference writes 64 hex digits and refuses anything else; its worker guide shows them with
// `sha256:` in front. We read both forms everywhere. We write the bare form, except in the answer to `blobs/put`, where the guide
// prescribes the other one.

import { createHash } from "node:crypto";
import type { Json } from "../../../core/json/json.ts";

const prefix = "sha256:";

/** The bare id, or undefined when the value is not a blob id. */
export function blobIdIn(text: unknown): string | undefined {
  if (typeof text !== "string") return undefined;
  const bare = bareBlobId(text);
  return /^[0-9a-f]{64}$/.test(bare) ? bare : undefined;
}

/** The id without `sha256:`. Does not check that the rest is a valid id. */
export function bareBlobId(id: string): string {
  return id.startsWith(prefix) ? id.slice(prefix.length) : id;
}

/** The id as the worker guide writes it. */
export function namedBlobId(id: string): string {
  return `${prefix}${id}`;
}

/** The id of JSON data: the hash of its compact text, with the keys in their original order. */
export function blobIdOfJson(data: Json): string {
  return blobIdOfBytes(Buffer.from(JSON.stringify(data)));
}

export function blobIdOfBytes(bytes: Uint8Array): string {
  return createHash("sha256").update(bytes).digest("hex");
}
