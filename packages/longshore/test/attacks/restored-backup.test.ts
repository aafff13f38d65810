// No attacker: an operator restores a backup while workers hold tasks of the time that is lost. The restored server hands the same tasks out again. It
// once counted hand-outs on from the backup, so a worker of the lost time had the same lease as the new holder, and its result, made from input
// that never was, counted.

import { cpSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it, onTestFinished } from "vitest";
import { serve } from "../../src/server/index.ts";
import { TestClock } from "../../src/testing/clock.ts";
import { call } from "../support/http.ts";

function folder(): string {
  const path = mkdtempSync(join(tmpdir(), "longshore-restored-"));
  onTestFinished(() => rmSync(path, { recursive: true, force: true }));
  return path;
}

const definition = { name: "CI", on: "push", jobs: { build: { run: "true" } } };

async function serving(data: string, clock: TestClock) {
  const server = await serve({ data, port: 0, clock, logger: { level: "silent" } });
  let isOpen = true;
  const close = async () => {
    if (isOpen) await server.close(0);
    isOpen = false;
  };
  onTestFinished(close);
  const post = (path: string, body: unknown) =>
    call(`${server.url}${path}`, { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(body) });
  return {
    close,
    start: async () => {
      expect((await post("/api/longshore/v1/definitions", definition)).status).toBe(201);
      expect((await post("/api/longshore/v1/runs", { workflow: "CI" })).status).toBe(201);
    },
    claim: async (worker_id: string): Promise<string> => {
      const { text } = await post("/api/jobs/claim", { worker_id, labels: [], lease_ttl_secs: 60 });
      return (JSON.parse(text) as { lease: { lease_id: string } }).lease.lease_id;
    },
    complete: async (lease: string) => (await post(`/api/jobs/${lease}/complete`, { outputs: {} })).status,
  };
}

it("a lease of the time that a restore has lost is refused, and the new one counts", async () => {
  const [data, copy] = [folder(), join(folder(), "copy")];
  const clock = new TestClock(Date.UTC(2026, 10, 1));
  const first = await serving(data, clock);
  await first.start();
  await first.close();
  cpSync(data, copy, { recursive: true });

  const leases = new Set<string>();
  for (let restore = 0; restore < 3; restore++) {
    rmSync(data, { recursive: true });
    cpSync(copy, data, { recursive: true });
    clock.jump(60_000);
    const server = await serving(data, clock);
    const lease = await server.claim(`worker-${restore}`);
    for (const lost of leases) expect(await server.complete(lost)).not.toBe(200);
    leases.add(lease);
    if (restore === 2) expect(await server.complete(lease)).toBe(200);
    await server.close();
  }
  expect(leases.size).toBe(3);
});

it("a lease from before a restart, which loses nothing, stays its holder's", async () => {
  const data = folder();
  const clock = new TestClock(Date.UTC(2026, 10, 1));
  const first = await serving(data, clock);
  await first.start();
  const lease = await first.claim("worker");
  await first.close();
  const second = await serving(data, clock);
  expect(await second.complete(lease)).toBe(200);
});
