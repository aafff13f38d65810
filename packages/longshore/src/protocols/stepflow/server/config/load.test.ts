import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, describe, expect, it } from "vitest";
import { LongshoreError } from "../../../../core/errors.ts";
import { loadConfig } from "./load.ts";

const folders: string[] = [];
afterEach(() => {
  for (const folder of folders.splice(0)) rmSync(folder, { recursive: true });
});

function folderWith(files: { [name: string]: string }): string {
  const folder = mkdtempSync(join(tmpdir(), "longshore-config-"));
  folders.push(folder);
  for (const [name, text] of Object.entries(files)) writeFileSync(join(folder, name), text);
  return folder;
}

function refusal(path: string): string {
  try {
    loadConfig(path, {});
  } catch (error) {
    if (error instanceof LongshoreError && error.code === "LONGSHORE_BAD_CONFIG") return error.message;
  }
  throw new Error("It was accepted.");
}

describe("a configuration file", () => {
  it("is read with its folder as the place where plugins run", () => {
    const folder = folderWith({ "flows.yml": "plugins: { p: { type: grpc, queueName: '${Q}' } }\nroutes: { '/': [ { plugin: p } ] }" });
    const { config, warnings } = loadConfig(join(folder, "flows.yml"), { Q: "fast" });
    expect(config).toMatchObject({ file: join(folder, "flows.yml"), directory: folder });
    expect(config.plugins.get("p")).toMatchObject({ queue: "fast" });
    expect(warnings).toEqual([]);
  });

  it.each(["stepflow-config.yml", "stepflow-config.yaml", "stepflow_config.yml", "stepflow_config.yaml"])(
    "is found in a folder as %s",
    (name) => {
      const folder = folderWith({ [name]: "plugins: {}", "other.yml": "[" });
      expect(loadConfig(folder, {}).config.file).toBe(join(folder, name));
    },
  );

  it("gets its mistakes and warnings with their place", () => {
    const folder = folderWith({ "bad.yml": "plugins:\n  p:\n    type: grpc\n", "odd.yml": "plugins:\n  p: { type: builtin }\n" });
    expect(refusal(join(folder, "bad.yml"))).toBe(
      `${join(folder, "bad.yml")}:3:5: plugins.p: missing field \`queueName\` Expected a field queueName.`,
    );
    expect(loadConfig(join(folder, "odd.yml"), {}).warnings).toEqual([`${join(folder, "odd.yml")}:2:3: No route leads to the plugin p.`]);
  });

  it("must be there, and be the only one of its folder", () => {
    const folder = folderWith({ "stepflow-config.yml": "", "stepflow_config.yaml": "" });
    expect(refusal(folder)).toBe(`The folder ${folder} has two configurations: stepflow-config.yml and stepflow_config.yaml.`);
    expect(refusal(join(folder, "none.yml"))).toContain("The configuration of Stepflow cannot be read: ENOENT");
    mkdirSync(join(folder, "empty"));
    expect(refusal(join(folder, "empty"))).toBe(`The folder ${join(folder, "empty")} has no configuration of Stepflow.`);
  });
});
