import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, describe, expect, it } from "vitest";
import { readEntries } from "./entries.ts";
import { findUndocumented, pagesOf } from "./page.ts";

const folders: string[] = [];
afterEach(() => {
  for (const folder of folders.splice(0)) rmSync(folder, { recursive: true });
});

/** A built package with these declaration files. `index.d.ts` and `more.d.ts` are its entry points. */
function packageOf(files: Readonly<Record<string, string>>): string {
  const folder = mkdtempSync(join(tmpdir(), "longshore-api-"));
  folders.push(folder);
  mkdirSync(join(folder, "dist"));
  const exports = { ".": { types: "./dist/index.d.ts" }, "./more": { types: "./dist/more.d.ts" }, "./package.json": "./package.json" };
  writeFileSync(join(folder, "package.json"), JSON.stringify({ name: "sample", type: "module", exports }));
  for (const [name, text] of Object.entries(files)) writeFileSync(join(folder, "dist", name), text);
  return folder;
}

const files = {
  "index.d.ts": 'export { open, type Options } from "./open.ts";\n',
  "more.d.ts": 'import type { Options } from "./open.ts";\nexport interface Wide extends Options {\n    size: number;\n}\n',
  "open.d.ts": [
    "/** The options of `open()`. */",
    "export interface Options {",
    "    /** Its name. */",
    "    name: string;",
    "    mode: Mode;",
    "}",
    "/** How it is opened. */",
    'type Mode = "read" | "write";',
    "/** Opens it. */",
    "export declare function open(options: Options): void;",
    "export {};",
  ].join("\n"),
};

describe("the API reference", () => {
  it("shows each exported name with its comment, its declaration and links to the types it uses", () => {
    const page = pagesOf(readEntries(packageOf(files))).get("sample.md");
    expect(page).toContain(
      "## open (function)\n\nOpens it.\n\n```ts\nfunction open(options: Options): void;\n```\n\nUses [Options](#options-interface).",
    );
    expect(page).toContain("interface Options {\n  /** Its name. */\n  name: string;\n  mode: Mode;\n}");
    expect(page?.indexOf("## open")).toBeLessThan(page?.indexOf("## Options") ?? -1);
  });

  it("shows types that signatures use but no entry exports, below the others", () => {
    const page = pagesOf(readEntries(packageOf(files))).get("sample.md");
    expect(page).toContain('### Mode (type)\n\nHow it is opened.\n\n```ts\ntype Mode = "read" | "write";\n```');
  });

  it("links to the page of another entry instead of repeating its types", () => {
    const page = pagesOf(readEntries(packageOf(files))).get("more.md");
    expect(page).toContain("Uses [Options](sample.md#options-interface).");
    expect(page).not.toContain("interface Options {");
  });

  it("reports an exported name without a doc comment", () => {
    expect(findUndocumented(readEntries(packageOf(files)))).toEqual(["sample/more: Wide has no doc comment"]);
  });

  it("refuses a package that is not built", () => {
    expect(() => readEntries(packageOf({ "index.d.ts": files["index.d.ts"], "open.d.ts": files["open.d.ts"] }))).toThrow(/npm run build/);
  });
});
