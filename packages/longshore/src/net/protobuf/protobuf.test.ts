import fc from "fast-check";
import { describe, expect, expectTypeOf, it } from "vitest";
import { LongshoreError } from "../../core/errors.ts";
import type { Json } from "../../core/json/json.ts";
import { type Decoded, type Encodable, message, service } from "./protobuf.ts";

const Inner = message("Inner", { name: [1, "string"], note: [2, "string", "optional"], count: [3, "uint32"] });
const Everything = message("Everything", {
  text: [1, "string"],
  blob: [2, "bytes"],
  flag: [3, "bool"],
  small: [4, "int32"],
  positive: [5, "uint32"],
  large: [6, "int64"],
  huge: [7, "uint64"],
  single: [8, "float"],
  precise: [9, "double"],
  kind: [10, "enum"],
  maybeText: [11, "string", "optional"],
  maybeNumber: [12, "uint32", "optional"],
  inner: [13, Inner],
  inners: [14, Inner, "repeated"],
  numbers: [15, "uint32", "repeated"],
  texts: [16, "string", "repeated"],
  labels: [17, "string", "map"],
  byName: [18, Inner, "map"],
  left: [19, Inner, "oneof side"],
  right: [20, "string", "oneof side"],
  at: [21, "Timestamp"],
  value: [22, "Value"],
  struct: [23, "Struct"],
  doubles: [24, "double", "repeated"],
  valueByName: [25, "Value", "map"],
  bits: [26, "fixed32"],
  nanos: [27, "fixed64"],
  far: [2000, "bool"],
});
/** The same table without a field, as in an older program. */
const Sparse = message("Sparse", { small: [4, "int32"] });

const hex = (bytes: Uint8Array): string => Buffer.from(bytes).toString("hex");
const unhex = (text: string): Uint8Array => Buffer.from(text.replaceAll(" ", ""), "hex");
const empty = Everything.decode(new Uint8Array(0));

/** The error that `act` throws, which must be a LongshoreError. */
function refusalOf(act: () => unknown): LongshoreError {
  try {
    act();
  } catch (error) {
    if (error instanceof LongshoreError) return error;
    throw error;
  }
  throw new Error("nothing was thrown");
}

describe("a message with a table", () => {
  it("has numbers of a fixed size, for bits and for nanoseconds", () => {
    const Fixed = message("Fixed", { bits: [1, "fixed32"], nanos: [2, "fixed64"] });
    expect(hex(Fixed.encode({ bits: 0x301, nanos: 2n }))).toBe("0d01030000110200000000000000");
    expect(Fixed.decode(unhex("0d01030000 110100000000000080"))).toEqual({ bits: 0x301, nanos: 9_223_372_036_854_775_809n });
    expect(refusalOf(() => Fixed.encode({ bits: -1 })).message).toContain("bits");
    expect(refusalOf(() => Fixed.encode({ nanos: -1n })).message).toContain("nanos");
  });

  it("has the defaults of proto3 for fields that were not sent", () => {
    expect(Inner.decode(new Uint8Array(0))).toEqual({ name: "", count: 0 });
    expect(empty.inners).toEqual([]);
    expect(empty.labels).toEqual({});
    expect("inner" in empty).toBe(false);
    expect("maybeNumber" in empty).toBe(false);
  });

  it("does not send defaults, except when presence is tracked", () => {
    expect(hex(Everything.encode({ text: "", flag: false, positive: 0, numbers: [], labels: {}, blob: new Uint8Array(0) }))).toBe("");
    expect(hex(Everything.encode({ maybeText: "", maybeNumber: 0 }))).toBe("5a006000");
    expect(Everything.decode(unhex("5a006000"))).toMatchObject({ maybeText: "", maybeNumber: 0 });
    expect(hex(Everything.encode({ right: "" }))).toBe("a20100");
    expect(Everything.decode(unhex("a20100"))).toHaveProperty("right", "");
  });

  it("writes the bytes that the format's own documentation shows", () => {
    // https://protobuf.dev/programming-guides/encoding/: 150 in field 1, "testing" in field 2, packed 3, 270, 86942 in field 6, -2.
    expect(hex(message("Test1", { a: [1, "int32"] }).encode({ a: 150 }))).toBe("089601");
    expect(hex(message("Test2", { b: [2, "string"] }).encode({ b: "testing" }))).toBe("120774657374696e67");
    expect(hex(message("Test5", { f: [6, "int32", "repeated"] }).encode({ f: [3, 270, 86942] }))).toBe("3206038e029ea705");
    expect(hex(message("Negative", { a: [1, "int32"] }).encode({ a: -2 }))).toBe("08feffffffffffffffff01");
  });

  it("writes fields in the order of their numbers, for any order of the table", () => {
    const Mixed = message("Mixed", { b: [3, "uint32"], a: [1, "uint32"], c: [2, "uint32"] });
    expect(hex(Mixed.encode({ b: 3, a: 1, c: 2 }))).toBe("080110021803");
  });

  it("reads repeated numbers, packed and one by one", () => {
    const Numbers = message("Numbers", { list: [1, "uint32", "repeated"] });
    expect(Numbers.decode(unhex("0801 0a020203 0804"))).toEqual({ list: [1, 2, 3, 4] });
  });

  it("skips every kind of unknown field, also groups", () => {
    const fields = ["5002", "5900000000000000ff", "5a03616263", "5d01020304", "63080164", "636b08016c64"];
    for (const field of fields) expect(Sparse.decode(unhex(`${field} 2007`)), field).toEqual({ small: 7 });
  });

  it("keeps enum numbers that it does not know", () => {
    expect(Everything.decode(Everything.encode({ kind: 4711 })).kind).toBe(4711);
    expect(Everything.decode(Everything.encode({ kind: -1 })).kind).toBe(-1);
  });

  it("lets the last member of a oneof win, and refuses to write two", () => {
    const both = Buffer.concat([Everything.encode({ left: { name: "x" } }), Everything.encode({ right: "y" })]);
    expect(Everything.decode(both)).toEqual({ ...empty, right: "y" });
    const refusal = refusalOf(() => Everything.encode({ left: { name: "x" }, right: "y" }));
    expect(refusal).toMatchObject({ code: "LONGSHORE_BAD_OUTPUT", detail: { field: "right", expected: "one of them" } });
  });

  it("merges a field's message that arrives in two parts", () => {
    const parts = Buffer.concat([
      Everything.encode({ inner: { name: "a", count: 1 } }),
      Everything.encode({ inner: { note: "b", count: 2 } }),
    ]);
    expect(Everything.decode(parts).inner).toEqual({ name: "a", note: "b", count: 2 });
  });

  it("reads a map entry without a value as the default", () => {
    expect(Everything.decode(unhex("8a01030a0161")).labels).toEqual({ a: "" });
    expect(Everything.decode(unhex("9201030a0161")).byName).toEqual({ a: { name: "", count: 0 } });
    expect(Everything.decode(unhex("ca01030a0161")).valueByName).toEqual({ a: null });
  });

  it("reads 64-bit numbers with the precision of JavaScript's numbers", () => {
    expect(Everything.decode(Everything.encode({ huge: Number.MAX_SAFE_INTEGER, large: Number.MIN_SAFE_INTEGER }))).toMatchObject({
      huge: Number.MAX_SAFE_INTEGER,
      large: Number.MIN_SAFE_INTEGER,
    });
    expect(Everything.decode(unhex("38ffffffffffffffffff01")).huge).toBe(2 ** 64);
    expect(Everything.decode(unhex("30ffffffffffffffffff01")).large).toBe(-1);
    // Longer varints in 32-bit fields are cut, as other programs do when a field was widened.
    expect(Everything.decode(unhex("28ffffffffffffffffff01")).positive).toBe(2 ** 32 - 1);
  });

  it("returns bytes that do not share memory with the input", () => {
    const wire = Buffer.from(Everything.encode({ blob: new Uint8Array([1, 2, 3]) }));
    const { blob } = Everything.decode(wire);
    wire.fill(0);
    expect([...blob]).toEqual([1, 2, 3]);
  });

  it("does not let a key named __proto__ reach the prototype", () => {
    const wire = Everything.encode({ struct: JSON.parse('{"__proto__":{"polluted":true}}') });
    const { struct } = Everything.decode(wire);
    expect(Object.keys(struct ?? {})).toEqual(["__proto__"]);
    expect((struct as { polluted?: boolean }).polluted).toBeUndefined();
  });

  it("has types that follow the table", () => {
    expectTypeOf<Decoded<typeof Inner>>().toEqualTypeOf<{ name: string; count: number; note?: string }>();
    expectTypeOf<Decoded<typeof Everything>["left"]>().toEqualTypeOf<Decoded<typeof Inner> | undefined>();
    expectTypeOf<Decoded<typeof Everything>["labels"]>().toEqualTypeOf<{ [key: string]: string }>();
    expectTypeOf<Decoded<typeof Everything>["value"]>().toEqualTypeOf<Json | undefined>();
    const init: Encodable<typeof Everything> = { inners: [{ name: "a" }] };
    expect(Everything.encode(init).length).toBeGreaterThan(0);
    // @ts-expect-error No such field.
    expect(Inner.encode({ nope: 1 })).toEqual(Buffer.alloc(0));
  });

  it("refuses a table with one number twice", () => {
    expect(() => message("Twice", { a: [1, "string"], b: [1, "bool"] })).toThrow("Message Twice has two fields with number 1.");
  });

  it("lists the methods of a service with their paths", () => {
    const Tasks = service("pkg.Tasks", { Pull: [Inner, Everything, "stream"], Ask: [Inner, Inner] });
    expect(Tasks.Pull).toMatchObject({ path: "/pkg.Tasks/Pull", kind: "server-stream" });
    expect(Tasks.Ask).toEqual({ path: "/pkg.Tasks/Ask", kind: "unary", request: Inner, response: Inner });
  });
});

describe("values", () => {
  it("converts JSON to google.protobuf.Value and back unchanged", () => {
    const values: Json[] = [null, true, false, 0, -1, 1.5, 2 ** 53, "", "hällo 🚢", [], {}, [null, [1, [2]]], { a: { b: [{ c: null }] } }];
    for (const value of values) {
      expect(Everything.decode(Everything.encode({ value })).value).toEqual(value);
    }
  });

  it("distinguishes an absent value from null", () => {
    expect(Everything.decode(Everything.encode({ value: null })).value).toBeNull();
    expect(Everything.decode(unhex("b20100")).value).toBeNull();
    expect("value" in empty).toBe(false);
  });

  it("turns numbers that JSON does not have into null, in both directions", () => {
    const Raw = message("Raw", { value: [1, message("RawValue", { numberValue: [2, "double", "optional"] })] });
    const Cooked = message("Cooked", { value: [1, "Value"] });
    for (const odd of [Number.NaN, Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY]) {
      expect(Cooked.decode(Raw.encode({ value: { numberValue: odd } })).value).toBeNull();
      expect(Cooked.decode(Cooked.encode({ value: [odd] })).value).toEqual([null]);
    }
  });

  it("leaves out undefined members as JSON does", () => {
    expect(Everything.decode(Everything.encode({ value: { a: undefined, b: 1 } as never })).value).toEqual({ b: 1 });
  });

  it("convert times to milliseconds, also before 1970", () => {
    for (const at of [0, 1, 999, 1_700_000_000_123, -1, -62_135_596_800_000, 253_402_300_799_999]) {
      expect(Everything.decode(Everything.encode({ at })).at).toBe(at);
    }
    expect(hex(Everything.encode({ at: 1_700_000_000_123 }))).toBe("aa010b0880e2cfaa0610c0a9d33a");
  });

  it("keep what a float can hold", () => {
    expect(Everything.decode(Everything.encode({ single: 0.5, precise: -0 }))).toMatchObject({ single: 0.5, precise: -0 });
  });
});

describe("what cannot be read", () => {
  const cases: [name: string, bytes: string, field: string | undefined, text: string][] = [
    ["a text that is cut off", "0a05 6161", "text", "5 bytes are announced and 2 are left"],
    ["a number that is cut off", "28ff", "positive", "in the middle of a number"],
    ["a number without an end", "28ffffffffffffffffffffff01", "positive", "longer than 10 bytes"],
    ["eight bytes that are cut off", "4900", "precise", "8 bytes are needed and 1 are left"],
    ["field number 0", "00", undefined, "field number is out of range"],
    ["a tag of more than 32 bits", "ffffffffffff01", undefined, "field number is out of range"],
    ["a wire type that does not exist", "f67d", undefined, "wire type 6 of field 2014"],
    ["the end of a group that never began", "f47d", undefined, "wire type 4 of field 2014"],
    ["a group closed by another's end", "f37d fc7d", undefined, "group 2014 is closed by the end of group 2015"],
    ["a group without an end", "f37d", undefined, "in the middle of a number"],
    ["another wire type than the field's", "0801", "text", "has wire type 0, expected wire type 2"],
    ["text that is not UTF-8", "0a02c328", "text", "not valid UTF-8"],
    ["a nested field, by its path", "7203 0a05 61", "inners[0].name", "ends early"],
    ["an element, by its place", "7200 72020801", "inners[1].name", "wire type"],
    ["a time outside the calendar", "aa010c08ffffffffffffffff7f1000", "at", "out of range, expected seconds between the years 1 and 9999"],
    ["a field of a map's value", "9201040a0161 12", "by_name", "in the middle"],
  ];
  for (const [name, bytes, field, text] of cases) {
    it(`names the field: ${name}`, () => {
      const refusal = refusalOf(() => Everything.decode(unhex(bytes)));
      expect(refusal.code).toBe("LONGSHORE_BAD_INPUT");
      expect(refusal.message).toContain(text);
      expect(refusal.detail.field).toBe(field);
      expect(refusal.message.startsWith(field === undefined ? "Everything: " : `Everything.${field}: `)).toBe(true);
    });
  }

  it("does not include a real U+FFFD", () => {
    expect(Everything.decode(Everything.encode({ text: "a\uFFFDb" })).text).toBe("a\uFFFDb");
  });

  it("refuses nesting that would overflow the stack", () => {
    const nest = (depth: number): Json => (depth === 0 ? 1 : [nest(depth - 1)]);
    expect(Everything.decode(Everything.encode({ value: nest(100) })).value).toEqual(nest(100));
    expect(refusalOf(() => Everything.encode({ value: nest(101) })).message).toContain(
      "Everything.value: the JSON nests deeper than 100 levels",
    );
    let wire = Buffer.from([0x08, 0]);
    for (let depth = 0; depth < 3000; depth++) {
      const length = lengthOf(wire.length);
      const list = Buffer.concat([Buffer.from([0x0a]), length, wire]);
      wire = Buffer.concat([Buffer.from([0x32]), lengthOf(list.length), list]);
    }
    const Holder = message("Holder", { value: [1, "Value"] });
    const bomb = Buffer.concat([Buffer.from([0x0a]), lengthOf(wire.length), wire]);
    expect(refusalOf(() => Holder.decode(bomb)).message).toContain("Holder.value: the JSON nests deeper than 100 levels");
    expect(refusalOf(() => Holder.decode(Buffer.alloc(100_000, 0x13))).message).toContain("nests deeper than 100 messages");
  });
});

function lengthOf(length: number): Uint8Array {
  return message("Varint", { value: [1, "uint32"] })
    .encode({ value: length })
    .subarray(1);
}

describe("what cannot be written", () => {
  const bad: [field: string, value: object, text: string][] = [
    ["text", { text: 5 }, "5 cannot be written, expected a string"],
    ["positive", { positive: -1 }, "-1 cannot be written, expected a whole number from 0 to 4294967295"],
    ["positive", { positive: 1.5 }, "1.5 cannot be written"],
    ["huge", { huge: 2 ** 64 }, "cannot be written"],
    ["flag", { flag: "yes" }, "expected true or false"],
    ["blob", { blob: "abc" }, "expected bytes (Uint8Array)"],
    ["precise", { precise: "1" }, "expected a number"],
    ["inner.name", { inner: { name: null } }, "expected a string"],
    ["inner", { inner: null }, "null cannot be written, expected an object (Inner)"],
    ["inners", { inners: {} }, "expected an array"],
    ["labels", { labels: null }, "expected an object"],
    ["struct", { struct: [] }, "expected a JSON object"],
    ["value", { value: 5n }, "a bigint cannot be written, expected a JSON value"],
    ["at", { at: Number.NaN }, "expected milliseconds between the years 1 and 9999"],
  ];
  for (const [field, value, text] of bad) {
    it(`names the field: ${text}`, () => {
      const refusal = refusalOf(() => Everything.encode(value as never));
      expect(refusal).toMatchObject({ code: "LONGSHORE_BAD_OUTPUT", detail: { field } });
      expect(refusal.message).toContain(text);
    });
  }
});

describe("properties", () => {
  const text = fc.string({ unit: "grapheme", maxLength: 80 });
  const inner = fc.record({ name: text, count: fc.nat() }, { noNullPrototype: true });
  const json = fc.jsonValue({ maxDepth: 5 }).map((value) => JSON.parse(JSON.stringify(value)) as Json);
  const everything = fc.record(
    {
      text,
      blob: fc.uint8Array({ maxLength: 300 }),
      flag: fc.boolean(),
      small: fc.integer(),
      positive: fc.integer({ min: 0, max: 2 ** 32 - 1 }),
      large: fc.maxSafeInteger(),
      huge: fc.maxSafeNat(),
      single: fc.float(),
      precise: fc.double(),
      kind: fc.integer(),
      maybeText: text,
      maybeNumber: fc.nat(),
      inner,
      inners: fc.array(inner),
      numbers: fc.array(fc.nat()),
      texts: fc.array(text),
      labels: fc.dictionary(text, text, { noNullPrototype: true }),
      byName: fc.dictionary(text, inner, { noNullPrototype: true }),
      right: text,
      at: fc.integer({ min: -62_135_596_800_000, max: 253_402_300_799_999 }),
      value: json,
      struct: fc.dictionary(text, json, { noNullPrototype: true }),
      doubles: fc.array(fc.double()),
      valueByName: fc.dictionary(text, json, { noNullPrototype: true }),
      bits: fc.integer({ min: 0, max: 2 ** 32 - 1 }),
      nanos: fc.bigInt({ min: 0n, max: (1n << 64n) - 1n }),
      far: fc.boolean(),
    },
    { requiredKeys: [], noNullPrototype: true },
  );

  it("what was written is read back", () => {
    fc.assert(
      fc.property(everything, (value) => {
        expect(Everything.decode(Everything.encode(value as never))).toEqual({ ...empty, ...value });
      }),
    );
  });

  it("an older program reads the fields that it knows from a message of a newer one", () => {
    fc.assert(
      fc.property(everything, (value) => {
        expect(Sparse.decode(Everything.encode(value as never))).toEqual({ small: value.small ?? 0 });
      }),
    );
  });

  it("every prefix of a message is read or refused with our own error", () => {
    fc.assert(
      fc.property(everything, fc.nat(), (value, cut) => {
        const wire = Everything.encode(value as never);
        answersOrRefuses(wire.subarray(0, wire.length === 0 ? 0 : cut % wire.length));
      }),
    );
  });

  it("any bytes are read or refused with our own error", () => {
    fc.assert(fc.property(fc.uint8Array({ maxLength: 400 }), answersOrRefuses), { numRuns: 2_000 });
  });

  it("a message with changed bytes is read or refused with our own error", () => {
    fc.assert(
      fc.property(everything, fc.array(fc.tuple(fc.nat(), fc.integer({ min: 0, max: 255 })), { maxLength: 5 }), (value, changes) => {
        const wire = Uint8Array.from(Everything.encode(value as never));
        for (const [at, byte] of changes) if (wire.length > 0) wire[at % wire.length] = byte;
        answersOrRefuses(wire);
      }),
      { numRuns: 2_000 },
    );
  });

  function answersOrRefuses(wire: Uint8Array): void {
    let value: Decoded<typeof Everything>;
    try {
      value = Everything.decode(wire);
    } catch (error) {
      expect(error).toMatchObject({ name: "LongshoreError", code: "LONGSHORE_BAD_INPUT" });
      return;
    }
    // A message that is read can be written again with the same meaning. The exceptions are 64-bit numbers near the end of their range.
    if (Math.abs(value.huge) < 2 ** 63 && Math.abs(value.large) < 2 ** 62)
      expect(Everything.decode(Everything.encode(value))).toEqual(value);
  }
});
