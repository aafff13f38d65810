import fc from "fast-check";
import { expect, it } from "vitest";
import { outcomeOf } from "../../runner/outcome.ts";
import { toJson } from "./to-json.ts";

it("converts a value as JSON does", () => {
  expect(toJson(undefined)).toBeNull();
  expect(toJson(() => 1)).toBeNull();
  expect(toJson({ at: new Date(0), gone: undefined, nan: Number.NaN })).toEqual({ at: "1970-01-01T00:00:00.000Z", nan: null });
  const holes = new Array(3);
  holes[1] = () => 1;
  expect(toJson(holes)).toEqual([null, null, null]);
  fc.assert(
    fc.property(fc.anything({ withDate: true, withSparseArray: true, withBoxedValues: true, withNullPrototype: true }), (value) => {
      expect(JSON.stringify(toJson(value))).toEqual(JSON.stringify(JSON.parse(JSON.stringify(value) ?? "null")));
    }),
  );
});

it("[C-EXEC-04] converts instances of classes to their own fields, or to the result of their toJSON", () => {
  class Money {
    amount: number;
    currency = "EUR";
    #secret = 1;
    constructor(amount: number) {
      this.amount = amount;
    }
    get doubled() {
      return this.amount * 2 * this.#secret;
    }
  }
  class Order {
    total = new Money(5);
    lines = new Map([["a", new Set([1, 2])]]);
    toJSON() {
      return { total: this.total, lines: this.lines, kind: "order" };
    }
  }
  expect(toJson(new Order())).toEqual({ total: { amount: 5, currency: "EUR" }, lines: { a: [1, 2] }, kind: "order" });
  expect(toJson({ url: new URL("http://host/a"), bytes: new Uint8Array([1, 2, 3]), buffer: Buffer.from("hi") })).toEqual({
    url: "http://host/a",
    bytes: "AQID",
    buffer: "aGk=",
  });
  expect(toJson(Object.assign(new RangeError("too far"), { limit: 3 }))).toEqual({ name: "RangeError", message: "too far", limit: 3 });
});

it("keeps a field called __proto__ as a field", () => {
  const json = toJson(JSON.parse('{"__proto__":{"a":1}}')) as object;
  expect(Object.keys(json)).toEqual(["__proto__"]);
  expect(Object.getPrototypeOf(json)).toBe(Object.prototype);
});

it("[C-EXEC-04] refuses what JSON cannot hold, and names its place", () => {
  expect(() => toJson({ orders: [{}, { total: 5n }] })).toThrow("orders[1].total is a bigint");
  expect(() => toJson(1n)).toThrow("the value is a bigint");
  expect(() => toJson({ seats: new Map([[1, "a"]]) })).toThrow("seats is a Map with a key that is a number");
  const circle: { self?: unknown } = {};
  circle.self = circle;
  expect(() => toJson(circle)).toThrow(/^self\.self\..*\.\.\. contains itself$/);
  let deep: unknown = 1;
  for (let depth = 0; depth < 101; depth++) deep = [deep];
  expect(() => toJson(deep)).toThrow("nested deeper than 100 levels");
});

it("a result that cannot be converted fails the task permanently with this message", () => {
  expect(outcomeOf({ kind: "returned", value: { items: [{ price: 1n }] } }, undefined)).toMatchObject({
    kind: "failed",
    retryable: false,
    error: { code: "LONGSHORE_BAD_OUTPUT", message: expect.stringContaining("items[0].price is a bigint") },
  });
});
