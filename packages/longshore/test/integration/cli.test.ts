// The whole command: help, mistakes, exit codes.

import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { longshore, program, startProgram } from "../support/cli.ts";

const commands = [
  "dev",
  "start",
  "work",
  "demo",
  "doctor",
  "run",
  "runs",
  "logs",
  "cancel",
  "retry",
  "rerun",
  "definitions",
  "define",
  "snippets",
  "workers",
  "queues",
];

describe("help", () => {
  it("lists every command, examples and exit codes", async () => {
    const { code, stdout } = await longshore(["--help"]);
    expect(code).toBe(0);
    for (const command of commands) expect(stdout).toMatch(new RegExp(`^ {2}${command} `, "m"));
    expect(stdout).toMatch(/Examples:[\s\S]*Exit codes:/);
  });

  it("of each command ends with examples of that command", async () => {
    for (const command of commands) {
      const { code, stdout } = await longshore([command, "--help"]);
      expect(code, command).toBe(0);
      expect(stdout, command).toContain(`Usage: longshore ${command}`);
      expect(stdout, command).toMatch(new RegExp(`Examples:\\n {2}\\$ .*longshore ${command}`));
    }
  });

  it("prints the version of the package", async () => {
    const { version } = JSON.parse(readFileSync(new URL("../../package.json", import.meta.url), "utf8")) as { version: string };
    expect((await longshore(["--version"])).stdout).toBe(`${version}\n`);
  });
});

describe("a mistake in the arguments", () => {
  it("ends with exit code 2 and points to the help", async () => {
    for (const args of [["start", "--port", "99999"], ["run"], ["dev", "--prot", "1"], ["strat"], ["dev", "--ephemeral", "--data", "x"]]) {
      const { code, stderr, stdout } = await longshore(args);
      expect(code, args.join(" ")).toBe(2);
      expect(stdout, args.join(" ")).toBe("");
      expect(stderr, args.join(" ")).toMatch(/^error: .*\n(.*\n)*Try `longshore .*--help`\.\n$/);
    }
  });

  it("in the input of a run is reported before the run is started", async () => {
    const { code, stderr } = await longshore(["run", "x", "--input", "{name:1}"]);
    expect(code).toBe(2);
    expect(stderr).toMatch(/--input is not JSON: .*Expected for example/);
  });
});

describe("a server that is down", () => {
  it("is reported in one line with what to do, with exit code 2", async () => {
    // Port 9 belongs to the discard service, which is never running.
    for (const args of [
      ["runs"],
      ["run", "x"],
      ["logs", "x"],
      ["logs", "x", "--follow"],
      ["cancel", "x"],
      ["workers", "--json"],
      ["queues"],
      ["definitions"],
    ]) {
      const { code, stderr } = await longshore([...args, "--on", "http://127.0.0.1:9"]);
      expect(code, args.join(" ")).toBe(2);
      if (args.includes("--json")) continue;
      expect(stderr, args.join(" ")).toMatch(
        /^longshore: no server answers at http:\/\/127\.0\.0\.1:9 \(ECONNREFUSED\)\. Start one with `longshore dev`.*\n$/,
      );
    }
  });

  it("is found by LONGSHORE_URL, and an invalid URL is refused", async () => {
    expect((await longshore(["runs"], { env: { LONGSHORE_URL: "http://127.0.0.1:9" } })).stderr).toContain("http://127.0.0.1:9");
    const { code, stderr } = await longshore(["runs", "--on", "localhost:4500"]);
    expect(code).toBe(2);
    expect(stderr).toContain('--on is "localhost:4500", expected a URL such as http://127.0.0.1:4500.');
  });
});

it("a command ends without an error when its output has no reader", async () => {
  const command = startProgram("sh", ["-c", '{ "$0" "$1" help; echo "code $?" >&2; } | true', process.execPath, program]);
  const { stderr } = await command.ended;
  expect(stderr).toBe("code 0\n");
});
