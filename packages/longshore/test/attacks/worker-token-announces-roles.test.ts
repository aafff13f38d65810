// The attacker holds a worker token of a server that is FlowKit's coordinator, and announces workers with hundreds of roles each. The
// server kept a waiting claim for each role, until no other worker could wait. At each change it counted all roles of all workers.

import { expect, it, onTestFinished, vi } from "vitest";
import { RoleFigures } from "../../src/protocols/flowkit/server/coordinator/role-figures.ts";
import { serve } from "../../src/server/index.ts";

const secrets = { read: "reader-secret-0123456789", worker: "worker-secret-0123456789" };
const roles = Array.from({ length: 400 }, (_, at) => `role${at}`);

function announcement(name: string): object {
  const payload = { kind: "WORKER_ONLINE", worker_id: name, type: roles.join(","), version: "1", capacity: { tasks: 64 } };
  const ids = { corr_id: "", dedup_id: name, task_id: "*", node_id: "*", step_type: "*", attempt_epoch: 0, ts_ms: Date.now() };
  const value = JSON.stringify({ v: 1, msg_type: "event", role: "worker", ...ids, payload });
  return { topic: "workers.announce.v1", key: null, value };
}

it("other workers' claims have room, for any number of announced roles", async () => {
  const tokens = [`read:${secrets.read}:read`, `worker:${secrets.worker}:worker`];
  const server = await serve({ ephemeral: true, port: 0, tokens, logger: { level: "silent" } });
  onTestFinished(() => server.close(0));
  const read = async (path: string) =>
    (await fetch(`${server.url}${path}`, { headers: { authorization: `Bearer ${secrets.read}` } })).text();
  const waiting = async () => Number(/^longshore_claims_waiting (\d+)/m.exec(await read("/metrics"))?.[1]);
  const headers = { authorization: `Bearer ${secrets.worker}` };
  const body = JSON.stringify({ records: [announcement("evil1"), announcement("evil2")] });
  expect((await fetch(`${server.url}/flowkit/v1/bus/publish`, { method: "POST", headers, body })).status).toBe(200);
  // Each role has at least one place, so all of them are served.
  await vi.waitFor(async () => expect(await waiting()).toBeGreaterThanOrEqual(4_096 + roles.length - 64), { timeout: 20_000 });
  expect(await waiting()).toBeLessThanOrEqual(4_096 + roles.length);
  expect(await waiting()).toBeLessThanOrEqual(4_096 + roles.length);
});

it("the cost of a worker's change depends on its own roles, not on all workers", () => {
  const figures = new RoleFigures();
  let looks = 0;
  const counted = new Proxy(roles, {
    get(target, key, receiver) {
      if (typeof key === "string" && /^\d+$/.test(key)) looks++;
      return Reflect.get(target, key, receiver) as unknown;
    },
  });
  const worker = (id: string) => ({ id, roles: counted, capacity: 2, announced: true, suspected: false, held: new Set<string>() });
  for (let at = 0; at < 100; at++) figures.update(worker(`evil${at}`));
  expect(looks).toBe(100 * roles.length);
  looks = 0;
  for (const role of roles) expect([figures.room(role), figures.countOf(role)]).toEqual([200, 100]);
  expect(looks).toBe(0);
});
