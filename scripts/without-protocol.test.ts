import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { aboutIt, listedIn, testsNaming, withoutLines } from "./without-protocol.ts";

const registry = `import { alphaProtocol } from "./alpha/protocol.ts";
import { betaProtocol } from "./beta/protocol.ts";
import type { BetaOptions, BetaSide } from "./beta/server/options.ts";

export interface Options extends NoFields {}
export interface Options extends BetaOptions {}

export const protocols = [
  alphaProtocol, //
  betaProtocol,
];
`;

describe("the registry without a protocol", () => {
  it("has no import of it and no line that uses its imports", () => {
    expect(withoutLines(registry, "beta")).toBe(`import { alphaProtocol } from "./alpha/protocol.ts";

export interface Options extends NoFields {}

export const protocols = [
  alphaProtocol, //
];
`);
  });

  it("is refused when the registry does not contain it, so that an empty check cannot look like success", () => {
    expect(() => withoutLines(registry, "gamma")).toThrow("imports nothing from ./gamma/");
  });

  it("can be made from the real registry for each protocol", () => {
    const real = readFileSync(new URL("../packages/longshore/src/protocols/index.ts", import.meta.url), "utf8");
    const names = listedIn(real);
    expect(names.length).toBeGreaterThan(3);
    for (const name of names) expect(listedIn(withoutLines(real, name))).toEqual(names.filter((other) => other !== name));
  });
});

describe("what is removed with a protocol", () => {
  const src = "packages/longshore/src";
  const tree = new Map([
    [`${src}/protocols/alpha/wire/shapes.ts`, ""],
    [`${src}/server/door.ts`, `import { shape } from "../protocols/alpha/wire/shapes.ts";`],
    [`${src}/server/door.test.ts`, `import { door } from "./door.ts";`],
    ["packages/longshore/test/support/alpha.ts", `import { shape } from "../../src/protocols/alpha/wire/shapes.ts";`],
    ["packages/longshore/test/integration/one.test.ts", `import { start } from "../support/alpha.ts";`],
    ["bench/alpha-side.ts", `import { alpha } from "longshore/alpha/compat";`],
    ["bench/beta-side.ts", `import { beta } from "longshore/alphabet";`],
  ]);

  it("are its folder and all files outside the source that import it, through any number of files", () => {
    expect(aboutIt(tree, "alpha").sort()).toEqual([
      "bench/alpha-side.ts",
      "packages/longshore/src/protocols/alpha/wire/shapes.ts",
      "packages/longshore/test/integration/one.test.ts",
      "packages/longshore/test/support/alpha.ts",
    ]);
  });

  it("do not include source, so that source that needs it fails the type check", () => {
    expect(aboutIt(tree, "alpha")).not.toContain(`${src}/server/door.ts`);
  });

  it("include tests that name it, in any spelling", () => {
    const tests = new Map([
      ["a.test.ts", "alphaBeta"],
      ["b.test.ts", "Alpha-Beta"],
      ["c.test.ts", "alpha, beta"],
      ["d.ts", "alpha-beta"],
    ]);
    expect(testsNaming(tests, "alpha-beta")).toEqual(["a.test.ts", "b.test.ts"]);
  });
});
