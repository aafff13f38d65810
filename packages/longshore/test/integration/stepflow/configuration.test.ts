// A server with a configuration file of Stepflow, from code and from the command line.

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

describe("a server that is given a configuration of Stepflow", () => {
  it("does not start with a mistake in it, and says where it is", async () => {
    const file = fileWith("plugins:\n  p:\n    type: grpc\n");
    await expect(serve({ ephemeral: true, port: null, stepflow: { config: file } })).rejects.toMatchObject({
      code: "LONGSHORE_BAD_CONFIG",
      message: `${file}:3:5: plugins.p: missing field \`queueName\` Expected a field queueName.`,
    });
  });

  it("warns of what it does in its own way", async () => {
    const lines: string[] = [];
    const file = fileWith("storageConfig: { type: inMemory }\n");
    const server = await serve({ ephemeral: true, port: null, stepflow: { config: file }, logger: { write: (line) => lines.push(line) } });
    await server.close();
    expect(lines).toEqual([expect.stringContaining(`${file}:1:16: Storage is not chosen here`)]);
  });

  it("is refused on the command line with exit code 2", async () => {
    const { code, stderr } = await longshore(["start", "--ephemeral", "--port", "0", "--stepflow-config", "nowhere.yml"]);
    expect(code).toBe(2);
    expect(stderr).toMatch(/^longshore: The configuration of Stepflow cannot be read: ENOENT/);
  });
});
