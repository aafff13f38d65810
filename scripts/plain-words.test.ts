import { describe, expect, it } from "vitest";
import { findWordProblems } from "./plain-words.ts";

const source = [
  "// nobody reads this",
  'export const message = "nobody took it";',
  "const nobody = 1;",
  "for (const told of [nobody]) told;",
].join("\n");

describe("plain words", () => {
  it("finds each word of the list in prose, with its line and what to write instead", () => {
    const text = "Fine.\nThe port, 4500 unless told.\nIt stands in line. It waits for ever.\n";
    expect(findWordProblems("docs/a.md", text)).toEqual([
      'docs/a.md:2: "unless told"; write Default: ...',
      'docs/a.md:3: "for ever"; write permanently, without a limit',
      'docs/a.md:3: "stands in"; write is, waits, is stored',
    ]);
  });

  it("ignores fenced blocks of documents", () => {
    expect(findWordProblems("docs/a.md", "```js\nthrow new Error('nobody');\n```\n")).toEqual([]);
  });

  it("finds words in comments and strings of source files, but not in names", () => {
    const lines = findWordProblems("packages/longshore/src/a.ts", source).map((line) => line.split(":")[1]);
    expect(lines).toEqual(["1", "2"]);
  });

  it("treats strings of tests as data, except for titles", () => {
    const text = ['it("is told of a cancel", () => {', '  expect(get("nobody")).toBeUndefined();', "});"].join("\n");
    expect(findWordProblems("scripts/a.test.ts", text)).toHaveLength(1);
  });
});
