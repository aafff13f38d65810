// Writes single frames of HTTP/2, for bytes that no client sends.

export const preface = Buffer.from("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");

export function frame(type: number, flags: number, stream: number, payload: Buffer = Buffer.alloc(0)): Buffer {
  const head = Buffer.alloc(9);
  head.writeUIntBE(payload.length, 0, 3);
  head.writeUInt8(type, 3);
  head.writeUInt8(flags, 4);
  head.writeUInt32BE(stream, 5);
  return Buffer.concat([head, payload]);
}

/** A header field without compression. */
export function field(name: string, value: string): Buffer {
  return Buffer.concat([Buffer.from([0, name.length]), Buffer.from(name), Buffer.from([value.length]), Buffer.from(value)]);
}

/** The headers of a gRPC call. */
export function callFields(path: string, type = "application/grpc"): Buffer {
  return Buffer.concat([
    ...[field(":method", "POST"), field(":scheme", "http"), field(":path", path), field(":authority", "127.0.0.1")],
    ...[field("content-type", type), field("te", "trailers")],
  ]);
}

/** The code of the GOAWAY frame among these bytes; undefined when there is none. */
export function goawayIn(bytes: Buffer): number | undefined {
  for (let at = 0; at + 9 <= bytes.length; at += 9 + bytes.readUIntBE(at, 3)) {
    if (bytes[at + 3] === 7) return bytes.readUInt32BE(at + 13);
  }
  return undefined;
}
