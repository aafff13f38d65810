import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterEach, describe, expect, it } from "vitest";

const reporter = fileURLToPath(new URL("./plain-reporter.ts", import.meta.url));
const vitest = fileURLToPath(new URL("../node_modules/vitest/vitest.mjs", import.meta.url));
const vitestEntry = fileURLToPath(new URL("../node_modules/vitest/dist/index.js", import.meta.url));
const folders: string[] = [];

afterEach(() => {
  for (const folder of folders.splice(0)) rmSync(folder, { recursive: true, force: true });
});

/** Runs a real vitest with the given test files and returns its exit code and last lines. */
function run(files: Record<string, string>, env: Record<string, string> = {}): { code: number | null; lastLine: string; before: string[] } {
  const folder = mkdtempSync(join(tmpdir(), "longshore-reporter-"));
  folders.push(folder);
  for (const [name, body] of Object.entries(files)) {
    writeFileSync(join(folder, name), `import { it } from ${JSON.stringify(vitestEntry)};\n${body}`);
  }
  const result = spawnSync(process.execPath, [vitest, "run", "--root", folder, "--reporter", "dot", "--reporter", reporter], {
    encoding: "utf8",
    env: { PATH: process.env.PATH, ...env },
  });
  const [before2 = "", before1 = "", lastLine = ""] = result.stdout.trimEnd().split("\n").slice(-3);
  return { code: result.status, lastLine, before: [before2, before1] };
}

describe("plain reporter", () => {
  it("ends with the number of passed and failed tests", () => {
    const { code, lastLine } = run({ "a.test.js": `it("a", () => {}); it("b", () => {}); it("c", () => { throw new Error("no"); });` });
    expect(lastLine).toBe("2 passed, 1 failed");
    expect(code).not.toBe(0);
  });

  it("names each failed test with the first line of its error directly before the counts", () => {
    const { before } = run({
      "a.test.js": `it("a", () => {}); it("b", () => { throw new Error("no b\\nand more"); }); it("c", () => { throw new Error("no c"); });`,
    });
    expect(before).toEqual(["FAILED a.test.js > b: no b", "FAILED a.test.js > c: no c"]);
  });

  it("counts a file that does not load as one failure", () => {
    const { code, lastLine, before } = run({ "a.test.js": `it("a", () => {});`, "b.test.js": `throw new Error("broken file");` });
    expect(before[1]).toBe("FAILED b.test.js: broken file");
    expect(lastLine).toBe("1 passed, 1 failed");
    expect(code).not.toBe(0);
  });

  const skipping = { "a.test.js": `it("a", () => {}); it("b", (ctx) => ctx.skip("no b here; get it with: make b"));` };

  it("names skipped tests and what they need, does not count them as failures by default, and ends with the usual line", () => {
    const { code, lastLine, before } = run(skipping);
    expect(before).toEqual(["SKIPPED a.test.js > b: no b here; get it with: make b", "1 SKIPPED"]);
    expect(lastLine).toBe("1 passed, 0 failed");
    expect(code).toBe(0);
  });

  it("counts a skipped test as failed when skips are forbidden", () => {
    const { code, lastLine, before } = run(skipping, { LONGSHORE_NO_SKIP: "1" });
    expect(before[1]).toBe("1 SKIPPED, counted as failed (LONGSHORE_NO_SKIP=1)");
    expect(lastLine).toBe("1 passed, 1 failed");
    expect(code).toBe(1);
  });
});
