// `.ci/run` decides whether a change is accepted, so its sums are tested. A fake `npm` replaces the stages.
import { spawnSync } from "node:child_process";
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterEach, describe, expect, it } from "vitest";

const script = fileURLToPath(new URL("../.ci/run", import.meta.url));
const folders: string[] = [];

afterEach(() => {
  for (const folder of folders.splice(0)) rmSync(folder, { recursive: true, force: true });
});

/** Runs `.ci/run` with stages that print the given text and end with the given code. */
function run(stages: { test: string; check: string; conformance: string }): { code: number | null; lastLine: string; lineBefore: string } {
  const folder = mkdtempSync(join(tmpdir(), "longshore-ci-"));
  folders.push(folder);
  const npm = [
    `case "$*" in`,
    "ci) ;;",
    `test) ${stages.test} ;;`,
    `"run check") ${stages.check} ;;`,
    `*) ${stages.conformance} ;;`,
    "esac",
  ];
  const programs = { npm: npm.join("\n"), "apt-get": "exit 0", sudo: "exit 0" };
  for (const [name, body] of Object.entries(programs)) {
    writeFileSync(join(folder, name), `#!/bin/bash\n${body}\n`);
    chmodSync(join(folder, name), 0o755);
  }
  const result = spawnSync("bash", [script], { encoding: "utf8", env: { ...process.env, PATH: `${folder}:${process.env.PATH}` } });
  const [lineBefore = "", lastLine = ""] = result.stdout.trimEnd().split("\n").slice(-2);
  return { code: result.status, lastLine, lineBefore };
}

const good = { test: "echo '10 passed, 0 failed'", check: "echo '9 passed, 0 failed'", conformance: "echo '4 passed, 0 failed'" };

describe("the CI run", () => {
  it("adds the counts of all stages", () => {
    expect(run(good)).toMatchObject({ code: 0, lastLine: "23 passed, 0 failed" });
  });

  it("fails with the failures of one stage and still runs the others", () => {
    expect(run({ ...good, test: "echo '8 passed, 2 failed'; exit 1" })).toMatchObject({ code: 1, lastLine: "21 passed, 2 failed" });
  });

  it("names what failed directly before the counts", () => {
    const test = "echo 'FAILED a.test.ts > b: no b'; echo '9 passed, 1 failed'; exit 1";
    expect(run({ ...good, test })).toMatchObject({ lineBefore: "test: FAILED a.test.ts > b: no b", lastLine: "22 passed, 1 failed" });
  });

  it("forbids skips, so that a stage counts a skipped test as a failure", () => {
    const conformance = `echo "3 passed, \${LONGSHORE_NO_SKIP:-0} failed"; exit 1`;
    expect(run({ ...good, conformance })).toMatchObject({ code: 1, lastLine: "22 passed, 1 failed" });
  });

  it("counts a stage that fails without a result as a failure", () => {
    expect(run({ ...good, check: "echo broken; exit 3" })).toMatchObject({ code: 1, lastLine: "14 passed, 1 failed" });
  });

  it("counts a stage that succeeds without a result as a failure", () => {
    expect(run({ ...good, conformance: "true" })).toMatchObject({ code: 1, lastLine: "19 passed, 1 failed" });
  });

  it("counts a stage that reports no failures but ends with an error code as a failure", () => {
    expect(run({ ...good, check: "echo '9 passed, 0 failed'; exit 1" })).toMatchObject({ code: 1, lastLine: "23 passed, 1 failed" });
  });
});
