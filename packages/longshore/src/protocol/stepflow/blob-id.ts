// How blobs are named: by the SHA-256 of what they hold. The reference writes 64 digits of hex and refuses anything else; its worker
// guide shows them with `sha256:` in front. So both are understood, and the bare form is written.

import { createHash } from "node:crypto";
import type { Json } from "../../json.ts";

const prefix = "sha256:";

/** The bare id, or undefined for what is none. */
export function blobIdIn(text: unknown): string | undefined {
  if (typeof text !== "string") return undefined;
  const bare = text.startsWith(prefix) ? text.slice(prefix.length) : text;
  return /^[0-9a-f]{64}$/.test(bare) ? bare : undefined;
}

/** The id of JSON data: its compact text, keys in the order they came, is hashed. */
export function blobIdOfJson(data: Json): string {
  return blobIdOfBytes(Buffer.from(JSON.stringify(data)));
}

export function blobIdOfBytes(bytes: Uint8Array): string {
  return createHash("sha256").update(bytes).digest("hex");
}
