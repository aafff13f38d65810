// The metadata of a call: its HTTP/2 headers without HTTP/2's own pseudo-headers.
import type { IncomingHttpHeaders } from "node:http2";
import { GrpcCode, GrpcError } from "./status.ts";

/** Names are in lower case; several values of one name are joined by a comma. */
export function metadataOf(headers: IncomingHttpHeaders): Record<string, string> {
  const metadata: Record<string, string> = {};
  for (const [name, value] of Object.entries(headers)) {
    if (name.startsWith(":") || value === undefined) continue;
    metadata[name] = Array.isArray(value) ? value.join(", ") : value;
  }
  return metadata;
}

/** Refuses a call whose headers are larger than this. Node announces the limit to peers but does not enforce it. */
export function refuseMetadata(headers: IncomingHttpHeaders, bytesMax: number): GrpcError | undefined {
  const bytes = metadataBytes(headers);
  if (bytes <= bytesMax) return undefined;
  return new GrpcError(GrpcCode.RESOURCE_EXHAUSTED, `The call has ${bytes} bytes of metadata, the limit is ${bytesMax}.`);
}

/** The size as HTTP/2 counts a header list. */
function metadataBytes(headers: IncomingHttpHeaders): number {
  let bytes = 0;
  for (const name in headers) bytes += name.length + (headers[name]?.length ?? 0) + 32;
  return bytes;
}
