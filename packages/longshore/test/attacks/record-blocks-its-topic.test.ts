// The attacker may write to FlowKit's topics: with a worker token on the bus of a server, or as a program with write access at the broker.
// One record names a worker or a task whose name cannot be looked up. Its reader once retried this record without an end, and so read no
// later record. No worker could announce itself any more, and no query got a reply.

import { expect, it, onTestFinished, vi } from "vitest";
import { skipping } from "../../src/bus/skip-records.ts";
import type { Bus, BusRecord } from "../../src/core/bus/bus.ts";
import { LongshoreError } from "../../src/core/errors.ts";
import { task } from "../../src/core/task.ts";
import { type Envelope, encodeEnvelope } from "../../src/protocols/flowkit/wire/shapes.ts";
import { flowkit } from "../../src/protocols/flowkit/worker/worker.ts";
import { serve } from "../../src/server/index.ts";
import { work } from "../../src/work.ts";

const secrets = { operator: "operator-secret-0123456789", worker: "worker-secret-0123456789" };
const unusable = "\u0000";

function envelope(payload: Envelope["payload"], more: Partial<Envelope> = {}): Envelope {
  const ids = { corr_id: "", dedup_id: "d", task_id: "*", node_id: "*", step_type: "*", attempt_epoch: 1, target_worker_id: null };
  return { v: 1, msg_type: "event", role: "worker", ts_ms: Date.now(), ...ids, ...more, payload };
}

async function serving() {
  const tokens = [`operator:${secrets.operator}:operator`, `worker:${secrets.worker}:worker`];
  const server = await serve({ ephemeral: true, port: 0, tokens, logger: { level: "silent" } });
  onTestFinished(() => server.close(0));
  const publish = async (topic: string, secret: string, value: Envelope) => {
    const body = JSON.stringify({ records: [{ topic, key: null, value: Buffer.from(encodeEnvelope(value)).toString() }] });
    const headers = { authorization: `Bearer ${secret}` };
    expect((await fetch(`${server.url}/flowkit/v1/bus/publish`, { method: "POST", headers, body })).status).toBe(200);
  };
  return { server, publish };
}

it("a worker with an invalid name does not block another worker", async () => {
  const { server, publish } = await serving();
  const payload = { kind: "WORKER_ONLINE", worker_id: unusable, type: "greet", version: "1", capacity: { tasks: 1 } };
  await publish("workers.announce.v1", secrets.worker, envelope(payload));
  const greet = task("greet", async () => ({ hello: "there" }));
  const on = flowkit(server.url as string, { token: secrets.worker });
  const worker = await work({ tasks: [greet], on, signals: false, logger: () => {} });
  onTestFinished(() => worker.stop({ force: true }));
  const run = await server.flowkit?.createTask({ graph: { nodes: [{ node_id: "a", type: "greet" }] } });
  expect((await server.result(run as string)).state).toBe("succeeded");
});

it("a query about a task whose name is too long for a reply does not block another query", async () => {
  const { server, publish } = await serving();
  const greet = task("greet", async () => ({ hello: "there" }));
  const on = flowkit(server.url as string, { token: secrets.worker });
  const worker = await work({ tasks: [greet], on, signals: false, logger: () => {} });
  onTestFinished(() => worker.stop({ force: true }));
  const query = (task_id: string) =>
    publish(
      "query.tasks.v1",
      secrets.operator,
      envelope(
        { query: "TASK_DISCOVER", want_epoch: 1 },
        { msg_type: "query", role: "coordinator", task_id, node_id: "n", step_type: "greet" },
      ),
    );
  await query("x".repeat(100_000));
  await query("second");
  const headers = { authorization: `Bearer ${secrets.operator}` };
  const answers = async () => {
    const body = JSON.stringify({ group: "spy", member: "spy", topics: ["reply.tasks.v1"], from: "earliest", max: 10, waitMs: 100 });
    return (await fetch(`${server.url}/flowkit/v1/bus/take`, { method: "POST", headers, body })).text();
  };
  await vi.waitFor(async () => expect(await answers()).toContain("second"), { timeout: 20_000 });
});

const record = (place: string): BusRecord => ({ topic: "t", key: null, value: Buffer.from(place), place, at: 0 }) as unknown as BusRecord;

it("a record with a transient error is retried, one with a permanent error is skipped, and one with an unknown error is retried a few times", async () => {
  const told: string[] = [];
  let failure: Error | undefined;
  const handle = skipping(
    async ({ place }) => {
      if (place === "bad" && failure !== undefined) throw failure;
      told.push(place);
    },
    ({ place }) => told.push(`skipped ${place}`),
  ) as Parameters<Bus["subscribe"]>[0]["handle"];
  failure = new LongshoreError("LONGSHORE_STORE_UNAVAILABLE", "The disk is full.");
  for (let tries = 0; tries < 20; tries++) await expect(handle([record("bad"), record("good")])).rejects.toThrow("full");
  failure = new LongshoreError("LONGSHORE_BAD_INPUT", "No.");
  await handle([record("bad"), record("good")]);
  expect(told).toEqual(["skipped bad", "good"]);
  failure = new TypeError("Who knows?");
  for (let tries = 1; tries < 5; tries++) await expect(handle([record("bad")])).rejects.toThrow("Who");
  await handle([record("bad"), record("good")]);
  expect(told.slice(2)).toEqual(["skipped bad", "good"]);
});
