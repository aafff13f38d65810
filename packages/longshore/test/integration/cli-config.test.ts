// Configuration of the built command: all file formats, environment variables, `longshore config`, and servers that use them.

import { symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";
import { longshore, startLongshore, temporaryFolder } from "../support/cli.ts";

const tsx = fileURLToPath(new URL("../../../../node_modules/tsx", import.meta.url));

const secret = "kV3mQ0rT8xLw2ZpB";

function folderWith(files: Readonly<Record<string, string>>): string {
  const folder = temporaryFolder();
  for (const [name, text] of Object.entries(files)) writeFileSync(join(folder, name), text);
  return folder;
}

interface Shown {
  readonly file: string | null;
  readonly settings: readonly {
    readonly key: string;
    readonly value: unknown;
    readonly source: string | null;
    readonly place: string | null;
  }[];
}

async function shown(args: readonly string[], cwd: string, env: Readonly<Record<string, string>> = {}) {
  const { code, stdout, stderr } = await longshore(["config", ...args, "--json"], { cwd, env });
  expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
  const { file, settings } = JSON.parse(stdout) as Shown;
  const of = (name: string) => settings.find(({ key }) => key === name);
  return { file, of, stdout };
}

describe("longshore config", () => {
  it("shows each value with its source, and no secret", async () => {
    const file = `tokens: [${secret}]\nstore: postgres://ann:hunter2hunter2@db/shop\nkeepRuns: 7\n`;
    const cwd = folderWith({ "longshore.config.yaml": file });
    const env = { LONGSHORE_KEEP_RUNS: "8", LONGSHORE_FLOWKIT_MONGO_URL: "mongodb://ann:hunter2hunter2@db/x" };
    const { file: read, of, stdout } = await shown(["--port", "0"], cwd, env);
    expect(read).toBe("longshore.config.yaml");
    expect(of("port")).toMatchObject({ value: 0, source: "command line", place: "--port" });
    expect(of("keepRuns")).toMatchObject({ value: 8, source: "environment", place: "LONGSHORE_KEEP_RUNS" });
    expect(of("tokens")).toMatchObject({ value: "(hidden)", source: "file", place: "longshore.config.yaml:1:1" });
    expect(of("store")).toMatchObject({ source: "file", place: "longshore.config.yaml:2:1" });
    expect(of("host")).toMatchObject({ value: "127.0.0.1", source: "default", place: null });
    expect(of("data")).toMatchObject({ value: null, source: null });
    expect(of("logLevel")).toMatchObject({ value: "info" });
    const text = (await longshore(["config"], { cwd, env })).stdout;
    expect(text).toMatch(/^keepRuns +8 +LONGSHORE_KEEP_RUNS$/m);
    for (const printed of [stdout, text]) expect(printed).not.toMatch(/hunter2|kV3m/);
  });

  it("shows the defaults of dev, which uses no store", async () => {
    const { of } = await shown(["dev"], folderWith({ "longshore.config.json": '{ "store": "postgres://ann@db/shop" }' }));
    expect(of("logLevel")).toMatchObject({ value: "warn" });
    expect(of("store")).toBeUndefined();
    expect(of("data")).toMatchObject({ value: ".longshore" });
  });

  it("reports a mistake as JSON", async () => {
    const { code, stderr } = await longshore(["config", "--json"], { cwd: folderWith({ "longshore.config.json": '{ "prot": 1 }' }) });
    expect(code).toBe(2);
    expect(JSON.parse(stderr)).toEqual({
      error: { code: "LONGSHORE_BAD_CONFIG", message: "longshore.config.json:1:3: there is no setting prot. Did you mean port?" },
    });
  });
});

describe("a server", () => {
  it("accepts a TypeScript file, whose types defineConfig checks", async () => {
    const file = `import { defineConfig } from "longshore/server";
export default defineConfig({ port: 0, data: "service-data", tokens: ["${secret}"], logLevel: "error" satisfies string });\n`;
    const cwd = folderWith({ "longshore.config.ts": file });
    symlinkSync(tsx, join(cwd, "node_modules/tsx"));
    const server = startLongshore(["start", "--json"], { cwd });
    const [, ready = ""] = await server.printed(/^(\{"ready":true.*\})$/m);
    const { url, data } = JSON.parse(ready) as { url: string; data: string };
    expect(data).toBe(join(cwd, "service-data"));
    expect((await fetch(`${url}/api/longshore/v1/runs`)).status).toBe(401);
    expect((await fetch(`${url}/api/longshore/v1/runs`, { headers: { authorization: `Bearer ${secret}` } })).status).toBe(200);
    // No secret was typed, so there is no warning.
    expect(server.text()).not.toContain("list of processes");
  });

  it("refuses two files, and uses only the file that LONGSHORE_CONFIG names", async () => {
    const cwd = folderWith({ "longshore.config.json": '{ "port": 1 }', "longshore.config.yaml": "port: 2\n" });
    expect(await longshore(["start"], { cwd })).toMatchObject({
      code: 2,
      stderr:
        "longshore: there are several configuration files: longshore.config.json, longshore.config.yaml. Keep one, or name it with --config.\n",
    });
    expect((await shown([], cwd, { LONGSHORE_CONFIG: "longshore.config.yaml" })).of("port")).toMatchObject({ value: 2 });
  });

  it("in dev reports that it ignores the store of a file", async () => {
    const cwd = folderWith({ "longshore.config.json": '{ "store": "postgres://ann@db/shop", "ephemeral": false }' });
    const dev = startLongshore(["dev", "--port", "0"], { cwd });
    await dev.printed(/dev does not use store \(longshore\.config\.json:1:3\): its data are in \.longshore, on SQLite/);
    await dev.printed(/Longshore serves on/);
  });
});
