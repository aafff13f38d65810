// Blob ids: the SHA-256 of the content. The reference writes 64 hex digits and refuses anything else; its worker guide shows them with
// `sha256:` before the digits. We read both forms everywhere. We write only the digits, except in the response to `blobs/put`, where the
// guide prescribes the prefix.

import { createHash } from "node:crypto";
import type { Json } from "../../../core/json/json.ts";

const prefix = "sha256:";

/** The id without its prefix, or undefined when the value is not a blob id. */
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
