import { mkdirSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { temporaryFolder } from "../../../../../test/support/parts.ts";
import { callOf } from "../../../../../test/support/stepflow-call.ts";
import type { Json } from "../../../../core/json/json.ts";
import { loadFile } from "./load-file.ts";
import { hereCharsMax, yamlThreads } from "./yaml-thread.ts";

function setup() {
  const outer = temporaryFolder();
  const folder = join(outer, "work");
  mkdirSync(join(folder, "sub"), { recursive: true });
  writeFileSync(join(outer, "secret.txt"), "secret");
  const hidden = [join(folder, "data"), join(folder, "tokens.txt"), join(outer, "not-there")];
  const load = async (input: Json) => loadFile({ folder, hidden }).perform(callOf("/load_file", input));
  const write = (name: string, content: string | Uint8Array) => writeFileSync(join(folder, name), content);
  return { outer, folder, load, write };
}

const failure = (code: string, message: string) =>
  expect.objectContaining({ error: expect.objectContaining({ code }), message: expect.stringContaining(message) });

describe("load_file", () => {
  it("reads JSON, YAML and text by the file's ending", async () => {
    const { load, write } = setup();
    write("a.json", '{"a":[1,2.5]}');
    write("sub/b.YML", "x: 1\ny: [a, b]\n");
    write("c.txt", "grüße\n");
    expect(await load({ path: "a.json" })).toEqual({
      data: { a: [1, 2.5] },
      metadata: { resolved_path: "a.json", size_bytes: 13, format: "json" },
    });
    expect(await load({ path: "./sub/../sub/b.YML" })).toEqual({
      data: { x: 1, y: ["a", "b"] },
      metadata: { resolved_path: join("sub", "b.YML"), size_bytes: 15, format: "yaml" },
    });
    expect(await load({ path: "c.txt" })).toEqual({ data: "grüße\n", metadata: { resolved_path: "c.txt", size_bytes: 8, format: "text" } });
  });

  it("reads YAML of a large file in a thread, which ends with it", async () => {
    const { load, write } = setup();
    const before = yamlThreads.started;
    write("small.yaml", "a: 1\n");
    expect(await load({ path: "small.yaml" })).toMatchObject({ data: { a: 1 } });
    expect(yamlThreads.started).toBe(before);
    write("large.yaml", `a: &one { b: [1, ~] }\nc: *one\nd: ${"x".repeat(hereCharsMax)}\n`);
    expect(await load({ path: "large.yaml" })).toMatchObject({
      data: { a: { b: [1, null] }, c: { b: [1, null] }, d: "x".repeat(hereCharsMax) },
    });
    write("broken.yaml", `${"a: 1\n".repeat(hereCharsMax)}`);
    await expect(load({ path: "broken.yaml" })).rejects.toThrow(failure("COMPONENT_FAILED", "is not valid yaml: Map keys must be unique"));
    expect(yamlThreads.started).toBe(before + 2);
  });

  it("reads a file in the given format", async () => {
    const { load, write } = setup();
    write("a.json", '{"a":1}');
    expect(await load({ path: "a.json", format: "text" })).toMatchObject({ data: '{"a":1}', metadata: { format: "text" } });
    expect(await load({ path: "a.json", format: "yaml" })).toMatchObject({ data: { a: 1 } });
    await expect(load({ path: "a.json", format: "toml" })).rejects.toThrow(failure("INVALID_INPUT", "expected one of json, yaml, text"));
  });

  it("takes an absolute path that leads into its folder", async () => {
    const { folder, load, write } = setup();
    write("a.txt", "x");
    expect(await load({ path: join(folder, "a.txt") })).toMatchObject({ data: "x", metadata: { resolved_path: "a.txt" } });
  });

  it("refuses every way out of its folder, and discloses nothing of what is there", async () => {
    const { outer, folder, load } = setup();
    symlinkSync(join(outer, "secret.txt"), join(folder, "link.txt"));
    symlinkSync(outer, join(folder, "up"));
    const ways = [
      "../secret.txt",
      "sub/../../secret.txt",
      join(outer, "secret.txt"),
      "link.txt",
      "up/secret.txt",
      "../nothing.txt",
      "..",
      ".",
    ];
    for (const path of ways) {
      const refused = await load({ path }).catch((error: Error) => error);
      expect(refused, path).toEqual(failure("INVALID_INPUT", "leads out of the folder for flows"));
      expect((refused as Error).message).not.toContain(outer === path ? "" : `${outer}/work`);
    }
    await expect(load({ path: "a\0b" })).rejects.toThrow(failure("INVALID_INPUT", "NUL"));
  });

  it("reads no private file of the server, also when it is in the folder", async () => {
    const { folder, load, write } = setup();
    mkdirSync(join(folder, "data"));
    write("data/longshore.db", "rows");
    write("tokens.txt", "secret");
    write("tokens.txt.example", "no secret");
    symlinkSync(join(folder, "data"), join(folder, "sub/link"));
    symlinkSync(join(folder, "tokens.txt"), join(folder, "sub/tokens"));
    for (const path of ["data/longshore.db", "tokens.txt", "sub/../tokens.txt", "sub/link/longshore.db", "sub/tokens"]) {
      await expect(load({ path }), path).rejects.toThrow(failure("INVALID_INPUT", "private data of the server"));
    }
    expect(await load({ path: "tokens.txt.example" })).toMatchObject({ data: "no secret" });
  });

  it("reads no file before a folder is configured", async () => {
    const call = callOf("/load_file", { path: "package.json" });
    await expect(async () => loadFile(null).perform(call)).rejects.toThrow(failure("COMPONENT_FAILED", "--stepflow-files FOLDER"));
  });

  it("reports what it cannot read, without the server's own path", async () => {
    const { folder, load, write } = setup();
    write("bad.json", "{nope");
    write("bad.yaml", "a: [1");
    write("bomb.yaml", ["a: &a [x]", ...Array.from({ length: 9 }, (_, at) => `b${at}: [${Array(20).fill("*a").join(",")}]`)].join("\n"));
    await expect(load({ path: "bad.json" })).rejects.toThrow(failure("COMPONENT_FAILED", '"bad.json" is not valid json'));
    await expect(load({ path: "bad.yaml" })).rejects.toThrow(failure("COMPONENT_FAILED", '"bad.yaml" is not valid yaml'));
    await expect(load({ path: "bomb.yaml" })).rejects.toThrow(failure("COMPONENT_FAILED", "alias"));
    await expect(load({ path: "nothing.txt" })).rejects.toThrow(failure("COMPONENT_FAILED", "there is no such file"));
    await expect(load({ path: "sub" })).rejects.toThrow(failure("INVALID_INPUT", '"sub" is not a file'));
    await expect(load({})).rejects.toThrow(failure("INVALID_INPUT", "path is missing"));
    const refused = await load({ path: "nothing.txt" }).catch((error: Error) => error.message);
    expect(refused).not.toContain(folder);
  });
});
