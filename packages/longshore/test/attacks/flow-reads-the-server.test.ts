// The attacker may start runs of flows (here with an operator token; once a worker token was enough). The server is started as in
// docs/guides/run-in-production.md, with tokens.txt and the data folder in its working directory and secrets in its environment. A flow must
// not be able to read these, neither with `load_file` nor with the `env_var` of a variable.

import { mkdirSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { longshore, startServer, temporaryFolder } from "../support/cli.ts";
import { oneStep } from "../support/stepflow-server.ts";

const secret = "operator-secret-0123456789";

async function production(more: readonly string[] = [], place = ".") {
  const folder = temporaryFolder();
  const flows = join(folder, "flows");
  mkdirSync(flows);
  writeFileSync(join(folder, place, "tokens.txt"), `operator:${secret}:operator\n`);
  writeFileSync(join(folder, "key.pem"), "the key");
  const env = { MY_SECRET: "a secret of the environment", STEPFLOW_VAR_TOLD: "for flows" };
  const server = await startServer(["--data", `${place}/data`, "--token-file", `${place}/tokens.txt`, ...more], { cwd: folder, env });
  const post = async (path: string, body: object) => {
    const headers = { "content-type": "application/json", authorization: `Bearer ${secret}` };
    const answer = await fetch(`${server.url}/api/v1${path}`, { method: "POST", headers, body: JSON.stringify(body) });
    return answer.text();
  };
  /** Everything that a caller can read about a run. */
  const run = async (flow: object) => {
    const { flowId } = JSON.parse(await post("/flows", { flow }));
    return post("/runs", { flowId, input: [{}], wait: true });
  };
  const load = (path: string) => run(oneStep("/builtin/load_file", { path, format: "text" }));
  return { folder, flows, run, load };
}

const variable = (name: string, env_var?: string) => ({
  name: "reads",
  steps: [],
  output: { $variable: name },
  schemas: {
    type: "object",
    properties: { variables: { type: "object", properties: { [name]: { type: "string", env_var } }, required: [name] } },
  },
});

describe("a flow on a server without a folder for files", () => {
  it("reads no file by load_file", async () => {
    const { folder, load } = await production();
    for (const path of ["tokens.txt", "data/longshore.db", "key.pem", join(folder, "tokens.txt"), "/etc/hostname"]) {
      const told = await load(path);
      expect(told).toContain("this server reads no files for flows");
      expect(told).not.toContain(secret);
    }
  });

  it("reads only environment variables that are allowed for flows", async () => {
    const { run } = await production();
    for (const name of ["MY_SECRET", "PATH", "HOME"]) {
      const told = await run(variable("key", name));
      expect(told).toContain(`the environment has no ${name} for flows`);
      expect(told).not.toContain("a secret of the environment");
    }
    expect(await run(variable("told"))).toContain("for flows");
  });
});

describe("a flow on a server with a folder for flows", () => {
  it("reads files in this folder, and none outside, also not through links", async () => {
    const { folder, flows, load } = await production(["--stepflow-files", "flows"]);
    writeFileSync(join(flows, "prompt.txt"), "be kind");
    symlinkSync(join(folder, "tokens.txt"), join(flows, "link.txt"));
    symlinkSync(join(folder, "data"), join(flows, "link"));
    expect(await load("prompt.txt")).toContain("be kind");
    for (const path of ["../tokens.txt", "link.txt", "link/longshore.db"]) expect(await load(path)).toContain("leads out of the folder");
  });

  it("reads no private file of the server in this folder", async () => {
    const { folder, flows, load } = await production(["--stepflow-files", "flows"], "flows");
    symlinkSync(join(folder, "flows/data"), join(flows, "link"));
    for (const path of ["tokens.txt", "data/longshore.db", "link/longshore.db", "./data/../tokens.txt"]) {
      const told = await load(path);
      expect([path, told]).toEqual([path, expect.stringContaining("private data of the server")]);
      expect(told).not.toContain(secret);
    }
  });

  it("reads variables that are listed", async () => {
    const { run } = await production(["--stepflow-env", "MY_SECRET"]);
    expect(await run(variable("key", "MY_SECRET"))).toContain("a secret of the environment");
    expect(await run(variable("key", "HOME"))).toContain("the environment has no HOME for flows");
  });
});

it("the working directory, or a folder that does not exist, is refused as the folder for flows", async () => {
  const folder = temporaryFolder();
  for (const [files, why] of [
    [".", "the working directory"],
    ["/", "the working directory"],
    ["nowhere", "cannot be read"],
  ] as const) {
    const { code, stderr } = await longshore(["start", "--port", "0", "--ephemeral", "--stepflow-files", files], { cwd: folder });
    expect([code, stderr]).toEqual([2, expect.stringContaining(why)]);
  }
});
