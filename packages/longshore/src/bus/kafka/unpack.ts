// Unpacks a batch of records. Brokers limit only the packed size, and a megabyte may unpack to gigabytes. So the unpacked size is bounded.
// gzip and Zstandard are unpacked outside of the event loop and stop at the limit. The library unpacks snappy and LZ4 in one step, so the
// sizes in their headers are added up first.

import { promisify } from "node:util";
import zlib from "node:zlib";
import type { KafkaModule } from "./client.ts";

/** As large as a request to the server may be. Producers with usual settings close a batch at 1 MiB before packing. */
export const unpackedBytesMax = 16 * 1024 * 1024;

/** The codecs of a batch, by the number in its attributes. */
const codecs = ["none", "gzip", "snappy", "lz4", "zstd"] as const;

type Unpacker = (packed: Buffer, options: { maxOutputLength: number }) => Promise<Buffer>;

const gunzip: Unpacker = promisify<Buffer, zlib.ZlibOptions, Buffer>(zlib.gunzip);

/** The batch may be valid, but this process cannot unpack it. Another process, or a newer Node, can. */
export class UnknownPacking extends Error {}

export type Unpack = (packed: Buffer, codec: number) => Promise<Buffer>;

/** Rejects when the batch is too large or damaged. Rejects with UnknownPacking when this version of Node cannot unpack it. */
export function unpacker({ compressionsAlgorithms }: Pick<KafkaModule, "compressionsAlgorithms">): Unpack {
  return async (packed, codec) => {
    switch (codecs[codec]) {
      case "gzip":
        return bounded(gunzip, packed);
      case "zstd":
        return unzstd(packed);
      case "snappy":
        checkSize(snappyBytes(packed));
        return compressionsAlgorithms.snappy.decompressSync(packed);
      case "lz4":
        checkSize(lz4BytesMax(packed));
        return compressionsAlgorithms.lz4.decompressSync(packed);
      default:
        throw new UnknownPacking(`it is packed with the unknown codec ${codec}`);
    }
  };
}

async function unzstd(packed: Buffer): Promise<Buffer> {
  // Missing in Node 20.
  const { zstdDecompress } = zlib as { zstdDecompress?: Parameters<typeof promisify>[0] };
  if (zstdDecompress === undefined) throw new UnknownPacking("it is packed with Zstandard, which Node has from 22.15 on");
  return bounded(promisify(zstdDecompress) as Unpacker, packed);
}

async function bounded(unpack: Unpacker, packed: Buffer): Promise<Buffer> {
  try {
    return await unpack(packed, { maxOutputLength: unpackedBytesMax });
  } catch (error) {
    if ((error as { code?: unknown }).code !== "ERR_BUFFER_TOO_LARGE") throw error;
    throw new RangeError(`it has more than ${unpackedBytesMax} bytes when unpacked`, { cause: error });
  }
}

function checkSize(bytes: number): void {
  if (bytes > unpackedBytesMax) throw new RangeError(`it has up to ${bytes} bytes when unpacked, more than ${unpackedBytesMax}`);
}

/** Java clients pack blocks, after a header: these bytes and two numbers. */
const snappyBlocks = Buffer.from("\x82SNAPPY\0", "latin1");

function snappyBytes(packed: Buffer): number {
  if (!packed.subarray(0, snappyBlocks.length).equals(snappyBlocks)) return varintAt(packed, 0);
  let bytes = 0;
  for (let at = snappyBlocks.length + 8; at + 4 < packed.length; at += 4 + packed.readUInt32BE(at)) bytes += varintAt(packed, at + 4);
  return bytes;
}

/** Reads an unsigned number: seven bits per byte, the lowest first. */
function varintAt(bytes: Buffer, from: number): number {
  let value = 0;
  for (let at = from, weight = 1; at < from + 5; at++, weight *= 128) {
    const byte = bytes.readUInt8(at);
    value += (byte & 0x7f) * weight;
    if (byte < 0x80) break;
  }
  return value;
}

/** The maximum unpacked size: every block counts as full. Layout: https://github.com/lz4/lz4/blob/dev/doc/lz4_Frame_format.md */
function lz4BytesMax(packed: Buffer): number {
  const flags = packed.readUInt8(4);
  const blockBytes = 2 ** (8 + 2 * ((packed.readUInt8(5) >> 4) & 7));
  const checksum = flags & 0x10 ? 4 : 0;
  let at = 7 + (flags & 0x08 ? 8 : 0) + (flags & 0x01 ? 4 : 0);
  let bytes = 0;
  while (at + 4 <= packed.length) {
    const size = packed.readUInt32LE(at) & 0x7fffffff;
    if (size === 0) break;
    bytes += blockBytes;
    at += 4 + size + checksum;
  }
  // A second frame is refused, because its size is not counted; Kafka's clients write none.
  if (at + 4 + (flags & 0x04 ? 4 : 0) < packed.length) throw new Error("it has bytes after its end");
  return bytes;
}
