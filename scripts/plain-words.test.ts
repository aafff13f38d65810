import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { findClean, findWordProblems, NOT_YET } from "./plain-words.ts";

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

  it("leaves fenced blocks of documents alone", () => {
    expect(findWordProblems("docs/a.md", "```js\nthrow new Error('nobody');\n```\n")).toEqual([]);
  });

  it("finds words in comments and strings of source files, and not in names", () => {
    const lines = findWordProblems("packages/longshore/src/a.ts", source, []).map((line) => line.split(":")[1]);
    expect(lines).toEqual(["1", "2"]);
  });

  it("still checks the texts that users see where comments are not rewritten yet", () => {
    const lines = findWordProblems("packages/longshore/src/old/a.ts", source, ["packages/longshore/src/old/"]);
    expect(lines.map((line) => line.split(":")[1])).toEqual(["2"]);
  });

  it("takes strings of tests for data, except for titles", () => {
    const text = ['it("is told of a cancel", () => {', '  expect(get("nobody")).toBeUndefined();', "});"].join("\n");
    expect(findWordProblems("scripts/a.test.ts", text, [])).toHaveLength(1);
  });

  it("reports a listed path that has no such word any more", () => {
    expect(findClean(["a/", "b/", "c.md"], ["b/x.ts", "c.md"])).toEqual(["a/"]);
  });

  it("the list of what is not rewritten yet only shrinks: no path in it is clean", () => {
    const tracked = execFileSync("git", ["ls-files", "-z", "--", ...NOT_YET], { encoding: "utf8" }).split("\0");
    const written = tracked.filter((path) => /\.(?:md|ts)$/.test(path) && !path.includes("/fixtures/"));
    const dirty = written.filter((path) => findWordProblems(path, readFileSync(path, "utf8"), []).length > 0);
    expect(findClean(NOT_YET, dirty)).toEqual([]);
  });
});
