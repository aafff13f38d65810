// `longshore init`: the project that it writes compiles, passes its own test and runs in `longshore dev`, as its README says.

import { existsSync, mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, it } from "vitest";
import { longshore, startLongshore, startProgram, temporaryFolder } from "../support/cli.ts";

const modules = fileURLToPath(new URL("../../../../node_modules", import.meta.url));

/** The packages that the project needs besides this one, and where the repository has them. */
const needed = { tsx: "tsx", typescript: "typescript-6", "@types": "@types" };

const timeoutMs = 120_000;

it(
  "init writes five files that compile, pass their test and run in dev",
  async () => {
    const folder = temporaryFolder();
    for (const [name, place] of Object.entries(needed)) symlinkSync(join(modules, place), join(folder, "node_modules", name));
    const { code, stdout, stderr } = await longshore(["init", "My App"], { cwd: folder });
    expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
    expect(stdout).toMatch(/^ {2}cd "My App" && npm install && npm test\n {2}npm run dev$/m);

    const app = join(folder, "My App");
    expect(readdirSync(app).sort()).toEqual(["README.md", "app.test.ts", "app.ts", "package.json", "tsconfig.json"]);
    const manifest = JSON.parse(readFileSync(join(app, "package.json"), "utf8"));
    expect(manifest.name).toBe("my-app");
    expect(Object.keys({ ...manifest.dependencies, ...manifest.devDependencies }).sort()).toEqual([
      "@types/node",
      "longshore",
      "tsx",
      "typescript",
    ]);

    const compiled = await startProgram(process.execPath, [join(folder, "node_modules/typescript/bin/tsc")], { cwd: app }).ended;
    expect(compiled.code, compiled.stdout).toBe(0);
    const [command, ...args] = manifest.scripts.test.split(" ");
    const tested = await startProgram(command, args, { cwd: app }).ended;
    expect(tested.code, tested.stdout + tested.stderr).toBe(0);
    expect(tested.stdout).toMatch(/pass 2/);

    const dev = startLongshore([...manifest.scripts.dev.split(" ").slice(1), "--port", "0"], { cwd: app });
    const [, url = ""] = await dev.printed(/serves on (http:\S+?),/);
    await dev.printed(/app\.ts: workflow order; tasks pay, price\./);
    await dev.printed(/Serving until/);
    const on = (...line: string[]) => longshore([...line, "--on", url], { cwd: app });
    const small = await on("run", "order", "--input", '{"item":"lantern","count":2}', "--follow", "--json");
    expect(JSON.parse(small.stdout), small.stderr).toMatchObject({ state: "succeeded", output: { state: "paid", receipt: "R-39" } });
    const large = (await on("run", "order", "--input", '{"item":"lantern","count":20}')).stdout.trim();
    expect(await on("signal", large, "approve", '{"ok":true}')).toMatchObject({ code: 0 });
  },
  timeoutMs,
);

it("init in the current folder needs no cd, and chooses a name that npm accepts", async () => {
  const folder = join(temporaryFolder(), "longshore");
  mkdirSync(folder);
  const { code, stdout } = await longshore(["init"], { cwd: folder });
  expect(code).toBe(0);
  expect(stdout).toMatch(/^ {2}npm install && npm test$/m);
  expect(JSON.parse(readFileSync(join(folder, "package.json"), "utf8"))).toMatchObject({ name: "longshore-app" });
});

it("init replaces no file", async () => {
  const folder = temporaryFolder();
  mkdirSync(join(folder, "x"));
  writeFileSync(join(folder, "x/app.ts"), "mine");
  const { code, stderr } = await longshore(["init", "x"], { cwd: folder });
  expect({ code, stderr }).toEqual({
    code: 2,
    stderr: "longshore: x already has app.ts, and init replaces no file. Name another folder.\n",
  });
  expect(readFileSync(join(folder, "x/app.ts"), "utf8")).toBe("mine");
  expect(existsSync(join(folder, "x/package.json"))).toBe(false);
});
