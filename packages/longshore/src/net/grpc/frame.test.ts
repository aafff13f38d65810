import { gzipSync } from "node:zlib";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { type Frame, FrameReader, frameOf, refuseEncoding } from "./frame.ts";
import { inflate } from "./inflate.ts";
import { GrpcCode } from "./status.ts";
import { formatTimeout, parseTimeout } from "./timeout.ts";

/** Cuts bytes at the given places. */
function cut(bytes: Buffer, places: readonly number[]): Buffer[] {
  const sorted = [...new Set(places.map((place) => place % (bytes.length + 1)))].sort((a, b) => a - b);
  const edges = [0, ...sorted, bytes.length];
  return edges.slice(1).map((end, index) => bytes.subarray(edges[index], end));
}

describe("frames", () => {
  it("are a flag, a length and the message", () => {
    expect(frameOf(Buffer.from("abc")).toString("hex")).toBe("0000000003616263");
    expect(frameOf(new Uint8Array(0)).toString("hex")).toBe("0000000000");
  });

  it("are the same for any division by the network", () => {
    const message = fc.oneof(
      fc.uint8Array({ maxLength: 40 }),
      fc.integer({ min: 0, max: 70_000 }).map((size) => new Uint8Array(size).fill(size)),
    );
    fc.assert(
      fc.property(fc.array(message, { maxLength: 6 }), fc.array(fc.nat(), { maxLength: 20 }), (messages, places) => {
        const body = Buffer.concat(messages.map(frameOf));
        const reader = new FrameReader();
        const frames: Frame[] = cut(body, places).flatMap((chunk) => reader.push(Buffer.from(chunk)));
        expect(frames.map(({ bytes }) => bytes.toString("hex"))).toEqual(messages.map((bytes) => Buffer.from(bytes).toString("hex")));
        expect(reader.held).toBe(0);
      }),
    );
  });

  it("are also read byte by byte", () => {
    const reader = new FrameReader();
    const body = Buffer.concat([frameOf(Buffer.from("one")), frameOf(Buffer.alloc(0)), frameOf(Buffer.from("two"))]);
    const frames = [...body].flatMap((byte) => reader.push(Buffer.from([byte])));
    expect(frames.map(({ bytes }) => bytes.toString())).toEqual(["one", "", "two"]);
  });

  it("that are incomplete are counted in the bytes that are held", () => {
    const reader = new FrameReader();
    expect(reader.push(frameOf(Buffer.from("abcdef")).subarray(0, 8))).toEqual([]);
    expect(reader.held).toBe(8);
  });

  it("larger than the limit are refused after their head, before their bytes arrive", () => {
    const head = Buffer.from([0, 0, 0, 0, 11]);
    expect(() => new FrameReader(10).push(head)).toThrow("The message has 11 bytes, the limit is 10.");
    const reader = new FrameReader(10);
    reader.push(head.subarray(0, 3));
    expect(() => reader.push(head.subarray(3))).toThrow("The message has 11 bytes, the limit is 10.");
    expect(new FrameReader(11).push(Buffer.concat([head, Buffer.alloc(11)]))).toHaveLength(1);
  });

  it("with an unknown flag are refused", () => {
    expect(() => new FrameReader().push(Buffer.from([2, 0, 0, 0, 0]))).toThrow(
      "begins with the byte 2, expected 0 (plain) or 1 (compressed)",
    );
  });

  it("do not allocate memory for an announced length", () => {
    const reader = new FrameReader();
    const before = process.memoryUsage().arrayBuffers;
    for (let index = 0; index < 8; index++) reader.push(Buffer.from([[0], [3], [255], [255], [255], [1], [1], [1]][index] as number[]));
    expect(process.memoryUsage().arrayBuffers - before).toBeLessThan(1_000_000);
    expect(reader.held).toBe(8);
  });
});

describe("compression", () => {
  const packed = (bytes: Buffer): Frame => ({ compressed: true, bytes: gzipSync(bytes) });

  it("with gzip is unpacked", async () => {
    expect((await inflate(packed(Buffer.from("hello")), "gzip", { bytesMax: 100 })).toString()).toBe("hello");
    expect((await inflate({ compressed: false, bytes: Buffer.from("as is") }, "gzip", { bytesMax: 100 })).toString()).toBe("as is");
  });

  it("does not unpack more than the limit", async () => {
    await expect(inflate(packed(Buffer.alloc(1_000_000)), "gzip", { bytesMax: 1_000 })).rejects.toMatchObject({
      code: GrpcCode.RESOURCE_EXHAUSTED,
    });
  });

  it("is refused when it is broken, unannounced or unknown", async () => {
    await expect(inflate({ compressed: true, bytes: Buffer.from("nonsense") }, "gzip", { bytesMax: 100 })).rejects.toMatchObject({
      code: GrpcCode.INTERNAL,
    });
    await expect(inflate(packed(Buffer.from("x")), undefined, { bytesMax: 100 })).rejects.toMatchObject({ code: GrpcCode.INTERNAL });
    expect(refuseEncoding("snappy")).toMatchObject({ code: GrpcCode.UNIMPLEMENTED });
    expect([refuseEncoding(undefined), refuseEncoding("identity"), refuseEncoding("gzip")]).toEqual([undefined, undefined, undefined]);
  });
});

describe("timeouts", () => {
  it("are read in every unit", () => {
    expect(["2H", "3M", "4S", "5m", "6000u", "7000000n"].map(parseTimeout)).toEqual([7_200_000, 180_000, 4_000, 5, 6, 7]);
    expect(parseTimeout(undefined)).toBeUndefined();
  });

  it("of another form are refused by name", () => {
    for (const text of ["", "5", "m", "-1S", "123456789m", "1.5S", "5 S", "5s"]) {
      expect(() => parseTimeout(text), text).toThrow("grpc-timeout is");
    }
  });

  it("are written so that they are never longer than the limit", () => {
    expect([0, 1.9, 1_500, -5].map(formatTimeout)).toEqual(["0m", "1m", "1500m", "0m"]);
    fc.assert(fc.property(fc.double({ min: 0, max: 1e15, noNaN: true }), (ms) => (parseTimeout(formatTimeout(ms)) as number) <= ms));
  });
});
