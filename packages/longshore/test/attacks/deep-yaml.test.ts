// The attacker holds an operator token, or writes a file that a flow reads, and sends a few kilobytes of YAML with lists inside lists. Node
// ends the whole process when a regular expression is compiled on a stack that is nearly full. 14 KB once ended the server.

import { expect, it, onTestFinished } from "vitest";
import { parseYaml } from "../../src/protocols/stepflow/server/builtin/yaml-thread.ts";
import { serve } from "../../src/server/server.ts";
import { call } from "../support/http.ts";

const shapes: readonly (readonly [string, (depth: number) => string])[] = [
  ["lists in a line", (depth) => `${"- ".repeat(depth)}x`],
  ["keys in a line", (depth) => `${"? ".repeat(depth)}x`],
  ["brackets", (depth) => `${"[".repeat(depth)}${"]".repeat(depth)}`],
  ["braces", (depth) => `${"{a: ".repeat(depth)}1${"}".repeat(depth)}`],
];

it.each(shapes)("a definition of many %s is refused before it is built", async (_name, nested) => {
  const server = await serve({ ephemeral: true, port: 0, logger: { level: "silent" } });
  onTestFinished(() => server.close(0));
  const headers = { "content-type": "application/yaml" };
  const define = (body: string) => call(`${server.url}/api/longshore/v1/definitions`, { method: "POST", headers, body });
  // Below and above the size from which a thread reads YAML.
  for (const depth of [300, 2_000, 30_000]) {
    const { status, text } = await define(nested(depth));
    expect([status, text]).toEqual([400, expect.stringContaining("nested deeper than 256 levels")]);
  }
});

it.each(shapes)("a file of many %s that a flow reads is refused before it is built", async (_name, nested) => {
  for (const depth of [300, 2_000, 30_000]) await expect(parseYaml(nested(depth))).rejects.toThrow("nested deeper than 256 levels");
});

it("ordinary depth is read as before", async () => {
  expect(JSON.stringify(await parseYaml(`${"[".repeat(100)}1${"]".repeat(100)}`))).toBe(`${"[".repeat(100)}1${"]".repeat(100)}`);
});
