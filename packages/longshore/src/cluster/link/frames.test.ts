// Tests the codec: every JSON value arrives unchanged, for any division of the bytes.

import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { LongshoreError, TerminalError } from "../../core/errors.ts";
import { carriedError, errorFrom } from "./carried-error.ts";
import { BadFrame, exceeds, FrameReader, framesOf } from "./frames.ts";
import { kinds, messageOf, requestOf } from "./messages.ts";

/** Every value that JSON can hold, with texts of any code units. The generator makes negative zero, which JSON does not have. */
const values = fc
  .jsonValue({ stringUnit: fc.oneof(fc.string({ unit: "binary", minLength: 1, maxLength: 1 }), loneSurrogate()) })
  .map((value) => JSON.parse(JSON.stringify(value)) as unknown);

function loneSurrogate() {
  return fc.integer({ min: 0xd800, max: 0xdfff }).map((unit) => String.fromCharCode(unit));
}

/** Passes frames through a reader, in pieces of the given sizes. */
function carry(frames: readonly Buffer[], sizes: readonly number[]): unknown[] {
  const bytes = Buffer.concat(frames);
  const reader = new FrameReader(1_000_000);
  const received: unknown[] = [];
  let at = 0;
  for (let turn = 0; at < bytes.length; turn++) {
    const size = sizes.length === 0 ? bytes.length : (sizes[turn % sizes.length] as number);
    reader.take(bytes.subarray(at, at + size), (messages) => received.push(...messages));
    at += size;
  }
  return received;
}

describe("messages", () => {
  it("arrive as they were sent, in any division into frames and pieces", () => {
    fc.assert(
      fc.property(
        fc.array(fc.record({ id: fc.nat(), name: fc.string({ unit: "binary" }), value: fc.oneof(fc.constant(undefined), values) })),
        fc.array(fc.integer({ min: 1, max: 50 }), { maxLength: 5 }),
        fc.integer({ min: 1, max: 200 }),
        (sent, sizes, charsMax) => {
          const texts = sent.flatMap(({ id, name, value }) => [requestOf(kinds.call, id, name, value), messageOf(kinds.answer, id, value)]);
          const received = carry(framesOf(texts, charsMax), sizes) as unknown[][];
          const expected = sent.flatMap(({ id, name, value }) => [
            [kinds.call, id, name, ...(value === undefined ? [] : [value])],
            [kinds.answer, id, ...(value === undefined ? [] : [value])],
          ]);
          expect(received).toEqual(expected);
        },
      ),
    );
  });

  it("keep unpaired surrogates, which UTF-8 cannot encode", () => {
    fc.assert(
      fc.property(fc.array(fc.oneof(loneSurrogate(), fc.constant("a"), fc.constant("😀"))), (units) => {
        const text = units.join("");
        expect(carry(framesOf([messageOf(kinds.answer, 1, { [text]: text })], 100), [])).toEqual([[kinds.answer, 1, { [text]: text }]]);
      }),
    );
  });

  it("leave out fields that are undefined, and keep null", () => {
    const text = messageOf(kinds.answer, 1, { gone: undefined, kept: null, list: [undefined] });
    expect(carry(framesOf([text], 100), [])).toEqual([[kinds.answer, 1, { kept: null, list: [null] }]]);
  });

  it("may be absent from a frame", () => {
    expect(framesOf([], 100)).toEqual([Buffer.from([0, 0, 0, 2, 0x5b, 0x5d])]);
    expect(carry(framesOf([], 100), [1])).toEqual([]);
  });
});

describe("a reader of frames", () => {
  const frame = (text: string) => Buffer.concat([Buffer.from([0, 0, 0, text.length]), Buffer.from(text)]);

  it.each(["", "{}", "null", "[1", "]", "[[1,2,NaN]]"])("refuses %j", (text) => {
    expect(() => new FrameReader(100).take(frame(text), () => undefined)).toThrow(BadFrame);
  });

  it("refuses a length above its limit before the bytes arrive", () => {
    const reader = new FrameReader(100);
    expect(() => reader.take(Buffer.from([0, 0, 0, 101]), () => undefined)).toThrow("A frame has 101 bytes");
  });

  it("counts the bytes of a message, and not its characters", () => {
    expect(exceeds("x".repeat(98), null, 100)).toBe(false);
    expect(exceeds("x".repeat(99), null, 100)).toBe(true);
    expect(exceeds("€".repeat(33), null, 100)).toBe(true);
    expect(exceeds("€".repeat(32), null, 100)).toBe(false);
  });
});

describe("an error", () => {
  const carried = (error: unknown) => errorFrom(JSON.parse(JSON.stringify(carriedError(error))));

  it("keeps the fields by which callers decide", () => {
    const limit = carried(
      Object.assign(new LongshoreError("LONGSHORE_LIMIT", "Full.", { detail: { field: "x", line: 3 } }), { retryInMs: 5 }),
    );
    expect(limit).toBeInstanceOf(LongshoreError);
    expect(limit).toMatchObject({ code: "LONGSHORE_LIMIT", message: "Full.", detail: { field: "x", line: 3 }, retryInMs: 5 });
    expect(carried(new TerminalError("No."))).toBeInstanceOf(TerminalError);
    expect(carried(new DOMException("Left.", "AbortError"))).toMatchObject({ name: "AbortError", message: "Left." });
    expect(carried(Object.assign(new Error("Refused."), { code: "ECONNREFUSED" }))).toMatchObject({ code: "ECONNREFUSED" });
    expect(carried("text")).toMatchObject({ message: "text" });
  });

  it("has a limited number of its causes, also when they form a circle", () => {
    const circle = new Error("outer");
    circle.cause = new Error("inner", { cause: circle });
    expect(carried(circle)).toMatchObject({ cause: { message: "inner", cause: { message: "outer" } } });
    expect(((carried(circle).cause as Error).cause as Error).cause).toBeUndefined();
  });

  it("of a later version becomes a plain error when its code is unknown", () => {
    const error = errorFrom({ message: "New.", code: "LONGSHORE_LATER" });
    expect(error).not.toBeInstanceOf(LongshoreError);
    expect(error).toMatchObject({ message: "New.", code: "LONGSHORE_LATER" });
    expect(errorFrom(undefined).message).toContain("without a message");
  });
});
