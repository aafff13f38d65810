// The first bytes of an HTTP/2 client (RFC 9113, section 3.4). No HTTP/1.1 request begins with them.

const preface = Buffer.from("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "latin1");

/** Whether the first bytes of a connection are the whole preface, a beginning of it, or something else. */
export function prefaceIn(bytes: Buffer): "whole" | "begun" | "none" {
  // Nearly every request is HTTP/1.1, and its first bytes differ from the preface.
  if (bytes[0] !== preface[0]) return "none";
  const length = Math.min(bytes.length, preface.length);
  if (preface.compare(bytes, 0, length, 0, length) !== 0) return "none";
  return length === preface.length ? "whole" : "begun";
}
