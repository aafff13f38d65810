// The beginning of a TLS connection: whether the first message of the client, its ClientHello, has arrived completely. Only its frame is
// read (RFC 8446, sections 4 and 5.1); OpenSSL reads the rest.

const recordHeadBytes = 5;
const handshakeHeadBytes = 4;
const handshakeRecord = 22;
const clientHello = 1;
/** The limit of a ClientHello with its records: those of browsers and libraries have 200 to 2,000 bytes, with tickets a few thousand. */
const helloBytesMax = 16_384;

/** `none`: the bytes do not begin a ClientHello, or one that is too large. */
export function helloIn(bytes: Buffer): "whole" | "begun" | "none" {
  let held = 0;
  let wanted = handshakeHeadBytes;
  const head: number[] = [];
  let at = 0;
  while (at < bytes.length) {
    if (bytes[at] !== handshakeRecord || (bytes[at + 1] ?? 3) !== 3) return "none";
    if (at + recordHeadBytes > bytes.length) return "begun";
    const end = at + recordHeadBytes + bytes.readUInt16BE(at + 3);
    if (end > helloBytesMax) return "none";
    // A record without content would let a hello of any length be none.
    if (end === at + recordHeadBytes) return "none";
    const piece = bytes.subarray(at + recordHeadBytes, end);
    for (let byte = 0; head.length < handshakeHeadBytes && byte < piece.length; byte++) head.push(piece[byte] as number);
    if (head.length > 0 && head[0] !== clientHello) return "none";
    if (head.length === handshakeHeadBytes) wanted = handshakeHeadBytes + Buffer.from(head).readUIntBE(1, 3);
    if (wanted > helloBytesMax) return "none";
    held += piece.length;
    if (held >= wanted && head.length === handshakeHeadBytes) return "whole";
    at = end;
  }
  return "begun";
}
