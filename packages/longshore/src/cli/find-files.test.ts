import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { expect, it, onTestFinished } from "vitest";
import { findFiles } from "./find-files.ts";

function tree(...files: string[]): (...patterns: string[]) => string[] {
  const root = mkdtempSync(join(tmpdir(), "longshore-find-"));
  onTestFinished(() => rmSync(root, { recursive: true, force: true }));
  for (const file of files) {
    mkdirSync(dirname(join(root, file)), { recursive: true });
    writeFileSync(join(root, file), "");
  }
  return (...patterns) => findFiles(patterns.map((pattern) => join(root, pattern))).map(({ file }) => file.slice(root.length + 1));
}

it("finds files in folders of any depth, but no hidden files and no files of packages", () => {
  const find = tree("w/a.ts", "w/x/b.ts", "w/x/y/c.mjs", "w/x/d.md", "w/x/e.d.ts", "w/node_modules/f.ts", "w/.git/g.ts");
  expect(find("w/**/*.ts")).toEqual(["w/a.ts", "w/x/b.ts"]);
  expect(find("w/**")).toEqual(["w/a.ts", "w/x/b.ts", "w/x/y/c.mjs"]);
  expect(find("w/*/*.ts")).toEqual(["w/x/b.ts"]);
});

it("supports alternatives, single characters and character sets", () => {
  const find = tree("a1.ts", "a2.mts", "b1.ts", "(c).ts");
  expect(find("a?.{ts,mts}")).toEqual(["a1.ts", "a2.mts"]);
  expect(find("[!b]1.ts")).toEqual(["a1.ts"]);
  expect(find("(c)*")).toEqual(["(c).ts"]);
});

it("returns a file that is given by its name, and each file once", () => {
  const find = tree("[id].ts", "plain.ts");
  expect(find("[id].ts", "*.ts", "plain.ts")).toEqual(["[id].ts", "plain.ts"]);
});

it("reports where it looked when a pattern names nothing", () => {
  const find = tree("a.ts");
  expect(() => find("none/**/*.ts")).toThrow(/no file matches .*none\/\*\*\/\*\.ts \(looked below .*none\)/);
});
