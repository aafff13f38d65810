import { describe, expect, it } from "vitest";
import type { JsonObject } from "../../../core/json/json.ts";
import { changeVars, type VarsFunction, varsLimits } from "./vars.ts";

const never = () => false;
const change = (name: VarsFunction, vars: JsonObject, args: JsonObject) => changeVars(name, vars, args, never);
const deep = (segments: number): JsonObject => (segments === 0 ? ({ leaf: 1 } as JsonObject) : { seg: deep(segments - 1) });
const leaks = (_path: string, value: unknown) => value === "LEAK";
const prefix = "coordinator.vars.";
/** A path of allowed segments that has this many characters with the prefix. */
const pathOf = (chars: number) => {
  const rest = chars - prefix.length - 3 * 126;
  return ["a", "b", "c"].map((letter) => `${letter.repeat(125)}.`).join("") + "d".repeat(rest);
};
const longest = pathOf(512);
const tooLong = pathOf(513);
const longestSegment = "a".repeat(128);
const badKeys = ["", "$bad", "a..b", "nul\0", "a".repeat(129)];

describe("vars.incr", () => {
  it("[T89] creates a missing leaf", () => {
    expect(change("vars.incr", {}, { key: "counters.pages", by: 2 }).vars).toEqual({ counters: { pages: 2 } });
    expect(change("vars.incr", {}, { key: "n" })).toMatchObject({ vars: { n: 1 }, result: { ok: true, key: "n", by: 1, touched: 1 } });
  });

  it.each([Number.NaN, Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY])("[T91] refuses %s", (by) => {
    expect(() => change("vars.incr", {}, { key: "n", by })).toThrow(`is ${by}, expected a finite number`);
  });

  it.each(badKeys)("[T92] refuses the key %j", (key) => {
    expect(() => change("vars.incr", {}, { key })).toThrow(/segment|NUL/);
    expect(change("vars.incr", {}, { key: longestSegment }).vars).toEqual({ [longestSegment]: 1 });
  });

  it("[T93] accepts fractions and negative numbers, and refuses a leaf that is not a number", () => {
    const { vars } = change("vars.incr", change("vars.incr", {}, { key: "metrics.score", by: 1.5 }).vars, {
      key: "metrics.score",
      by: -0.5,
    });
    expect(vars).toEqual({ metrics: { score: 1 } });
    const labelled = change("vars.set", vars, { kv: { "metrics.label": "A" } }).vars;
    expect(() => change("vars.incr", labelled, { key: "metrics.label" })).toThrow(
      'coordinator.vars.metrics.label, which is "A" and no number',
    );
    expect(() => change("vars.incr", labelled, { key: "metrics.label.deep" })).toThrow(/is below label/);
  });
});

describe("vars.merge", () => {
  it("[T94] overwrites leaves at any depth, and replaces an object by a leaf; keys are reported in order", () => {
    const before = change("vars.merge", {}, { data: { obj: { a: 1, b: { c: 2 } }, leaf: 7 } }).vars;
    const merged = change("vars.merge", before, { data: { obj: { b: { c: 3 }, d: 9 }, leaf: 100 } });
    expect(merged.vars).toEqual({ obj: { a: 1, b: { c: 3 }, d: 9 }, leaf: 100 });
    expect(merged.result).toEqual({
      ok: true,
      touched: 3,
      keys: [`${prefix}leaf`, `${prefix}obj.b.c`, `${prefix}obj.d`],
      sensitive_hits: 0,
    });
    expect(change("vars.merge", merged.vars, { data: { obj: 42 } }).vars).toMatchObject({ obj: 42 });
    expect(before).toEqual({ obj: { a: 1, b: { c: 2 } }, leaf: 7 });
  });

  it("accepts kv, or the arguments themselves", () => {
    expect(change("vars.merge", {}, { kv: { a: 1 } }).vars).toEqual({ a: 1 });
    expect(change("vars.merge", {}, { a: 1, block_sensitive: true }).vars).toEqual({ a: 1 });
    expect(() => change("vars.merge", {}, { data: [1] })).toThrow("is [1], expected an object");
  });

  it("[T95] with an empty object changes nothing and creates nothing", () => {
    expect(change("vars.merge", {}, { data: {} })).toMatchObject({ vars: {}, result: { ok: true, touched: 0 } });
    expect(change("vars.merge", {}, { data: { empty: {} } })).toMatchObject({ vars: {}, result: { touched: 0 } });
  });

  // JSON has no bytes. Their limit is tested with a text, whose size is counted in bytes.
  it("[T96] has limits: paths, depth, length of a path, size of a text in bytes", () => {
    const many = Object.fromEntries(Array.from({ length: varsLimits.pathsMax + 1 }, (_, at) => [`k${at}`, at]));
    expect(() => change("vars.merge", {}, { data: { bulk: many } })).toThrow("has 257 paths, expected at most 256");
    expect(() => change("vars.merge", {}, { data: { root: deep(13) } })).toThrow("has 15 segments, expected at most 14");
    expect(change("vars.merge", {}, { data: { root: deep(12) } }).result.touched).toBe(1);
    expect(() => change("vars.merge", {}, { data: { [tooLong]: 1 } })).toThrow(
      /513 characters with coordinator.vars., expected at most 512/,
    );
    expect(change("vars.merge", {}, { data: { [longest]: 1 } }).result.touched).toBe(1);
    expect(() => change("vars.merge", {}, { data: { payload: "a".repeat(65_537) } })).toThrow("has 65537 bytes, expected at most 65536");
    expect(() => change("vars.merge", {}, { data: { payload: "é".repeat(32_769) } })).toThrow("has 65538 bytes");
    expect(change("vars.merge", {}, { data: { payload: "a".repeat(65_536) } }).result.touched).toBe(1);
  });

  it("[T97] refuses sensitive values when blocking is on, and otherwise counts them", () => {
    const data = { secrets: { token: "LEAK" } };
    expect(() => changeVars("vars.merge", {}, { data, block_sensitive: true }, leaks)).toThrow(/looks like a secret/);
    expect(changeVars("vars.merge", {}, { data }, leaks)).toMatchObject({ vars: data, result: { sensitive_hits: 1 } });
  });
});

describe("vars.set", () => {
  it("[T98] accepts dotted and nested keys in one call, and reports them", () => {
    const kv = { plain: 7, "sla.max_delay": 500, flags: { ab: true, beta: false }, nested: { lvl1: { lvl2: 123 } } };
    const { vars, result } = change("vars.set", {}, { kv });
    expect(vars).toEqual({ plain: 7, sla: { max_delay: 500 }, flags: { ab: true, beta: false }, nested: { lvl1: { lvl2: 123 } } });
    expect(result.keys).toEqual(["flags.ab", "flags.beta", "nested.lvl1.lvl2", "plain", "sla.max_delay"].map((key) => prefix + key));
    expect(result).toMatchObject({ touched: 5, sensitive_hits: 0 });
  });

  it.each<JsonObject>([{ $bad: 1 }, { x: { "bad.seg": 1 } }, { "bad\0seg.ok": 1 }, { x: { ["a".repeat(129)]: 1 } }])(
    "[T99] refuses the key of %j",
    (kv) => {
      expect(() => change("vars.set", {}, { kv })).toThrow(/segment|dots|NUL/);
    },
  );

  it("[T100] refuses more than 256 paths", () => {
    const bulk = (count: number) => Object.fromEntries(Array.from({ length: count }, (_, at) => [`k${at}`, at]));
    expect(() => change("vars.set", {}, { kv: { bulk: bulk(257) } })).toThrow("has 257 paths, expected at most 256");
    expect(change("vars.set", {}, { kv: { bulk: bulk(256) } }).result.touched).toBe(256);
  });

  it("[T101] refuses what is too deep, and a path that is too long", () => {
    const key = (segments: number) => Array.from({ length: segments }, () => "seg").join(".");
    expect(() => change("vars.set", {}, { kv: { [key(15)]: 1 } })).toThrow("has 15 segments, expected at most 14");
    expect(change("vars.set", {}, { kv: { [key(14)]: 1 } }).result.touched).toBe(1);
    expect(() => change("vars.set", {}, { kv: { [tooLong]: 1 } })).toThrow(/expected at most 512/);
    expect(change("vars.set", {}, { kv: { [longest]: 1 } }).result.touched).toBe(1);
  });

  // As above: JSON has no bytes.
  it("[T102] refuses a text that is too large", () => {
    expect(() => change("vars.set", {}, { kv: { payload: "a".repeat(65_537) } })).toThrow("has 65537 bytes, expected at most 65536");
    expect(() => change("vars.set", {}, { kv: { payload: "é".repeat(40_000) } })).toThrow("has 80000 bytes");
    expect(change("vars.set", {}, { kv: { payload: "é".repeat(32_768) } }).result.touched).toBe(1);
  });

  it("[T103] reports its keys in order, for any order of the input", () => {
    const { result } = change("vars.set", {}, { kv: { "b.z": 1, "a.y": 2, b: { x: 3 } } });
    expect(result).toMatchObject({ keys: [`${prefix}a.y`, `${prefix}b.x`, `${prefix}b.z`], sensitive_hits: 0 });
  });

  it("[T104] refuses sensitive values when blocking is on, and otherwise counts them", () => {
    expect(() => changeVars("vars.set", {}, { kv: { token: "LEAK" }, block_sensitive: true }, leaks)).toThrow(/looks like a secret/);
    expect(changeVars("vars.set", {}, { kv: { token: "LEAK" } }, leaks)).toMatchObject({
      vars: { token: "LEAK" },
      result: { sensitive_hits: 1 },
    });
  });

  it("refuses to write below a value that is not an object, and treats __proto__ as an ordinary name", () => {
    expect(() => change("vars.set", { a: 1 }, { kv: { "a.b": 2 } })).toThrow("is below a, which is 1 and no object");
    const { vars } = change("vars.set", {}, JSON.parse('{"kv":{"__proto__.polluted":1}}') as JsonObject);
    expect(Object.keys(vars)).toEqual(["__proto__"]);
    expect(({} as { polluted?: number }).polluted).toBeUndefined();
  });
});

describe("vars.unset", () => {
  const vars = { limits: { max: 5 }, flags: { beta: true }, nested: { lvl1: { lvl2: 123 } } };

  it("[T105] removes a leaf or a branch, and objects that become empty; a missing path is counted and changes nothing", () => {
    expect(change("vars.unset", vars, { keys: ["limits.max"] })).toMatchObject({ vars: { flags: { beta: true } }, result: { touched: 1 } });
    expect(change("vars.unset", vars, { keys: ["limits.max"] }).vars).not.toHaveProperty("limits");
    expect(change("vars.unset", vars, { keys: ["nested.lvl1"] }).vars).toEqual({ limits: { max: 5 }, flags: { beta: true } });
    const missing = change("vars.unset", vars, { keys: ["missing.key", "flags.beta.deeper"] });
    expect(missing.vars).toBe(vars);
    expect(missing.result.touched).toBe(2);
  });

  it.each(badKeys)("[T106] refuses the path %j", (key) => {
    expect(() => change("vars.unset", vars, { keys: [key] })).toThrow(/segment|NUL/);
  });

  it("[T107] refuses a path that is too long", () => {
    expect(() => change("vars.unset", vars, { keys: [tooLong] })).toThrow(/expected at most 512/);
    expect(change("vars.unset", vars, { keys: [longest] })).toMatchObject({ vars, result: { touched: 1 } });
  });

  // A graph can only pass named arguments, so only one of the reference's two forms exists: the one with `keys`.
  it("[T108] accepts a list of keys, and refuses a text in its place", () => {
    const three = { a: { b: 1 }, c: { d: 2 }, e: { f: 3 } };
    expect(change("vars.unset", three, { keys: ["a.b", "c.d"] })).toMatchObject({ vars: { e: { f: 3 } }, result: { touched: 2 } });
    expect(change("vars.unset", three, { keys: ["e.f", "missing.zz"] })).toMatchObject({ result: { touched: 2 } });
    expect(() => change("vars.unset", three, { keys: "a.b" })).toThrow('is "a.b", expected a list of keys');
  });
});
