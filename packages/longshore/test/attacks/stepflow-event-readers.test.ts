// The attacker holds a read token and follows the events of a run on many connections without reading them. Events that wait for such a
// reader must not keep the inputs and results of the run in memory. A run may have megabytes in each item, and 500 readers may follow.

import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { expect, it, onTestFinished, vi } from "vitest";
import type { Json } from "../../src/core/json/json.ts";
import { Line } from "../../src/core/line.ts";
import type { TaskRow } from "../../src/engine/board/task.ts";
import type { Run } from "../../src/engine/run/run.ts";
import { eventsOfItem, eventsOfStep, type RunHistoryEvent } from "../../src/protocols/stepflow/server/api/event-history.ts";
import { Followers } from "../../src/protocols/stepflow/server/api/followers.ts";
import type { FlowView, StepView } from "../../src/protocols/stepflow/server/api/view.ts";
import { ExecutionStatus } from "../../src/protocols/stepflow/wire/messages.ts";
import { startStepflow } from "../support/stepflow-server.ts";

setFlagsFromString("--expose-gc");
const collectGarbage = runInNewContext("gc") as () => void;

const flow = {
  schema: "https://stepflow.org/schemas/v1/flow.json",
  steps: [{ id: "a", component: "/builtin/put_blob", input: { data: { $input: "x" }, blob_type: "data" } }],
  output: { $input: "x" },
};

/** The rows from which events were made and that are still in memory. */
async function heldBy(make: (rows: WeakRef<object>[]) => RunHistoryEvent[]) {
  const rows: WeakRef<object>[] = [];
  const events = make(rows);
  await new Promise((resolve) => setImmediate(resolve));
  collectGarbage();
  return { events, held: rows.filter((row) => row.deref() !== undefined) };
}

it("a waiting event keeps no run and no task in memory", async () => {
  const { events, held } = await heldBy((rows) => {
    const id = "01a1eb28-19ea-7bb4-9d46-644a493f0392";
    const common = { id, createdAt: 1, endedAt: 2, state: "succeeded", output: '"x"', input: '"x"' };
    const item = { ...common } as unknown as Run;
    const task = {
      ...common,
      id: `${id}.0`,
      runId: id,
      state: "done",
      ordinal: 0,
      attempt: 0,
      attemptAt: 1,
      lane: {},
    } as unknown as TaskRow;
    rows.push(new WeakRef(item), new WeakRef(task));
    const step = { stepId: "a", stepIndex: 0, demanded: false } as unknown as StepView;
    return [...eventsOfItem(item, { steps: [step] } as unknown as FlowView, []), ...eventsOfStep(task, step, [], { status: 2 })];
  });
  expect(events.length).toBeGreaterThan(2);
  expect(held).toEqual([]);
});

it("results are sent when they are requested", async () => {
  const server = await startStepflow();
  const run = await server.submit(flow, [{ x: "first" }, { x: "second" }]);
  await server.ended(run);
  const reader = await server.events(run, "?includeResults=true");
  const told: string[] = [];
  for (let frame = await reader.next(); frame !== undefined; frame = await reader.next()) told.push(frame.data);
  expect(told.filter((data) => data.includes('"first"'))).toHaveLength(1);
  expect(told.filter((data) => data.includes('"second"'))).toHaveLength(1);
});

it("a reader is refused with the reason when there is no memory for its events", async () => {
  const room = vi.spyOn(Followers.prototype, "mayHold").mockImplementation((own, more) => own + more <= 3);
  onTestFinished(() => room.mockRestore());
  const server = await startStepflow();
  const run = await server.submit(flow, [{ x: 1 }, { x: 2 }]);
  await server.ended(run);
  const reader = await server.events(run);
  expect((await reader.next())?.data).toContain("events wait for their readers already");
  expect(await reader.next()).toBeUndefined();
});

it("the events of a run are read without its inputs and results, once for all waiting readers", async () => {
  const server = await startStepflow();
  const { reader } = server.engine;
  const run = await server.submit(flow, [{ x: "first" }, { x: "second" }]);
  await server.ended(run);
  const whole = [vi.spyOn(reader, "run"), vi.spyOn(reader, "task"), vi.spyOn(reader, "records"), vi.spyOn(reader, "runsUnder")];
  const heads = vi.spyOn(reader, "headsUnder");
  onTestFinished(() => void vi.restoreAllMocks());
  const readers = await Promise.all(Array.from({ length: 20 }, () => server.events(run)));
  for (const each of readers) {
    let completed = 0;
    for (let frame = await each.next(); frame !== undefined; frame = await each.next())
      if (frame.data.includes("ItemCompleted")) completed++;
    expect(completed).toBe(2);
  }
  for (const read of whole) expect(read).not.toHaveBeenCalled();
  expect(heads.mock.calls.length).toBeLessThan(20);
});

it("a step with a default for its failure is reported as completed, but a step that failed because of another is not", async () => {
  const server = await startStepflow();
  const onError = { action: "useDefault", defaultValue: 1 };
  const steps: Json[] = [
    { id: "a", component: "/hold", input: {}, onError },
    { id: "b", component: "/hold", input: {} },
    { id: "c", component: "/hold", input: { $step: "b" }, onError },
  ];
  const run = await server.submit({ ...flow, steps, output: [{ $step: "a" }, { $step: "c" }] }, [{ x: 1 }]);
  for (let n = 0; n < 2; n++) {
    const { id: taskId, grant } = await server.claim("hold");
    await server.engine.board.fail({ taskId, grant }, { error: "no", retryable: false });
  }
  await server.ended(run);
  const reader = await server.events(run);
  const statuses = new Map<string, number>();
  for (let frame = await reader.next(); frame !== undefined; frame = await reader.next()) {
    const { StepCompleted: step } = (JSON.parse(frame.data) as { event: { StepCompleted?: { stepId: string; status: number } } }).event;
    if (step !== undefined) statuses.set(step.stepId, step.status);
  }
  const { COMPLETED, FAILED } = ExecutionStatus;
  expect([...statuses].sort()).toEqual([
    ["a", COMPLETED],
    ["b", FAILED],
    ["c", FAILED],
  ]);
});

it("one event with its result is built at a time, and an event that fails frees its place", async () => {
  const line = new Line(2);
  let working = 0;
  let most = 0;
  const work = async (at: number) => {
    most = Math.max(most, ++working);
    await new Promise((resolve) => setImmediate(resolve));
    working--;
    if (at % 3 === 0) throw new Error("gone");
  };
  const ended = await Promise.allSettled(Array.from({ length: 50 }, (_, at) => line.use(() => work(at))));
  expect(most).toBe(2);
  expect(ended.filter(({ status }) => status === "fulfilled")).toHaveLength(33);
});
