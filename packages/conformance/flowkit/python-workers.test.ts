// The Python worker, which is independent of Longshore, with our coordinator on a real broker. Our workers are in the same consumer group and
// use the same artifacts.
import { beforeAll, describe, expect, it } from "vitest";
import { openFileStage, openStage, type Stage } from "../src/stage.ts";
import { until } from "../src/until.ts";
import { items, PULL, RECHUNK, skusOf, streams } from "./graphs.ts";
import { startCoordinator, type TaskDocument } from "./operator.ts";
import { openPlaces, type Place } from "./place.ts";
import { type Habit, startPythonWorker } from "./python.ts";
import { startOurWorker } from "./workers.ts";

const stage = openFileStage();
let place: () => Place;
beforeAll(async () => {
  place = await openPlaces(stage);
});

/**
 * The reference reads the batches, then whether the node has ended. It misses batches that are written between the two reads, and its node is
 * done again. So in tests that count attempts, the end is written some time after the last batch.
 */
const LINGER_MS = 1_000;

type Start = (stage: Stage, at: Place, id: string, role: string, habit: Habit) => Promise<unknown>;
const python: Start = (stage, at, worker_id, role, habit) => startPythonWorker(stage, at, { worker_id, roles: { [role]: habit } });
const ours: Start = (stage, at, workerId, role, habit) => startOurWorker(stage, at, { workerId, roles: { [role]: habit } });

function epochOf({ graph }: TaskDocument, node: string): number | undefined {
  return graph.nodes.find(({ node_id }) => node_id === node)?.attempt_epoch;
}

describe.concurrent("a Python worker with our coordinator", () => {
  it.for([
    ["Python, Python", python, python],
    ["Python, ours", python, ours],
    ["ours, Python", ours, python],
  ] as const)("streams from node to node: %s", async ([, first, second], context) => {
    const stage = openStage(context);
    const at = place();
    const [src, sink] = [at.role("src"), at.role("sink")];
    const operator = await startCoordinator(stage, at, [src, sink]);
    await Promise.all([first(stage, at, "w-src", src, "produce"), second(stage, at, "w-sink", sink, "consume")]);
    const id = await operator.submit([
      { node_id: "u", type: src, io: { input_inline: { batches: 3, size: 3, ms: 50, linger_ms: LINGER_MS } } },
      streams("d", sink, "u", RECHUNK, { size: 2, meta_list_key: "skus" }),
    ]);
    expect(await operator.ended(id)).toMatchObject({ status: "finished", graph: { nodes: [{ attempt_epoch: 1 }, { attempt_epoch: 1 }] } });
    expect((await operator.artifacts(id, "d")).map(({ meta }) => meta.count)).toEqual([2, 1, 2, 1, 2, 1]);
    expect(await skusOf(operator, id, "d")).toEqual(items(9));
  });

  it("receives a number that no double can hold with all its digits, and returns it unchanged", async (context) => {
    const stage = openStage(context);
    const at = place();
    const role = at.role("numbers");
    const operator = await startCoordinator(stage, at, [role]);
    await startPythonWorker(stage, at, { worker_id: "w-python", roles: { [role]: "produce" } });
    // An integer of 64 bits, which MongoDB also supports. It is a string here, because JavaScript's numbers cannot hold it.
    const graph = `{"nodes":[{"node_id":"n","type":"${role}","io":{"input_inline":{"batches":1,"number":9223372036854775807}}}]}`;
    const body = `{"params":{},"graph":${graph}}`;
    const made = await fetch(`${operator.url}/flowkit/v1/tasks`, { method: "POST", headers: { "content-type": "application/json" }, body });
    const { task_id: id } = (await made.json()) as { task_id: string };
    expect((await operator.ended(id)).status).toBe("finished");
    const shown = await (await fetch(`${operator.url}/flowkit/v1/tasks/${id}/artifacts?node=n`)).text();
    expect(shown).toContain('"number":9223372036854775807');
  });

  it("[A25] shares one consumer group with our worker: every node is done once, by one of the two", async (context) => {
    const stage = openStage(context);
    const at = place();
    const role = at.role("produce");
    const operator = await startCoordinator(stage, at, [role]);
    const input = { batches: 2, size: 2, ms: 100 };
    const announcing = { worker_id: "w-python", roles: { [role]: "produce" as const }, announce_interval_sec: 0.5 };
    await Promise.all([
      startPythonWorker(stage, at, announcing),
      startOurWorker(stage, at, { workerId: "w-ours", roles: { [role]: "produce" } }),
    ]);
    const nodes = Array.from({ length: 24 }, (_, index) => ({ node_id: `n${index}`, type: role, io: { input_inline: input } }));
    const id = await operator.submit(nodes);
    const workers = new Set<string>();
    await until("both to have had some", async () => {
      const { graph, status } = await operator.read(id);
      for (const { lease } of graph.nodes) if (lease) workers.add(lease.worker_id);
      return workers.size === 2 || status === "finished" ? true : undefined;
    });
    expect([...workers].sort()).toEqual(["w-ours", "w-python"]);
    expect((await operator.ended(id)).status).toBe("finished");
    for (const { node_id } of nodes) expect(await skusOf(operator, id, node_id)).toEqual(items(4));
  });

  it("runs a node again after a temporary failure, but not after a permanent one", async (context) => {
    const stage = openStage(context);
    const at = place();
    const role = at.role("fail");
    const operator = await startCoordinator(stage, at, [role]);
    await startPythonWorker(stage, at, { roles: { [role]: "fail" } });
    const retry_policy = { max: 3, backoff_sec: 0.1 };
    const passing = await operator.submit([{ node_id: "f", type: role, retry_policy, io: { input_inline: { good: 1, until: 1 } } }]);
    expect((await operator.ended(passing)).status).toBe("finished");
    // Two or three attempts: a worker that still sends its last events drops the next command, which is sent again later.
    expect(epochOf(await operator.read(passing), "f")).toBeGreaterThan(1);
    const lasting = await operator.submit([{ node_id: "f", type: role, retry_policy, io: { input_inline: { permanent: true } } }]);
    expect(await operator.ended(lasting)).toMatchObject({ status: "failed", graph: { nodes: [{ status: "failed", attempt_epoch: 1 }] } });
  });

  it("stops when its task is cancelled, also when it mistakes the cancel for the end of its input", async (context) => {
    const stage = openStage(context);
    const at = place();
    const [slow, sink] = [at.role("slow"), at.role("sink")];
    const operator = await startCoordinator(stage, at, [slow, sink]);
    await Promise.all([python(stage, at, "w-slow", slow, "slow"), python(stage, at, "w-sink", sink, "consume")]);
    // The pulling node waits for a batch that is never written. It can begin because its edge does not wait.
    const id = await operator.submit([
      { node_id: "s", type: slow },
      { node_id: "p", type: sink, io: { input_inline: { input_adapter: PULL, input_args: { from_node: "s", poll_ms: 25 } } } },
    ]);
    await Promise.all([operator.begun(id, "s"), operator.begun(id, "p")]);
    await operator.cancel(id);
    const { state, graph } = await operator.ended(id);
    expect(state).toBe("cancelled");
    expect(graph.nodes.map(({ attempt_epoch }) => attempt_epoch)).toEqual([1, 1]);
    // Both workers are free again.
    const next = await operator.submit([{ node_id: "s", type: slow, io: { input_inline: { ms: 1 } } }]);
    expect(await operator.ended(next)).toMatchObject({ status: "finished" });
  });

  it("[A07] that is killed loses only its node, which our worker does in the next epoch", async (context) => {
    const stage = openStage(context);
    const at = place();
    const role = at.role("produce");
    const operator = await startCoordinator(stage, at, [role]);
    const first = await startPythonWorker(stage, at, { roles: { [role]: "produce" }, lease_ttl_sec: 3, hb_interval_sec: 0.5 });
    const id = await operator.submit([{ node_id: "u", type: role, io: { input_inline: { batches: 40, size: 2, ms: 100 } } }]);
    await operator.begun(id, "u");
    await until("some batches", async () => ((await operator.artifacts(id, "u")).length > 3 ? true : undefined));
    first.child.signal("SIGKILL");
    await ours(stage, at, "w-ours", role, "produce");
    expect((await operator.ended(id)).status).toBe("finished");
    // Two or more attempts: commands may wait in the partitions of the dead worker until Kafka reassigns these.
    expect(epochOf(await operator.read(id), "u")).toBeGreaterThan(1);
    expect((await skusOf(operator, id, "u")).sort()).toEqual(items(80).sort());
  });

  it("[A16] continues while our coordinator is down; the coordinator reads its events after the restart", async (context) => {
    const stage = openStage(context);
    const at = place();
    const [src, sink] = [at.role("src"), at.role("sink")];
    const first = await startCoordinator(stage, at, [src, sink], { config: { lease_ttl_sec: 30 } });
    await Promise.all([python(stage, at, "w-src", src, "produce"), python(stage, at, "w-sink", sink, "consume")]);
    const id = await first.submit([
      { node_id: "u", type: src, io: { input_inline: { batches: 20, size: 3, ms: 100, linger_ms: LINGER_MS } } },
      streams("d", sink, "u", PULL),
    ]);
    await Promise.all([first.begun(id, "u"), first.begun(id, "d")]);
    await first.kill();
    const operator = await first.again();
    expect(await operator.ended(id)).toMatchObject({ status: "finished", graph: { nodes: [{ attempt_epoch: 1 }, { attempt_epoch: 1 }] } });
    expect((await skusOf(operator, id, "d")).sort()).toEqual(items(60).sort());
  });

  it("whose artifacts MongoDB refuses loses none, because the coordinator writes them", async (context) => {
    const stage = openStage(context);
    const at = place();
    const [src, sink] = [at.role("src"), at.role("sink")];
    const operator = await startCoordinator(stage, at, [src, sink]);
    const first = { roles: { [src]: "produce" as const }, overlapping_upsert: true };
    await Promise.all([startPythonWorker(stage, at, first), python(stage, at, "w-sink", sink, "consume")]);
    const id = await operator.submit([
      { node_id: "u", type: src, io: { input_inline: { batches: 4, size: 3 } } },
      streams("d", sink, "u", PULL),
    ]);
    expect(await operator.ended(id)).toMatchObject({ status: "finished" });
    expect((await skusOf(operator, id, "d")).sort()).toEqual(items(12).sort());
  });
});
