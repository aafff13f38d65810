// Our worker with an independent Python coordinator on a real broker: it sends what the reference's worker sends, field by field and in the
// same order.
import { beforeAll, describe, expect, it } from "vitest";
import { openFileStage, openStage } from "../src/stage.ts";
import { openPlaces, type Place } from "./place.ts";
import { type Heard, startPythonCoordinator, startPythonWorker } from "./python.ts";
import { trace } from "./trace.ts";
import { startOurWorker } from "./workers.ts";

const stage = openFileStage();
let place: () => Place;
beforeAll(async () => {
  place = await openPlaces(stage);
});

/** The events of a node, without the heartbeats after the first, whose number depends on the clock. */
function eventsOf(heard: readonly Heard[], node: string): Heard[] {
  const events = heard.filter(({ value }) => value.node_id === node && value.msg_type === "event");
  const beat = events.findIndex(isBeat);
  return events.filter((event, at) => !isBeat(event) || at === beat);
}

const isBeat = ({ value }: Heard): boolean => value.payload.kind === "TASK_HEARTBEAT";
const kindsOf = (heard: readonly Heard[], node: string): unknown[] => eventsOf(heard, node).map(({ value }) => value.payload.kind);

/** A record with its ids and times replaced, in the order of its fields. */
function shapeOf({ text }: Heard, names: readonly string[]): string {
  const shape = JSON.stringify(JSON.parse(text), (field, value: unknown) => {
    if (typeof value === "number" && field.endsWith("ts_ms")) return "<time>";
    if (field === "pid") return "<pid>";
    return ["corr_id", "dedup_id", "lease_id"].includes(field) ? `<${field}>` : value;
  });
  return names.reduce((masked, name, at) => masked.replaceAll(name, `<${at}>`), shape);
}

describe.concurrent("our worker with a Python coordinator", () => {
  it("writes the same records as the Python worker", async (context) => {
    const stage = openStage(context);
    const told = async (start: (at: Place, worker: string, role: string, habit: "produce" | "consume") => Promise<unknown>) => {
      const at = place();
      const [src, sink] = [at.role("src"), at.role("sink")];
      const coordinator = await startPythonCoordinator(stage, at, trace(src, sink));
      await start(at, "w-src", src, "produce");
      await start(at, "w-sink", sink, "consume");
      const heard = await coordinator.over();
      const names = [src, sink, coordinator.taskId];
      return ["u", "d"].map((node) => eventsOf(heard, node).map((event) => shapeOf(event, names)));
    };
    const [ours, python] = await Promise.all([
      told((at, workerId, role, habit) => startOurWorker(stage, at, { workerId, roles: { [role]: habit } })),
      told((at, worker_id, role, habit) => startPythonWorker(stage, at, { worker_id, roles: { [role]: habit } })),
    ]);
    expect(ours).toEqual(python);
  });

  it("reads the output of a Python worker, and a Python worker reads its output", async (context) => {
    const stage = openStage(context);
    for (const [first, second] of [
      [startPythonWorker, startOurWorker],
      [startOurWorker, startPythonWorker],
    ] as const) {
      const at = place();
      const [src, sink] = [at.role("src"), at.role("sink")];
      const coordinator = await startPythonCoordinator(stage, at, trace(src, sink));
      await first(stage, at, { worker_id: "w-src", workerId: "w-src", roles: { [src]: "produce" } });
      await second(stage, at, { worker_id: "w-sink", workerId: "w-sink", roles: { [sink]: "consume" } });
      const batches = eventsOf(await coordinator.over(), "d").filter(({ value }) => value.payload.kind === "BATCH_OK");
      const items = batches.flatMap(({ value }) => (value.payload.metrics as { skus: string[] }).skus);
      expect(items).toEqual(Array.from({ length: 9 }, (_, index) => `item-${index}`));
    }
  });

  it("stops when it gets a signal, and when the flag in the task's document is set", async (context) => {
    const stage = openStage(context);
    const stops = async (how: "signal" | "flag"): Promise<unknown[]> => {
      const at = place();
      const type = at.role("slow");
      const coordinator = await startPythonCoordinator(stage, at, {
        types: [type],
        nodes: [{ node_id: "s", type }],
        steps: [
          { do: "online", type },
          { do: "start", node: "s" },
          { do: "await", kind: "TASK_HEARTBEAT" },
          how === "signal" ? { do: "signal", node: "s" } : { do: "flag" },
          { do: "await", kind: "CANCELLED" },
        ],
      });
      await startOurWorker(stage, at, { workerId: "w-slow", roles: { [type]: "slow" }, dbCancelPollMs: 50 });
      return kindsOf(await coordinator.over(), "s");
    };
    for (const how of ["signal", "flag"] as const) expect(await stops(how)).toEqual(["TASK_ACCEPTED", "TASK_HEARTBEAT", "CANCELLED"]);
  });

  it("reports whether it runs a node, and runs a command only once when the command arrives twice", async (context) => {
    const stage = openStage(context);
    const at = place();
    const type = at.role("slow");
    const coordinator = await startPythonCoordinator(stage, at, {
      types: [type],
      nodes: [
        { node_id: "s", type, io: { input_inline: { ms: 2_000 } } },
        { node_id: "t", type, io: { input_inline: { ms: 1 } } },
      ],
      steps: [
        { do: "online", type },
        { do: "discover", node: "s" },
        { do: "start", node: "s" },
        { do: "await", kind: "TASK_ACCEPTED" },
        { do: "again" },
        { do: "discover", node: "s" },
        { do: "await", kind: "TASK_DONE", node_id: "s" },
        // The worker sends its last event a moment before it is free. After the next node it is certainly free.
        { do: "start", node: "t" },
        { do: "await", kind: "TASK_DONE", node_id: "t" },
        { do: "discover", node: "s", epoch: 2 },
      ],
    });
    await startOurWorker(stage, at, { workerId: "w-slow", slots: 4, roles: { [type]: "slow" } });
    const heard = await coordinator.over();
    expect(kindsOf(heard, "s")).toEqual(["TASK_ACCEPTED", "TASK_HEARTBEAT", "BATCH_OK", "TASK_DONE"]);
    const snapshots = heard.filter(({ topic }) => topic === "reply.tasks.v1").map(({ value }) => value.payload);
    const idle = { reply: "TASK_SNAPSHOT", worker_id: null, run_state: "idle", attempt_epoch: 0, lease: null, progress: null };
    expect(snapshots).toEqual([
      { ...idle, artifacts: null },
      expect.objectContaining({ worker_id: "w-slow", run_state: "running", attempt_epoch: 1, artifacts: null }),
      { ...idle, artifacts: { complete: true } },
    ]);
  });

  it("reports which batch failed, and why; and skips what cannot be read", async (context) => {
    const stage = openStage(context);
    const at = place();
    const type = at.role("fail");
    const told = { good: 1, reason: "schema_mismatch", permanent: true };
    const coordinator = await startPythonCoordinator(stage, at, {
      types: [type],
      nodes: [
        { node_id: "f", type, io: { input_inline: told } },
        { node_id: "x", type, io: { input_inline: { input_adapter: "no.such.adapter" } } },
      ],
      steps: [
        { do: "online", type },
        { do: "raw", topic: `cmd.${type}.v1`, value: "no JSON" },
        { do: "raw", topic: `cmd.${type}.v1`, value: '{"v":1,"msg_type":"cmd"}' },
        { do: "raw", topic: "signals.v1", value: "[]" },
        { do: "raw", topic: "query.tasks.v1", value: '"text"' },
        { do: "start", node: "f" },
        { do: "await", kind: "TASK_FAILED", node_id: "f" },
        { do: "start", node: "x" },
        { do: "await", kind: "TASK_FAILED", node_id: "x", reason_code: "bad_input_adapter" },
        { do: "discover", node: "f", epoch: 2 },
      ],
    });
    await startOurWorker(stage, at, { workerId: "w-fail", roles: { [type]: "fail" } });
    const events = eventsOf(await coordinator.over(), "f");
    expect(kindsOf(events, "f")).toEqual(["TASK_ACCEPTED", "TASK_HEARTBEAT", "BATCH_OK", "BATCH_FAILED", "TASK_FAILED"]);
    expect(events.at(-2)?.value.payload).toEqual({
      kind: "BATCH_FAILED",
      worker_id: "w-fail",
      batch_uid: "b1",
      reason_code: "schema_mismatch",
      permanent: true,
      error: "failed as it was told: schema_mismatch",
      artifacts_ref: { batch_uid: "b1" },
    });
  });
});
