// `longshore start`: readiness, refusals, tokens, a graceful stop.

import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";
import { longshore, startLongshore, startServer, temporaryFolder } from "../support/cli.ts";

const secret = "operator:kV3mQ0rT8xLw2ZpB".split(":")[1] as string;

describe("longshore start", () => {
  it("prints exactly one line on standard output when it is ready, and ends on SIGTERM with 0", async () => {
    const data = join(temporaryFolder(), "data");
    const server = await startServer(["--data", data]);
    expect(JSON.parse(server.stdout())).toEqual({ ready: true, url: `http://127.0.0.1:${server.port}`, port: server.port, data });
    server.kill("SIGTERM");
    const { code, stdout } = await server.ended;
    expect(code).toBe(0);
    expect(stdout.trimEnd().split("\n")).toHaveLength(1);
  });

  it("keeps definitions over a restart", async () => {
    const folder = temporaryFolder();
    writeFileSync(join(folder, "ci.yml"), "name: CI\non: push\njobs:\n  a: { run: echo a }\n");
    const first = await startServer(["--data", join(folder, "data")]);
    expect((await longshore(["define", "ci.yml", "--on", first.url], { cwd: folder })).stdout).toBe("ci version 1\n");
    first.kill("SIGKILL");
    await first.ended;
    const second = await startServer(["--data", join(folder, "data")]);
    const { stdout } = await longshore(["definitions", "--json", "--on", second.url]);
    expect(JSON.parse(stdout).items).toMatchObject([{ name: "ci", version: 1 }]);
  });

  it("logs JSON lines to standard error", async () => {
    const server = await startServer(["--ephemeral", "--log-level", "debug"]);
    await longshore(["runs", "--on", server.url]);
    server.kill("SIGTERM");
    const { stderr } = await server.ended;
    for (const line of stderr.trimEnd().split("\n").filter(Boolean)) expect(JSON.parse(line)).toMatchObject({ level: expect.any(String) });
  });

  it("refuses to serve beyond loopback without tokens, and prints what to do", async () => {
    const { code, stderr } = await longshore(["start", "--host", "0.0.0.0", "--port", "0", "--ephemeral"]);
    expect(code).toBe(2);
    expect(stderr).toMatch(/^longshore: Serving on 0\.0\.0\.0 without tokens.*--token.*--insecure\.\n$/m);
  });

  it("refuses a workflows folder with a mistake, with file, line and column", async () => {
    const folder = temporaryFolder();
    writeFileSync(join(folder, "bad.yml"), "name: bad\non: push\njobs:\n  a: { needs: [b], run: echo a }\n");
    const { code, stderr } = await longshore(["start", "--port", "0", "--ephemeral", "--workflows", folder]);
    expect(code).toBe(2);
    expect(stderr).toContain(`${join(folder, "bad.yml")}:4:`);
  });

  it("reports which port is in use and how to choose another", async () => {
    const server = await startServer();
    const { code, stderr } = await longshore(["start", "--port", String(server.port), "--ephemeral"]);
    expect(code).toBe(2);
    expect(stderr).toMatch(new RegExp(`Port ${server.port} on 127\\.0\\.0\\.1 is in use.*--port`));
  });

  it("refuses a data folder that another server uses", async () => {
    const data = join(temporaryFolder(), "data");
    await startServer(["--data", data]);
    const { code, stderr } = await longshore(["start", "--port", "0", "--data", data]);
    expect(code).toBe(2);
    expect(stderr).toContain(data);
  });
});

describe("TLS", () => {
  const pem = (name: string) => fileURLToPath(new URL(`../fixtures/tls/${name}.pem`, import.meta.url));

  it("is used with a certificate, and the other commands connect when they trust it", async () => {
    const server = await startServer(["--ephemeral", "--tls-cert", pem("cert"), "--tls-key", pem("key")]);
    expect(server.url).toBe(`https://127.0.0.1:${server.port}`);
    const trusting = await longshore(["runs", "--on", server.url], { env: { NODE_EXTRA_CA_CERTS: pem("cert") } });
    expect([trusting.code, trusting.stdout]).toEqual([0, "No runs.\n"]);
    const doubting = await longshore(["runs", "--on", server.url]);
    expect(doubting.code).toBe(2);
    expect(doubting.stderr).toContain(`the certificate of ${server.url} is not trusted (DEPTH_ZERO_SELF_SIGNED_CERT)`);
  });

  it("needs both files, and reports which cannot be read or used", async () => {
    const start = (...args: string[]) => longshore(["start", "--port", "0", "--ephemeral", ...args]);
    expect(await start("--tls-cert", pem("cert"))).toMatchObject({
      code: 2,
      stderr: "longshore: TLS needs both --tls-cert and --tls-key.\n",
    });
    const absent = await start("--tls-cert", pem("cert"), "--tls-key", "/nowhere/key.pem");
    expect([absent.code, absent.stderr]).toEqual([2, expect.stringContaining("the file of --tls-key cannot be read: ENOENT")]);
    const swapped = await start("--tls-cert", pem("key"), "--tls-key", pem("cert"));
    expect([swapped.code, swapped.stderr]).toEqual([2, expect.stringContaining("The certificate and its key cannot be used")]);
  });
});

describe("tokens", () => {
  it("are required, are read from the option or the environment, and appear in no log", async () => {
    const folder = temporaryFolder();
    writeFileSync(join(folder, "tokens.txt"), `# for people\n${secret}\nread:readsecretreadsecret:viewer\n`);
    const server = await startServer(["--ephemeral", "--token-file", join(folder, "tokens.txt"), "--log-level", "debug"]);
    const without = await longshore(["runs", "--on", server.url]);
    expect(without.code).toBe(2);
    expect(without.stderr).toContain("requires a token. Give one with --token, or better in LONGSHORE_TOKEN.");
    expect((await longshore(["runs", "--on", server.url, "--token", secret])).code).toBe(0);
    const viewer = { env: { LONGSHORE_URL: server.url, LONGSHORE_TOKEN: "readsecretreadsecret" } };
    expect((await longshore(["runs"], viewer)).code).toBe(0);
    const refused = await longshore(["run", "x"], viewer);
    expect(refused.code).toBe(2);
    expect(refused.stderr).toContain("Give a token that allows more.");
    server.kill("SIGTERM");
    const { stderr, stdout } = await server.ended;
    expect(stderr + stdout).not.toContain(secret);
    expect(stderr + stdout).not.toContain("readsecretreadsecret");
  });

  it("that are too short are refused without being shown", async () => {
    const running = startLongshore(["start", "--port", "0", "--ephemeral", "--token", "hunter2"]);
    const { code, stderr } = await running.ended;
    expect(code).toBe(2);
    expect(stderr).toBe("longshore: --token has a secret of 7 characters; expected 16 to 512.\n");
    expect(stderr).not.toContain("hunter2");
  });
});
