// The attacker holds a worker token of a server that is FlowKit's coordinator, or may write to its topics on Kafka. It sends records of a
// megabyte that become hundreds of thousands of values, very many records that wait in a topic until its role is announced, and workers
// whose names fill the memory. The coordinator read them one after another without a pause, which blocked all other callers for seconds.

import { expect, it, onTestFinished, vi } from "vitest";
import { inSlices, sliceBytes } from "../../src/bus/record-slices.ts";
import type { BusRecord } from "../../src/core/bus/bus.ts";
import { Registry } from "../../src/protocols/flowkit/server/coordinator/registry.ts";
import { decodeEnvelope, recordValuesMax } from "../../src/protocols/flowkit/wire/decode.ts";
import { openEngine } from "../../src/server/engine.ts";
import { serve } from "../../src/server/index.ts";
import { TestClock } from "../../src/testing/clock.ts";

const secrets = { read: "reader-secret-0123456789", worker: "worker-secret-0123456789" };

function envelope(payload: object): string {
  const ids = { corr_id: "", dedup_id: "d", task_id: "t", node_id: "n", step_type: "evil", attempt_epoch: 1, ts_ms: Date.now() };
  return JSON.stringify({ v: 1, msg_type: "event", role: "worker", ...ids, payload });
}

function announcement(name: string): string {
  return envelope({ kind: "WORKER_ONLINE", worker_id: name, type: "evil", version: "1", capacity: { tasks: 1 } });
}

/** Counts the turns of the event loop until the end of the test. */
function countTurns(): () => number {
  let turns = 0;
  let isOver = false;
  const turn = () => {
    turns++;
    if (!isOver) setImmediate(turn);
  };
  setImmediate(turn);
  onTestFinished(() => {
    isOver = true;
  });
  return () => turns;
}

async function coordinator() {
  const tokens = [`read:${secrets.read}:read`, `worker:${secrets.worker}:worker`];
  const server = await serve({ ephemeral: true, port: 0, tokens, logger: { level: "silent" } });
  onTestFinished(() => server.close(0));
  const publish = async (topic: string, values: readonly string[]) => {
    const body = JSON.stringify({ records: values.map((value) => ({ topic, key: null, value })) });
    const headers = { authorization: `Bearer ${secrets.worker}` };
    expect((await fetch(`${server.url}/flowkit/v1/bus/publish`, { method: "POST", headers, body })).status).toBe(200);
  };
  const read = async (path: string) =>
    (await fetch(`${server.url}${path}`, { headers: { authorization: `Bearer ${secrets.read}` } })).text();
  return { publish, read };
}

it.each([
  ["empty objects", `[${"{},".repeat(recordValuesMax)}1]`],
  ["names of one object", `{${Array.from({ length: 120_000 }, (_, at) => `"k${at}":1`).join(",")}}`],
  ["digits", "9".repeat(recordValuesMax + 100)],
])("builds nothing from a record with too many %s", (_what, bomb) => {
  const parse = vi.fn(JSON.parse);
  const bytes = Buffer.from(envelope({ kind: "BATCH_OK" }).replace('"payload":', `"bomb":${bomb},"payload":`));
  expect(decodeEnvelope(bytes, parse)).toMatchObject({ ok: false, why: expect.stringMatching(/more than 524288 values/) });
  expect(parse).not.toHaveBeenCalled();
});

it("the coordinator builds nothing from a record that is nested too deep", () => {
  const parse = vi.fn(JSON.parse);
  const bytes = Buffer.from(`${"[".repeat(100_000)}${"]".repeat(100_000)}`);
  expect(decodeEnvelope(bytes, parse)).toMatchObject({ ok: false, why: expect.stringMatching(/deeper than/) });
  expect(parse).not.toHaveBeenCalled();
});

it("the coordinator reads a limited number of bytes in one turn of the event loop, for any records", async () => {
  const large = { value: Buffer.alloc(sliceBytes / 2 + 1) } as unknown as BusRecord;
  const small = { value: Buffer.alloc(100) } as unknown as BusRecord;
  const turns = countTurns();
  const read: { records: number; turn: number }[] = [];
  const handle = inSlices(async (records) => {
    read.push({ records: records.length, turn: turns() });
  });
  await handle([large, large, large, small, small]);
  // A consumer takes the existing records again and again, without waiting in between.
  for (let takes = 0; takes < 20; takes++) await handle([small]);
  expect(read.slice(0, 3).map(({ records }) => records)).toEqual([1, 1, 3]);
  expect(new Set(read.map((one) => one.turn)).size).toBe(read.length);
});

it("other callers are served while the coordinator reads accumulated records of a topic", async () => {
  const { publish, read } = await coordinator();
  const junk = Array.from({ length: 5_000 }, () => `{"v":9,"x":"${"y".repeat(50)}"}`);
  for (let requests = 0; requests < 10; requests++) await publish("status.evil.v1", junk);
  const turns = countTurns();
  await publish("workers.announce.v1", [announcement("evil")]);
  const malformed = async () => Number(/^longshore_flowkit_ignored_total\{why="malformed"\} (\d+)/m.exec(await read("/metrics"))?.[1]);
  let before = turns();
  let most = 0;
  let records = 0;
  await vi.waitFor(
    async () => {
      const now = await malformed();
      if (now > records) most = Math.max(most, (now - records) / (turns() - before));
      [records, before] = [now, turns()];
      expect(now).toBe(50_000);
    },
    { timeout: 30_000, interval: 1 },
  );
  expect(most).toBeLessThanOrEqual(500);
});

it("the coordinator stores little of what a worker reports about itself", async () => {
  const engine = await openEngine({ directory: null, clock: new TestClock() });
  onTestFinished(() => engine.close());
  const registry = new Registry({ ...engine, log: { debug() {}, info() {}, warn() {} }, changed() {} });
  onTestFinished(() => registry.close());
  const said = { kind: "WORKER_ONLINE", type: "evil", capabilities: null, capacity: { tasks: 1 }, resume: null } as const;
  await registry.announced({ ...said, worker_id: "talker", version: "z".repeat(900_000) }, 1);
  registry.heard("stranger", "r".repeat(900_000));
  expect(JSON.stringify(registry.roster()).length).toBeLessThan(1_000);
  expect(registry.knows("stranger")).toBe(false);
});
