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

/** Runs a real vitest over the given test files and answers its exit code and last line. */
function run(files: Record<string, string>, env: Record<string, string> = {}): { code: number | null; lastLine: string } {
  const folder = mkdtempSync(join(tmpdir(), "longshore-reporter-"));
  folders.push(folder);
  for (const [name, body] of Object.entries(files)) {
    writeFileSync(join(folder, name), `import { it } from ${JSON.stringify(vitestEntry)};\n${body}`);
  }
  const result = spawnSync(process.execPath, [vitest, "run", "--root", folder, "--reporter", "dot", "--reporter", reporter], {
    encoding: "utf8",
    env: { PATH: process.env.PATH, ...env },
  });
  return { code: result.status, lastLine: result.stdout.trimEnd().split("\n").at(-1) ?? "" };
}

describe("plain reporter", () => {
  it("ends with the number of passed and failed tests", () => {
    const { code, lastLine } = run({ "a.test.js": `it("a", () => {}); it("b", () => {}); it("c", () => { throw new Error("no"); });` });
    expect(lastLine).toBe("2 passed, 1 failed");
    expect(code).not.toBe(0);
  });

  it("counts a file that does not load as one failure", () => {
    const { code, lastLine } = run({ "a.test.js": `it("a", () => {});`, "b.test.js": `throw new Error("broken file");` });
    expect(lastLine).toBe("1 passed, 1 failed");
    expect(code).not.toBe(0);
  });

  it("names skipped tests and lets them pass by default", () => {
    const { code, lastLine } = run({ "a.test.js": `it("a", () => {}); it["skip"]("b", () => {});` });
    expect(lastLine).toBe("1 passed, 0 failed, 1 skipped");
    expect(code).toBe(0);
  });

  it("fails the run for a skipped test when skips are forbidden", () => {
    const { code, lastLine } = run({ "a.test.js": `it("a", () => {}); it["skip"]("b", () => {});` }, { LONGSHORE_NO_SKIP: "1" });
    expect(lastLine).toBe("1 passed, 0 failed, 1 skipped");
    expect(code).toBe(1);
  });
});
