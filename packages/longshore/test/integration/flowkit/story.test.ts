// The one complete graph that was recorded from the reference (test/fixtures/flowkit), repeated by our workers and our coordinator. Their
// records on the bus are the same as those of the reference, field by field, except for the differences that are listed here.

import { readFileSync } from "node:fs";
import { streamTask } from "longshore/flowkit";
import { expect, it, onTestFinished } from "vitest";
import type { Bus } from "../../../src/core/bus/bus.ts";
import type { Json, JsonObject } from "../../../src/core/json/json.ts";
import type { Task } from "../../../src/core/task.ts";
import { PartArtifacts } from "../../../src/protocols/flowkit/server/artifacts/part-artifacts.ts";
import type { Envelope } from "../../../src/protocols/flowkit/wire/shapes.ts";
import { flowkit } from "../../../src/protocols/flowkit/worker/worker.ts";
import { work } from "../../../src/work.ts";
import { fn, node } from "../../support/flowkit-graphs.ts";
import { openFlowkit } from "../../support/flowkit-world.ts";

/** A record; its value has its fields in the order of the wire. */
interface Told {
  readonly topic: string;
  readonly value: Envelope;
}

const recorded = readFileSync(new URL("../../fixtures/flowkit/wire.jsonl", import.meta.url), "utf8")
  .trimEnd()
  .split("\n")
  .map((line) => JSON.parse(line) as Told & { session: string })
  .filter(({ session }) => session === "test_e2e_streaming_with_kafka_sim")
  .map(({ topic, value }): Told => ({ topic, value }));

const kindOf = ({ value: { payload } }: Told): Json => payload.kind ?? payload.cmd ?? payload.query ?? payload.reply ?? null;
const ofKind = (told: readonly Told[], kind: string) => told.filter((one) => kindOf(one) === kind);
const withPayload = ({ topic, value }: Told, payload: JsonObject): Told => ({ topic, value: { ...value, payload } });

/**
 * Our intended differences. Each function converts the reference's records to ours. `touched` is how many records it removes, changes or
 * adds.
 */
const differences: readonly { why: string; touched: number; apply(story: readonly Told[]): Told[] }[] = [
  {
    why: "a node that nobody can be running is started without asking who runs it",
    touched: 4,
    apply: (story) => story.filter((one) => kindOf(one) !== "TASK_DISCOVER"),
  },
  {
    why: "so nobody answers",
    touched: 1,
    apply: (story) => story.filter((one) => kindOf(one) !== "TASK_SNAPSHOT"),
  },
  {
    why: "the heartbeats after the first are a matter of time, which stands still here",
    touched: 8,
    apply: (story) => {
      const beaten = new Set<string>();
      return story.filter((one) => {
        if (kindOf(one) !== "TASK_HEARTBEAT") return true;
        const { node_id } = one.value;
        const first = !beaten.has(node_id);
        beaten.add(node_id);
        return first;
      });
    },
  },
  {
    why: "of several sources two may use the same names for their batches, so w4 names the source as well",
    touched: 5,
    apply: (story) =>
      story.map((one) => {
        if (kindOf(one) !== "BATCH_OK" || one.value.node_id !== "w4") return one;
        const { payload } = one.value;
        const batch_uid = `w5:${payload.batch_uid}`;
        return withPayload(one, { ...payload, batch_uid, artifacts_ref: { ...(payload.artifacts_ref as JsonObject), batch_uid } });
      }),
  },
  {
    why: "a worker that goes says first that it has no room, so that it is sent nothing more",
    touched: 4,
    apply: (story) => {
      const online = (worker: Json | undefined) => ofKind(story, "WORKER_ONLINE").find(({ value }) => value.payload.worker_id === worker);
      return story.flatMap((one) => {
        if (kindOf(one) !== "WORKER_OFFLINE") return [one];
        const before = online(one.value.payload.worker_id) as Told;
        return [withPayload(before, { ...before.value.payload, capacity: { tasks: 0 } }), one];
      });
    },
  },
  {
    why: "and it says why it goes",
    touched: 4,
    apply: (story) =>
      story.map((one) => (kindOf(one) === "WORKER_OFFLINE" ? withPayload(one, { ...one.value.payload, reason: "stopped" }) : one)),
  },
];

const touchedBy = (before: readonly Told[], after: readonly Told[]): number =>
  before.filter((one) => !after.includes(one)).length || after.length - before.length;

const uuid = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;
const shapes: { readonly [field: string]: (value: unknown) => boolean } = {
  corr_id: (value) => uuid.test(String(value)),
  dedup_id: (value) => /^[0-9a-f]{40}$/.test(String(value)),
  // Our records are in the order of time.
  task_id: (value) => uuid.test(String(value)) || /^[0-9A-HJKMNP-TV-Z]{26}$/.test(String(value)),
  lease_id: (value) => uuid.test(String(value)),
  cancel_token: (value) => uuid.test(String(value)),
  ts_ms: Number.isSafeInteger,
  lease_deadline_ts_ms: Number.isSafeInteger,
};

/**
 * Each record as one line, without values that differ every time: a worker gets the name of its role. Values with a wrong form stay, and also
 * the order of the fields. Nodes run at the same time, so the order is that of each node. Announcements belong to no node.
 */
function byNode(story: readonly Told[]): { readonly [node: string]: readonly string[] } {
  const roles = new Map(ofKind(story, "WORKER_ONLINE").map(({ value: { payload } }) => [payload.worker_id as unknown, payload.type]));
  const masked = (field: string, value: unknown): unknown => {
    if (field === "worker_id") return roles.get(value) ?? value;
    return shapes[field]?.(value) ? `a ${field}` : value;
  };
  const lines: { [node: string]: string[] } = {};
  for (const { topic, value } of story) {
    lines[value.node_id] ??= [];
    lines[value.node_id]?.push(`${topic} ${JSON.stringify(value, masked)}`);
  }
  return lines;
}

/** A node with the input of the reference's own command. */
function recordedNode(id: string, depends_on: readonly string[]): JsonObject {
  const { value } = ofKind(recorded, "TASK_START").find((one) => one.value.node_id === id) as Told;
  const start_when = depends_on.length === 0 ? "ready" : "first_batch";
  return node(id, value.step_type, { depends_on: [...depends_on], io: { start_when, input_inline: value.payload.input_inline ?? null } });
}

/** The coordinator itself performs w3 and sends nothing about it on the bus: w4's input names it. */
const graph = {
  nodes: [
    recordedNode("w1", []),
    recordedNode("w2", ["w1"]),
    fn("w3", "merge.generic", { from_nodes: ["w1", "w2"], target: { key: "merged" } }, ["w1", "w2"]),
    recordedNode("w5", ["w2"]),
    recordedNode("w4", ["w5", "w3"]),
  ],
};

/** Returns the batches that were recorded for its node. */
const indexer = streamTask("indexer", {
  iterBatches: () =>
    ofKind(recorded, "BATCH_OK")
      .filter(({ value }) => value.node_id === "w1")
      .map(({ value: { payload } }) => ({ batch_uid: String(payload.batch_uid), payload: payload.metrics as JsonObject })),
  processBatch: ({ payload }) => payload,
});

/** Like the reference's handlers that do nothing special; the adapters name their batches. */
const idle = (role: string) => streamTask(role, { processBatch: () => ({ noop: 1 }) });

it("our workers and coordinator send the same messages as those of the reference", async () => {
  const told: (Told & { key: string | null })[] = [];
  const listening = (bus: Bus): Bus => ({
    name: bus.name,
    publish: (records) => {
      for (const { topic, key, value } of records) told.push({ topic, key, value: JSON.parse(String(value)) as Envelope });
      return bus.publish(records);
    },
    subscribe: (one) => bus.subscribe(one),
    ensure: (topics) => bus.ensure(topics),
    close: () => bus.close(),
  });
  const { engine, coordinator, bus, clock, submit, ended, warnings } = await openFlowkit({ bus: listening });
  const { parts, board, documents } = engine;
  const artifacts = new PartArtifacts({ parts, board, documents, clock, places: coordinator.places, task: async () => null });
  const start = async (task: Task) => {
    const worker = await work({ tasks: [task], on: flowkit({ bus, artifacts }), slots: 1, clock, signals: false, logger: false });
    onTestFinished(() => worker.stop({ force: true }));
    return worker;
  };
  const workers = [await start(indexer), await start(idle("enricher")), await start(idle("ocr")), await start(idle("analyzer"))];
  expect(await ended(await submit(graph))).toMatchObject({ state: "succeeded", error: null });
  for (const worker of workers.reverse()) await worker.stop();

  let expected: Told[] = recorded;
  for (const { why, touched, apply } of differences) {
    const changed = apply(expected);
    expect(touchedBy(expected, changed), why).toBe(touched);
    expected = changed;
  }
  expect(recorded).toHaveLength(55);
  expect(byNode(told)).toEqual(byNode(expected));
  // The recording has no keys, because it was made without Kafka. These are the keys of the protocol.
  for (const { key, value } of told) expect(key).toBe(value.node_id === "*" ? null : `${value.task_id}:${value.node_id}`);
  expect(warnings).toEqual([]);
});
