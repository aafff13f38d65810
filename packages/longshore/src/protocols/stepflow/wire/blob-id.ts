// How blobs are named: by the SHA-256 of what they hold. The reference writes 64 digits of hex and refuses anything else; its worker
// guide shows them with `sha256:` in front. So both are understood everywhere. The bare form is written, except where the guide prescribes
// the other: in the answer to `blobs/put`.

import { createHash } from "node:crypto";
import type { Json } from "../../../core/json/json.ts";

const prefix = "sha256:";

/** The bare id, or undefined for what is none. */
export function blobIdIn(text: unknown): string | undefined {
  if (typeof text !== "string") return undefined;
  const bare = bareBlobId(text);
  return /^[0-9a-f]{64}$/.test(bare) ? bare : undefined;
}

/** The id without the name of its hash. The keeper of blobs decides whether it is valid. */
export function bareBlobId(id: string): string {
  return id.startsWith(prefix) ? id.slice(prefix.length) : id;
}

/** The id as the worker guide writes it. */
export function namedBlobId(id: string): string {
  return `${prefix}${id}`;
}

/** The id of JSON data: its compact text, keys in the order they came, is hashed. */
export function blobIdOfJson(data: Json): string {
  return blobIdOfBytes(Buffer.from(JSON.stringify(data)));
}

export function blobIdOfBytes(bytes: Uint8Array): string {
  return createHash("sha256").update(bytes).digest("hex");
}
