// Not an attack: an operator restores a backup while workers hold tasks that were handed out after the backup. The restored server hands out
// the same tasks again. It once continued the count of hand-outs from the backup. So a worker from before the restore had the same lease as
// the new holder, and its outdated result counted.

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

it("a lease that was handed out after the backup is refused after a restore, and the new lease counts", async () => {
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

it("a lease stays valid over a restart, which loses nothing", async () => {
  const data = folder();
  const clock = new TestClock(Date.UTC(2026, 10, 1));
  const first = await serving(data, clock);
  await first.start();
  const lease = await first.claim("worker");
  await first.close();
  const second = await serving(data, clock);
  expect(await second.complete(lease)).toBe(200);
});
