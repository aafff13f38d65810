// Reads the one shape of request that workers send all day: an HTTP/1.1 head and its body, whole, and nothing else in the same bytes.
// Whatever is in any way unusual is not understood here, and so left to node:http: that is what keeps this short and safe. Two parsers that
// read the same bytes differently are how requests are smuggled, so every rule below is narrower than RFC 9112 and than Node's parser.

import type { IncomingHttpHeaders } from "node:http";

export interface DirectRequest {
  readonly method: string;
  readonly url: string;
  readonly headers: IncomingHttpHeaders;
  readonly body: Buffer;
}

/** Bytes of one request, body included: what one read of a socket brings. */
export const directBytesMax = 65_536;

/**
 * The whole head up to its empty line. No absolute or empty target, no character that a URL may not have; names of letters, digits and
 * hyphens; values of printable ASCII, neither empty nor with a space at their ends; no folded lines, no bare CR or LF.
 * Each part ends at a character that it cannot hold, so that matching takes linear time.
 */
const headShape = /^(?:GET|POST|PUT|DELETE) \/[A-Za-z0-9\-._~:/?@!$&'()*+,;=%]* HTTP\/1\.1(?:\r\n[A-Za-z0-9-]+: ?[!-~](?:[ -~]*[!-~])?)+$/;

/** Headers that change how a message is framed, or what becomes of its connection; and one that Node makes a list of. */
const left = new Set(["transfer-encoding", "expect", "upgrade", "te", "trailer", "proxy-connection", "http2-settings", "set-cookie"]);

const length = /^(?:0|[1-9][0-9]{0,5})$/;
const headEnd = Buffer.from("\r\n\r\n");

/** Undefined when these bytes are not exactly one request of that shape. The body shares the memory of `bytes`. */
export function readDirect(bytes: Buffer, headBytesMax: number): DirectRequest | undefined {
  if (bytes.length > directBytesMax) return undefined;
  const end = bytes.indexOf(headEnd);
  if (end < 0 || end > headBytesMax) return undefined;
  const head = bytes.toString("latin1", 0, end);
  if (!headShape.test(head)) return undefined;
  const headers = readHeaders(head, head.indexOf("\r\n"));
  if (headers === undefined || headers.host === undefined) return undefined;
  const announced = headers["content-length"];
  const bodyAt = end + headEnd.length;
  if (bytes.length - bodyAt !== (announced === undefined ? 0 : Number(announced))) return undefined;
  const methodEnd = head.indexOf(" ");
  const url = head.slice(methodEnd + 1, head.indexOf(" ", methodEnd + 1));
  return { method: head.slice(0, methodEnd), url, headers, body: bytes.subarray(bodyAt) };
}

/** Undefined for a name that comes twice, and for what is not left to us. */
function readHeaders(head: string, from: number): IncomingHttpHeaders | undefined {
  const headers: IncomingHttpHeaders = {};
  let at = from;
  while (at >= 0) {
    const colon = head.indexOf(":", at);
    const next = head.indexOf("\r\n", colon);
    const name = head.slice(at + 2, colon).toLowerCase();
    const valueAt = head.charCodeAt(colon + 1) === space ? colon + 2 : colon + 1;
    const value = next < 0 ? head.slice(valueAt) : head.slice(valueAt, next);
    if (headers[name] !== undefined || left.has(name)) return undefined;
    if (name === "connection" && value.toLowerCase() !== "keep-alive") return undefined;
    if (name === "content-length" && !length.test(value)) return undefined;
    headers[name] = value;
    at = next;
  }
  return headers;
}

const space = 0x20;
