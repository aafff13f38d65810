import { describe, expect, it } from "vitest";
import { encodeInTurns, LongBytes } from "./long-bytes.ts";
import { pieceBytes } from "./paced-write.ts";

const text = (bytes: LongBytes, step: number) => {
  const read: Uint8Array[] = [];
  for (let at = 0; at < bytes.length; at += step) read.push(bytes.subarray(at, Math.min(bytes.length, at + step)));
  return Buffer.concat(read).toString();
};

describe("long bytes", () => {
  it.each([1, 2, 3, 5, 100])("are complete when they are read %i at a time", (step) => {
    const bytes = new LongBytes(["ab", "c", "", "defgh", "i"].map((piece) => Buffer.from(piece)));
    expect(bytes.byteLength).toBe(9);
    expect(text(bytes, step)).toBe("abcdefghi");
    expect(text(bytes, step)).toBe("abcdefghi");
  });

  it("are encoded in pieces of about the size that is written at once, with a turn of the event loop after each", async () => {
    const texts = [...Array.from({ length: 50 }, (_, at) => `${at}é`.repeat(2_000)), `x${"😀".repeat(pieceBytes)}`];
    const turns: number[] = [];
    const bytes = await encodeInTurns(texts, async (length) => void turns.push(length));
    expect(text(bytes, pieceBytes)).toBe(texts.join(""));
    expect(turns.length).toBeGreaterThan(5);
    expect(Math.max(...turns)).toBeLessThanOrEqual(4 * pieceBytes);
  });
});
