import { crc32c, Reader, readRecordsBatch } from "@platformatic/kafka";
import fc from "fast-check";
import { expect, it } from "vitest";
import { encodeBatch } from "./batch.ts";

it("writes what the library reads", () => {
  const message = fc.record({
    key: fc.option(fc.string({ unit: "binary" }).map((text) => Buffer.from(text))),
    value: fc.oneof(fc.string({ unit: "binary", maxLength: 200 }), fc.uint8Array({ maxLength: 200 })),
  });
  fc.assert(
    fc.property(fc.array(message, { minLength: 1, maxLength: 80 }), fc.nat(), (messages, sequence) => {
      const bytes = encodeBatch(messages, { producerId: 7n, producerEpoch: 3, sequence, at: 1_700_000_000_000, crc32c });
      const batch = readRecordsBatch(Reader.from(bytes));
      expect(batch).toMatchObject({ length: bytes.length - 12, magic: 2, producerId: 7n, producerEpoch: 3, firstSequence: sequence });
      expect(batch.crc).toBe(crc32c(bytes.subarray(21)));
      expect(batch.lastOffsetDelta).toBe(messages.length - 1);
      expect(batch.records.map(({ key, value, offsetDelta }) => [key, value, offsetDelta])).toEqual(
        messages.map(({ key, value }, at) => [key, Buffer.from(value as string), at]),
      );
    }),
  );
});
