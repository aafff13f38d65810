// Reads the one form of request that workers send most: a complete HTTP/1.1 request with its body, and nothing else in the same bytes.
// Every unusual request is left to node:http, which keeps this parser short and safe. Two parsers that read the same bytes differently make
// request smuggling possible. So every rule below is stricter than RFC 9112 and Node's parser. A property test checks that Node reads each
// accepted request in the same way.

import type { IncomingHttpHeaders } from "node:http";

export interface DirectRequest {
  readonly method: string;
  readonly url: string;
  readonly headers: IncomingHttpHeaders;
  readonly body: Buffer;
}

/** The limit of one request including its body: the size of one read of a socket. */
export const directBytesMax = 65_536;

/**
 * All lines before the body, including the empty line. The target is neither absolute nor empty, and has only characters that a URL may
 * contain. Names consist of letters, digits and hyphens. Values are printable ASCII, are not empty, and have no space at their ends. There
 * are no folded lines, and no bare CR or LF. Each part ends at a character that it cannot contain, so that matching takes linear time.
 */
export const headShape =
  /^(?:GET|POST|PUT|DELETE) \/[A-Za-z0-9\-._~:/?@!$&'()*+,;=%]* HTTP\/1\.1(?:\r\n[A-Za-z0-9-]+: ?[!-~](?:[ -~]*[!-~])?)+$/;

/**
 * Headers that are left to node:http: they change how a message is framed, or what happens to its connection. One is in the list because
 * Node turns it into an array.
 */
const left = new Set(["transfer-encoding", "expect", "upgrade", "te", "trailer", "proxy-connection", "http2-settings", "set-cookie"]);

const length = /^(?:0|[1-9][0-9]{0,5})$/;
/** Between the headers and the body. */
export const headEnd = Buffer.from("\r\n\r\n");

/** Returns undefined when these bytes are not exactly one request of that form. The body shares the memory of `bytes`. */
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

/** Returns undefined for a duplicate name, and for headers that are left to node:http. */
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
