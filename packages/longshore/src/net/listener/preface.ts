// The bytes by which a client uses HTTP/2 without an upgrade (RFC 9113, section 3.4): they come first, and begin no other request.

const preface = Buffer.from("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "latin1");

/** Whether what a connection began with is the preface: wholly, as far as it has come, or not at all. */
export function prefaceIn(bytes: Buffer): "whole" | "begun" | "none" {
  // Nearly every request is HTTP/1.1, and differs in its first two bytes.
  if (bytes[0] !== preface[0]) return "none";
  const length = Math.min(bytes.length, preface.length);
  if (preface.compare(bytes, 0, length, 0, length) !== 0) return "none";
  return length === preface.length ? "whole" : "begun";
}
