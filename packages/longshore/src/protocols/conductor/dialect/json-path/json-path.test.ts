import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { Json } from "../../../../core/json/json.ts";
import { parseExact } from "../../../../core/json/json-exact.ts";
import { Budget, readPath } from "./evaluate.ts";
import { parsePath } from "./parse.ts";
import { PathError } from "./path-error.ts";

const store: Json = {
  book: [
    { title: "Sayings", price: 8.95, tags: ["old", "short"], isbn: "0-1" },
    { title: "Sword", price: 12.99, tags: [] },
    { title: "Moby", price: 8.99, isbn: "0-2", tags: ["sea"] },
  ],
  "two words": { "a.b": 1 },
  numbers: [3, 1, 2],
  nothing: null,
  bicycle: { price: 19.95, color: "red" },
};
const read = (path: string, document: Json = { store }): Json => readPath(parsePath(path), document);

describe("paths to one value", () => {
  it("begin at the document, with or without the dollar", () => {
    expect(read("store.bicycle.color")).toBe("red");
    expect(read("$.store.bicycle.color")).toBe("red");
    expect(read("$['store']['bicycle']['color']")).toBe("red");
    expect(read("$")).toEqual({ store });
  });

  it("use names in quotes unchanged", () => {
    expect(read("store['two words']['a.b']")).toBe(1);
    expect(read(`store["two words"]["a.b"]`)).toBe(1);
    expect(read("['it\\'s']", { "it's": 2 })).toBe(2);
  });

  it("accept names with hyphens, colons and underscores without quotes", () => {
    expect(read("my-task_1.output.x:y", { "my-task_1": { output: { "x:y": 7 } } })).toBe(7);
  });

  it("count list items from the front, and from the back when negative", () => {
    expect(read("store.book[0].title")).toBe("Sayings");
    expect(read("store.book[-1].title")).toBe("Moby");
  });

  it("are null when there is no value", () => {
    for (const path of ["store.none", "store.none.deeper", "store.nothing.deeper", "store.book[9]", "store.book.title", "store.bicycle[0]"])
      expect(read(path)).toBeNull();
  });

  it("never reach inherited properties", () => {
    for (const name of ["constructor", "toString", "__proto__"]) expect(read(`store.${name}`)).toBeNull();
    expect(read("store.book.length")).toBeNull();
  });

  it("select several properties as an object", () => {
    expect(read("store.bicycle['price','color','none']")).toEqual({ price: 19.95, color: "red" });
  });
});

describe("paths to lists", () => {
  it("follow every item or property", () => {
    expect(read("store.book[*].title")).toEqual(["Sayings", "Sword", "Moby"]);
    expect(read("store.book.*.isbn")).toEqual(["0-1", "0-2"]);
    expect(read("store.bicycle.*")).toEqual([19.95, "red"]);
  });

  it("accept slices and several indexes", () => {
    expect(read("store.numbers[0:2]")).toEqual([3, 1]);
    expect(read("store.numbers[-2:]")).toEqual([1, 2]);
    expect(read("store.numbers[:1]")).toEqual([3]);
    expect(read("store.numbers[0,2,9]")).toEqual([3, 2]);
  });

  it("find a name at any depth", () => {
    expect(read("store..price")).toEqual([8.95, 12.99, 8.99, 19.95]);
    expect(read("$..book[0].title")).toEqual(["Sayings"]);
    expect(read("$..['color']")).toEqual(["red"]);
  });

  it("are empty lists when nothing matches", () => {
    expect(read("store.none[*]")).toEqual([]);
    expect(read("store..nowhere")).toEqual([]);
    expect(read("store.book[?(@.price > 100)]")).toEqual([]);
  });
});

describe("filters", () => {
  const titles = (filter: string): Json => read(`store.book[?(${filter})].title`);

  it("compare numbers and texts", () => {
    expect(titles("@.price < 9")).toEqual(["Sayings", "Moby"]);
    expect(titles("@.price >= 12.99")).toEqual(["Sword"]);
    expect(titles("@.title == 'Sword'")).toEqual(["Sword"]);
    expect(titles("@.title != 'Sword'")).toEqual(["Sayings", "Moby"]);
    expect(titles("'Sword' == @['title']")).toEqual(["Sword"]);
  });

  it("do not order values of different types", () => {
    expect(titles("@.title > 1")).toEqual([]);
    expect(titles("@.none > 1")).toEqual([]);
  });

  it("treat a numeric text as a number, except in strict comparisons", () => {
    expect(read("l[?(@ == 1)]", { l: [1, "1", "x", true] })).toEqual([1, "1"]);
    expect(read("l[?(@ === 1)]", { l: [1, "1"] })).toEqual([1]);
  });

  it("check whether a value exists", () => {
    expect(titles("@.isbn")).toEqual(["Sayings", "Moby"]);
    expect(titles("!@.isbn")).toEqual(["Sword"]);
    expect(read("l[?(@.x == null)]", { l: [{ x: null }, {}] })).toEqual([{ x: null }]);
  });

  it("combine tests; && binds closer than ||", () => {
    expect(titles("@.price > 10 || @.isbn && @.title == 'Moby'")).toEqual(["Sword", "Moby"]);
    expect(titles("(@.price > 10 || @.isbn) && @.title == 'Moby'")).toEqual(["Moby"]);
  });

  it("match patterns with the whole text", () => {
    expect(titles("@.title =~ /S.*/")).toEqual(["Sayings", "Sword"]);
    expect(titles("@.title =~ /sw/i")).toEqual([]);
    expect(titles("@.title =~ /sw[a-z]{3}/i")).toEqual(["Sword"]);
  });

  it("support the operators on lists", () => {
    expect(titles("@.title in ['Moby', 'Other']")).toEqual(["Moby"]);
    expect(titles("@.title nin ['Moby']")).toEqual(["Sayings", "Sword"]);
    expect(titles("@.tags subsetof ['old', 'short', 'long']")).toEqual(["Sayings", "Sword"]);
    expect(titles("@.tags anyof ['sea']")).toEqual(["Moby"]);
    expect(titles("@.tags noneof ['sea']")).toEqual(["Sayings", "Sword"]);
    expect(titles("@.tags size 2")).toEqual(["Sayings"]);
    expect(titles("@.tags empty true")).toEqual(["Sword"]);
    expect(titles("@.tags contains 'sea'")).toEqual(["Moby"]);
  });

  it("may read the whole document, and may contain filters", () => {
    expect(titles("@.price > $.store.numbers[1] && @.price < $.store.bicycle.price")).toEqual(["Sayings", "Sword", "Moby"]);
    expect(titles("@.tags[?(@ == 'sea')]")).toEqual(["Moby"]);
  });

  it("select an object as a whole", () => {
    expect(read("store.bicycle[?(@.color == 'red')]")).toEqual([(store as { bicycle: Json }).bicycle]);
  });

  it("compare with objects", () => {
    expect(read("l[?(@ == {'a': [1, {'b': null}]})]", { l: [{ a: [1, { b: null }] }, { a: [1] }] })).toEqual([{ a: [1, { b: null }] }]);
  });
});

describe("functions", () => {
  it("work on the result of the path", () => {
    expect(read("store.book.length()")).toBe(3);
    expect(read("store.bicycle.size()")).toBe(2);
    expect(read("store.bicycle.keys()")).toEqual(["price", "color"]);
    expect(read("store.numbers.min()")).toBe(1);
    expect(read("store.numbers.max()")).toBe(3);
    expect(read("store.numbers.sum()")).toBe(6);
    expect(read("store.numbers.avg()")).toBe(2);
    expect(read("store.numbers.stddev()")).toBeCloseTo(Math.sqrt(2 / 3));
    expect(read("store.book[*].price.max()")).toBe(12.99);
    expect(read("store..price.length()")).toBe(4);
  });

  it("take arguments", () => {
    expect(read("store.numbers.append(9)")).toEqual([3, 1, 2, 9]);
    expect(read("store.book[*].title.concat('!', $.store.bicycle.color)")).toBe("SayingsSwordMoby!red");
    expect(read("store.numbers.index(-1)")).toBe(2);
  });

  it("may be followed by more path segments", () => {
    expect(read("store.book.first().title")).toBe("Sayings");
    expect(read("store.book.last().title")).toBe("Moby");
  });

  it("are null for values that they cannot process", () => {
    for (const path of [
      "store.nothing.length()",
      "store.bicycle.min()",
      "store.none.sum()",
      "store.nothing.keys()",
      "store.numbers.index('x')",
    ])
      expect(read(path)).toBeNull();
  });
});

describe("bad paths", () => {
  it("are refused with a reason", () => {
    const bad = ["", "a.", "a..", "a['x", "a[x]", "a[?(@.x ==)]", "a[?(1)]", "a.f()", "a b", "a[?(@.x =~ /(/)]", "a[?(@.x =~ /\\1/)]"];
    for (const path of bad) expect(() => parsePath(path), path).toThrow(PathError);
  });

  it("may end in an open bracket, which has no effect", () => {
    expect(read("store.bicycle.color[")).toBe("red");
  });

  it("are refused when they nest or repeat too much", () => {
    expect(() => parsePath(`a[?(${"(".repeat(200)}`)).toThrow(/nesting/);
    expect(() => parsePath(`a[?(@ =~ /${"(".repeat(200)}/)]`)).toThrow(/deep/);
    expect(() => parsePath("a[?(@ =~ /(((x{1000}){1000}){1000})/)]")).toThrow(/repeats/);
    expect(() => parsePath("a[?(@ =~ /((){1000}){1000}/)]")).toThrow(/repeats/);
    expect(() => parsePath(`a.${"b".repeat(5_000)}`)).toThrow(/characters/);
  });
});

describe("cost", () => {
  it("stops a path that scans the document for each of many items", () => {
    const list = Array.from({ length: 3_000 }, (_, at) => ({ at }));
    expect(() => read("l[?($..at empty true)]", { l: list })).toThrow(/looks at more than/);
  });

  it("is linear for a pattern that would backtrack without end elsewhere", () => {
    const text = `${"a".repeat(5_000)}!`;
    expect(readPath(parsePath("l[?(@ =~ /(a+)+/)]"), { l: [text] })).toEqual([]);
    expect(readPath(parsePath("l[?(@ =~ /(a|a)*b?!/)]"), { l: [text] })).toEqual([text]);
  });

  it("includes the work of patterns", () => {
    const path = parsePath("l[?(@ =~ /(a|b|c)*/)]");
    expect(() => readPath(path, { l: ["abc".repeat(100)] }, new Budget(50))).toThrow(PathError);
  });

  const numbers = Array.from({ length: 1_000 }, (_, at) => at);
  const texts = Array.from({ length: 100 }, (_, at) => `${"a".repeat(6_400)}${at}`);
  const wide = Object.fromEntries(numbers.map((at) => [`k${at}`, at]));
  const other = { ...wide, k999: -1 };
  const long = "a".repeat(64_000);
  it.each<[string, Json, number]>([
    ["a[?($.b.sum() < 1)]", { a: [1, 2], b: numbers }, 2_000],
    ["a[?($.b.stddev() < 1)]", { a: [1, 2], b: numbers }, 2_000],
    ["a[?($.b.size() < 1)]", { a: [1, 2], b: wide }, 2_000],
    ["a[?($.b.keys() empty true)]", { a: [1, 2], b: wide }, 2_000],
    ["a[?($.b.append(1) empty true)]", { a: [1, 2], b: numbers }, 2_000],
    ["a[?($.c.sum($.b) < 1)]", { a: [1, 2], b: numbers, c: [] }, 2_000],
    ["a[?($.c.sum($.b[*].x) < 1)]", { a: [1, 2], b: [{ x: numbers }], c: [] }, 2_000],
    ["a[?($.b.concat() == 'x')]", { a: [1, 2], b: texts }, 20_000],
    ["a[?($.b[0:] empty true)]", { a: [1, 2], b: numbers }, 2_000],
    ["a[?(@ in $.b[0:900])]", { a: [-1, -2], b: numbers }, 1_800],
    ["a[?(@ == $.b)]", { a: [`${long}1`, `${long}2`], b: `${long}3` }, 2_000],
    ["a[?(@ == $.b)]", { a: [long, `${long}`], b: 1 }, 2],
    ["a[?(1 == @)]", { a: [`${long}`, long] }, 2_000],
    ["a[?(@ < $.b)]", { a: [`${long}1`, `${long}2`], b: `${long}3` }, 2_000],
    ["a[?(@ contains 'b')]", { a: [long, long] }, 2_000],
    ["a[?(@ contains $.b)]", { a: [long.slice(0, 6_000)], b: `b${long.slice(0, 2_000)}` }, 120],
    ["a[?(@ == $.b)]", { a: [other, other], b: wide }, 2_000],
    ["a[?(@ == $.b)]", { a: [{}, {}], b: wide }, 2_000],
    ["a[?(@ == $.b)]", { a: [[...numbers, 1]], b: [...numbers, 2] }, 1_000],
    ["a[?(@.none in $.b)]", { a: [{}, {}], b: numbers }, 2],
    ["a[?($.b noneof @)]", { a: [1, 2], b: numbers }, 2_000],
    ["a[?(@['x','y','z','u','v'] == 1)]", { a: [{}, {}] }, 10],
  ])("counts what %s looks at (%#)", (path, document, least) => {
    const budget = new Budget();
    readPath(parsePath(path), document, budget);
    expect(budget.spent).toBeGreaterThanOrEqual(least);
  });

  it("includes the digits of long numbers", () => {
    const document = parseExact(`{"a":[1,2],"b":[${"1".repeat(64_000)}]}`) as Json;
    for (const path of ["a[?($.b.sum() < 1)]", "a[?($.b[0] < 1)]", "a[?(@ in $.b)]"]) {
      const budget = new Budget();
      readPath(parsePath(path), document, budget);
      expect(budget.spent, path).toBeGreaterThanOrEqual(2_000);
    }
  });

  it("is small for results that do not need every item", () => {
    const list = Array.from({ length: 100_000 }, () => 1);
    for (const path of ["b.length()", "b.first()", "b.last()", "b.index(5)", "a[?(@ == $.b.length())]"]) {
      const budget = new Budget();
      readPath(parsePath(path), { a: [1, 2, 3], b: list }, budget);
      expect(budget.spent, path).toBeLessThan(50);
    }
  });
});

describe("any text", () => {
  const alphabet = fc.constantFrom(..."$@.[]()'\"*?:,-0a b=!<>&|~/\\{}".split(""), "..", "length()", "==", "a");
  const path = fc.array(alphabet, { maxLength: 30 }).map((parts) => parts.join(""));
  const document = fc.jsonValue({ maxDepth: 4 }) as fc.Arbitrary<Json>;

  it("is either a path that can be followed, or is refused with a PathError", () => {
    fc.assert(
      fc.property(path, document, (text, value) => {
        try {
          const found = readPath(parsePath(text), value);
          expect(JSON.stringify(found)).toBeTypeOf("string");
        } catch (error) {
          expect(error).toBeInstanceOf(PathError);
        }
      }),
      { numRuns: 2_000 },
    );
  });

  it("finds the same value by name and index as plain code", () => {
    const keys = fc.array(fc.oneof(fc.string({ minLength: 1, maxLength: 3 }), fc.nat(3)), { minLength: 1, maxLength: 4 });
    fc.assert(
      fc.property(keys, document, (parts, value) => {
        const text = `$${parts.map((part) => (typeof part === "number" ? `[${part}]` : `['${part.replace(/[\\']/g, "\\$&")}']`)).join("")}`;
        const expected = parts.reduce<Json | undefined>((here, part) => {
          if (here === undefined || here === null || typeof here !== "object") return undefined;
          if (Array.isArray(here) !== (typeof part === "number")) return undefined;
          return Object.hasOwn(here, part) ? (here as { [key: string]: Json })[part] : undefined;
        }, value);
        expect(readPath(parsePath(text), value)).toEqual(expected ?? null);
      }),
      { numRuns: 1_000 },
    );
  });
});
