// npm must print no warning when the repository is installed. A package whose `engines` exclude a supported Node, or that has an install
// script, causes a line that a newcomer would have to understand.

import { spawnSync } from "node:child_process";
import { cpSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, it, onTestFinished } from "vitest";

const root = fileURLToPath(new URL("..", import.meta.url));

interface Locked {
  readonly hasInstallScript?: boolean;
}

const { packages } = readJson("package-lock.json") as { packages: Record<string, Locked> };

it("npm ci reports no package that excludes this Node", () => {
  const folder = mkdtempSync(join(tmpdir(), "longshore-install-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const workspaces = Object.keys(packages).filter((place) => place !== "" && !place.includes("node_modules/"));
  const files = ["package.json", "package-lock.json", ".npmrc", ...workspaces.map((place) => `${place}/package.json`)];
  for (const file of files) cpSync(join(root, file), join(folder, file));
  const npm = spawnSync("npm", ["ci", "--dry-run", "--offline"], { cwd: folder, encoding: "utf8" });
  expect(npm.status, npm.stderr).toBe(0);
  expect(npm.stderr.split("\n").filter((line) => line.includes("EBADENGINE"))).toEqual([]);
});

it("npm ci runs no install script, and the repository names every package that has one", () => {
  const { allowScripts } = readJson("package.json") as { allowScripts: Record<string, boolean> };
  const scripted = Object.entries(packages).flatMap(([place, { hasInstallScript }]) =>
    hasInstallScript ? [place.replace(/^.*node_modules\//, "")] : [],
  );
  expect(allowScripts).toEqual(Object.fromEntries(scripted.map((name) => [name, false])));
});

function readJson(path: string): unknown {
  return JSON.parse(readFileSync(join(root, path), "utf8"));
}
