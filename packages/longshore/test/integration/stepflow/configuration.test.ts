// A server with a Stepflow configuration file, from code and from the command line.

import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { serve } from "../../../src/server/server.ts";
import { longshore } from "../../support/cli.ts";
import { temporaryFolder } from "../../support/parts.ts";

function fileWith(text: string): string {
  const file = join(temporaryFolder(), "stepflow-config.yml");
  writeFileSync(file, text);
  return file;
}

describe("a server with a Stepflow configuration", () => {
  it("does not start when the configuration has an error, and reports the place", async () => {
    const file = fileWith("plugins:\n  p:\n    type: grpc\n");
    await expect(serve({ ephemeral: true, port: null, stepflow: { config: file } })).rejects.toMatchObject({
      code: "LONGSHORE_BAD_CONFIG",
      message: `${file}:3:5: plugins.p: missing field \`queueName\` Expected a field queueName.`,
    });
  });

  it("does not start when a program of a plugin is missing", async () => {
    const file = fileWith("plugins: { p: { type: stepflow, command: ./no-such-worker } }\nroutes: { '/': [ { plugin: p } ] }\n");
    await expect(serve({ ephemeral: true, port: 0, stepflow: { config: file } })).rejects.toMatchObject({
      code: "LONGSHORE_BAD_CONFIG",
      message: expect.stringContaining("The program './no-such-worker' of the plugin p was not found"),
    });
  });

  it("warns of settings that it handles differently", async () => {
    const lines: string[] = [];
    const file = fileWith("storageConfig: { type: inMemory }\n");
    const server = await serve({ ephemeral: true, port: null, stepflow: { config: file }, logger: { write: (line) => lines.push(line) } });
    await server.close();
    expect(lines).toEqual([
      expect.stringContaining(`${file}:1:16: Storage is not chosen here`),
      expect.stringContaining(`${file}: No plugin runs, because this server has no port.`),
    ]);
  });

  it("checks stored flows with its routes", async () => {
    const file = fileWith("plugins: { python: { type: grpc, queueName: python } }\nroutes: { /python: [ { plugin: python } ] }\n");
    const server = await serve({ ephemeral: true, port: 0, stepflow: { config: file }, logger: { level: "silent" } });
    const flow = { name: "n", description: "d", steps: [{ id: "a", component: "/elsewhere/x" }], output: { $step: "a" } };
    const answer = await fetch(`${server.url}/api/v1/flows`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ flow }),
    });
    const { stored, diagnostics } = (await answer.json()) as { stored: boolean; diagnostics: { diagnostics: object[] } };
    await server.close();
    expect(stored).toBe(true);
    expect(diagnostics).toMatchObject({
      numError: 1,
      diagnostics: [{ kind: "invalidComponent", code: 2500, level: 2, path: "$.steps[0].component" }],
    });
  });

  it("is refused on the command line with exit code 2", async () => {
    const { code, stderr } = await longshore(["start", "--ephemeral", "--port", "0", "--stepflow-config", "nowhere.yml"]);
    expect(code).toBe(2);
    expect(stderr).toMatch(/^longshore: The configuration of Stepflow cannot be read: ENOENT/m);
  });
});
