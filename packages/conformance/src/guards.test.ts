// Tests the guards of this package: errors name a missing tool or peer and how to get it, and no started process stays behind.
import { describe, expect, it, onTestFinished, vi } from "vitest";
import { peerBinary } from "./peers.ts";
import { assertPrivateNetwork } from "./private-network.ts";
import { sumOfCounts } from "./shards.ts";
import { openStage } from "./stage.ts";
import { requireTool } from "./tools.ts";
import { until } from "./until.ts";

function setVariable(name: string, value: string): void {
  vi.stubEnv(name, value);
  onTestFinished(() => void vi.unstubAllEnvs());
}

describe("what is missing", () => {
  it("a missing tool is an error that names the tool and how to get it", () => {
    setVariable("PATH", "/nowhere");
    expect(() => requireTool("go")).toThrow(/MISSING TOOL: go[\s\S]*apt-get install golang-go/);
    expect(() => requireTool("python")).toThrow(/MISSING TOOL: python[\s\S]*python3-requests/);
    expect(() => requireTool("cargo")).toThrow(/MISSING TOOL: cargo[\s\S]*rustup/);
  });

  it("a missing peer is an error that names the peer, the cache and how to fill it", () => {
    setVariable("LONGSHORE_PEERS", "/nowhere");
    expect(() => peerBinary("workflow-graph-server")).toThrow(
      /MISSING PEER: workflow-graph-server 1\.2\.11 is not in \/nowhere[\s\S]*npm run conformance/,
    );
  });

  it("a peer that listens on all interfaces is refused, except when loopback is the only interface", () => {
    expect(() => assertPrivateNetwork("peer", ["lo"])).not.toThrow();
    expect(() => assertPrivateNetwork("peer", ["lo", "eth0"])).toThrow(/eth0[\s\S]*npm run conformance/);
  });
});

describe("a stage", () => {
  it("ends a process and everything that it started", async () => {
    const cleanups: (() => Promise<void>)[] = [];
    const stage = openStage({ onTestFinished: (cleanup) => void cleanups.push(cleanup) });
    const child = stage.start("sh", ["-c", "sleep 600 & echo started $!; wait"], { name: "a shell" });
    const [, pid] = await child.printed(/started (\d+)\n/);
    for (const cleanup of cleanups) await cleanup();
    expect(await child.ended).toBe("SIGTERM");
    expect(() => process.kill(child.pid, 0)).toThrow("ESRCH");
    // The first process of the namespace reaps the orphan a moment later.
    await until("the grandchild to end", () => {
      try {
        process.kill(Number(pid), 0);
        return undefined;
      } catch {
        return true;
      }
    });
  });

  it("reports the output of a process when the expected line is missing", async () => {
    const stage = openStage({ onTestFinished });
    const child = stage.start("sh", ["-c", "echo something else"], { name: "a shell" });
    await expect(child.printed(/ready/)).rejects.toThrow(/a shell ended without printing \/ready\/; it wrote:\nsomething else/);
  });

  it("reports which program could not be started", async () => {
    const stage = openStage({ onTestFinished });
    const child = stage.start("/nowhere/program", [], { name: "a ghost" });
    expect(await child.ended).toContain("ENOENT");
    await expect(child.printed(/ready/)).rejects.toThrow("a ghost ended");
  });
});

it("a shard that ends without counts is a failure", () => {
  expect(sumOfCounts(["1 passed, 0 failed\n\n2 passed, 1 failed\n", "3 passed, 0 failed\n"])).toEqual({ passed: 5, failed: 1 });
  expect(sumOfCounts(["3 passed, 0 failed\n", "killed"])).toEqual({ passed: 3, failed: 1 });
});
