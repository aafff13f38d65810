// `longshore doctor`.

import { readdirSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { expect, it, onTestFinished } from "vitest";
import { longshore, startServer, temporaryFolder } from "../support/cli.ts";

interface Finding {
  about: string;
  state: string;
  seen: string;
  advice?: string;
  figures?: Record<string, number>;
}

async function findings(args: readonly string[]) {
  const { code, stdout } = await longshore(["doctor", "--json", ...args]);
  const { ok, findings: list } = JSON.parse(stdout) as { ok: boolean; findings: Finding[] };
  return { code, ok, of: Object.fromEntries(list.map((finding) => [finding.about, finding])) };
}

it("examines Node, SQLite, disk, space, data, clock and port, and leaves nothing behind", async () => {
  const folder = temporaryFolder();
  const before = readdirSync(folder);
  const { code, ok, of } = await findings(["--data", join(folder, "data"), "--port", "0"]);
  expect({ code, ok }).toEqual({ code: 0, ok: true });
  expect(Object.keys(of)).toEqual(["Node", "SQLite", "Disk", "Space", "Data", "Clock", "Port"]);
  expect(of.Node?.seen).toBe(process.versions.node);
  expect(of.Disk?.figures?.fsyncMsMedian).toBeGreaterThan(0);
  expect(of.Data?.seen).toContain("no data file");
  expect(readdirSync(folder)).toEqual(before);
});

it("works while a server runs and shows the size of its files", async () => {
  const data = join(temporaryFolder(), "data");
  const server = await startServer(["--data", data]);
  const { code, of } = await findings(["--data", data, "--port", String(server.port)]);
  expect(code).toBe(0);
  expect(of.Data?.figures?.walBytes).toBeGreaterThan(0);
  expect(of.Port).toMatchObject({ state: "ok", seen: `a Longshore server answers on 127.0.0.1:${server.port}` });
});

it("leaves no log next to the data file of a server that has stopped", async () => {
  const data = join(temporaryFolder(), "data");
  const server = await startServer(["--data", data]);
  server.kill("SIGTERM");
  await server.ended;
  const before = readdirSync(data);
  const { code, of } = await findings(["--data", data, "--port", "0", "--deep"]);
  expect({ code, seen: of.Data?.seen }).toEqual({ code: 0, seen: expect.stringContaining("all pages checked") });
  expect(readdirSync(data)).toEqual(before);
});

it("ends with 1 when another program has the port, and prints what to do", async () => {
  const other = createServer((_, response) => response.end("hello"));
  await new Promise<void>((resolve) => other.listen(0, "127.0.0.1", resolve));
  onTestFinished(() => void other.close());
  const { port } = other.address() as AddressInfo;
  const { code, stdout } = await longshore(["doctor", "--data", temporaryFolder(), "--port", String(port)]);
  expect(code).toBe(1);
  expect(stdout).toMatch(
    new RegExp(
      `✗ +Port +${port} on 127\\.0\\.0\\.1 is taken by another program\\n +Stop that program, or choose another port with --port\\.`,
    ),
  );
});

it("ends with 1 when the data folder cannot be created", async () => {
  const { code, of } = await findings(["--data", "/proc/longshore", "--port", "0"]);
  expect(code).toBe(1);
  expect(of.Disk).toMatchObject({ state: "bad", advice: expect.stringContaining("--data") });
});
