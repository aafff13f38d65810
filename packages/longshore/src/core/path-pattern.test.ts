import { describe, expect, it } from "vitest";
import { LongshoreError } from "./errors.ts";
import { pathPattern } from "./path-pattern.ts";

describe("a path pattern", () => {
  it("without parameters matches only itself", () => {
    const pattern = pathPattern("/orders/create");
    expect(pattern.literal).toBe(true);
    expect(pattern.match("/orders/create")).toEqual({});
    expect(["/orders", "/orders/create/", "orders/create", "/orders/create/x"].map(pattern.match)).toEqual(Array(4).fill(undefined));
  });

  it("fills a parameter with one segment, and a last wildcard with all that follow", () => {
    const pattern = pathPattern("/files/{kind}/{*rest}");
    expect(pattern.literal).toBe(false);
    expect(pattern.match("/files/text/a/b.txt")).toEqual({ kind: "text", rest: "a/b.txt" });
    expect(pattern.match("/files/text")).toBeUndefined();
    expect(pattern.match("/files/text/")).toBeUndefined();
    expect(pattern.match("/other/text/a")).toBeUndefined();
    expect(pathPattern("/{lang}").match("/de")).toEqual({ lang: "de" });
    expect(pathPattern("/{lang}").match("/de/at")).toBeUndefined();
  });

  it.each(["", "x", "/", "//x", "/{a", "/{a}b", "/{a}/{a}", "/{*rest}/x", "/{1}", "/two words", `/${"x".repeat(500)}`])(
    "is refused when it is %j; the error names what was expected",
    (text) => {
      expect(() => pathPattern(text, "path of task greet")).toThrow(LongshoreError);
      expect(() => pathPattern(text, "path of task greet")).toThrow(/^path of task greet is .*, expected a path such as/);
    },
  );
});
