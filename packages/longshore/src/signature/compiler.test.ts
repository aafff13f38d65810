import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it, onTestFinished } from "vitest";
import { loadCompiler } from "./compiler.ts";

/** A project with these packages, each of which is a module of this text. */
function project(packages: { [name: string]: string }): string {
  const folder = mkdtempSync(join(tmpdir(), "longshore-compiler-"));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  for (const [name, text] of Object.entries(packages)) {
    mkdirSync(join(folder, "node_modules", name), { recursive: true });
    writeFileSync(join(folder, "node_modules", name, "index.js"), text);
  }
  return join(folder, "tasks.ts");
}

const native = 'exports.version = "7.0.2";';
const usable = 'exports.version = "6.0.3"; exports.createProgram = () => {};';

it("the project's own compiler is preferred", () => {
  expect(loadCompiler(project({ typescript: usable })).version).toBe("6.0.3");
});

it("a second package name is tried when the compiler has no programming interface", () => {
  expect(loadCompiler(project({ typescript: native, "typescript-6": usable })).version).toBe("6.0.3");
});

it("a missing compiler is reported with what to install", () => {
  const bare = project({});
  expect(() => loadCompiler(bare, [bare])).toThrow(
    "Reading signatures needs the compiler of TypeScript 6, and it is not installed. " +
      "Run `npm install --save-dev typescript-6@npm:typescript@6`.",
  );
  const other = project({ typescript: native });
  expect(() => loadCompiler(other, [other])).toThrow("typescript 7.0.2 has no compiler that a program can call");
});
