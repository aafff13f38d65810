// A file that a command reads is a pipe without a writer, or an endless device: by mistake, or because another user may write to the
// folder. The command once waited for it, and not even a signal could end it.

import { spawn, spawnSync } from "node:child_process";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { readNamedFile } from "../../src/core/read-named-file.ts";
import { longshore, temporaryFolder } from "../support/cli.ts";

function pipe(name: string): string {
  const path = join(temporaryFolder(), name);
  expect(spawnSync("mkfifo", [path]).status).toBe(0);
  return path;
}

it.each([
  ["define", (): string[] => ["define", pipe("ci.yaml"), "--on", "http://127.0.0.1:9"]],
  ["the input of run", (): string[] => ["run", "ci", "--input", `@${pipe("input.json")}`, "--on", "http://127.0.0.1:9"]],
  ["a token file", (): string[] => ["start", "--ephemeral", "--port", "0", "--token-file", pipe("tokens")]],
  ["a key", (): string[] => ["start", "--ephemeral", "--port", "0", "--tls-cert", pipe("cert.pem"), "--tls-key", pipe("key.pem")]],
  ["a configuration of FlowKit", (): string[] => ["start", "--ephemeral", "--port", "0", "--flowkit-config", pipe("flowkit.json")]],
  ["a configuration of Stepflow", (): string[] => ["start", "--ephemeral", "--port", "0", "--stepflow-config", pipe("stepflow.yaml")]],
])("%s that is a pipe without a writer is refused", async (_name, args) => {
  const { code, stderr } = await longshore(args());
  expect({ code, stderr }).toEqual({ code: 2, stderr: expect.stringContaining("a pipe that did not end within 5 s") });
});

it("a recording that is a pipe without a reader is refused", async () => {
  const folder = temporaryFolder();
  writeFileSync(join(folder, "tasks.mjs"), `import { task } from "longshore";\nexport const greet = task("greet", async () => null);\n`);
  const { code, stderr } = await longshore(["work", "tasks.mjs", "--on", "http://127.0.0.1:9", "--record", pipe("record")], {
    cwd: folder,
  });
  expect({ code, stderr }).toEqual({ code: 2, stderr: expect.stringContaining("it is a pipe that no program reads") });
});

it("handlers are not loaded from a pipe", async () => {
  const { code, stderr } = await longshore(["work", pipe("tasks.mjs"), "--on", "http://127.0.0.1:9"]);
  expect({ code, stderr }).toEqual({ code: 2, stderr: expect.stringContaining("is not a file") });
});

it("a pipe with a writer is read to its end", () => {
  const path = pipe("late");
  const text = "x".repeat(300_000);
  const source = join(temporaryFolder(), "source");
  writeFileSync(source, text);
  const writer = spawn("sh", ["-c", `cat ${source} > ${path}`], { stdio: "ignore" });
  expect(readNamedFile(path).toString()).toBe(text);
  writer.unref();
});

it("a device without an end is refused", () => {
  expect(() => readNamedFile("/dev/zero")).toThrow("more than 67108864 bytes");
});
