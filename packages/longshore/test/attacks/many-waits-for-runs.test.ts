// The attacker may start runs, and waits for thousands of them at once (Conductor's `execute`). Each time any task on the server changed,
// each of these waits read all tasks of its run: with 5,000 waits, each change took seconds.

import { expect, it } from "vitest";
import type { TaskRow } from "../../src/engine/board/task.ts";
import type { Run } from "../../src/engine/run/run.ts";
import { type Awaiting, awaitRun } from "../../src/protocols/conductor/server/await-run.ts";
import { TestClock } from "../../src/testing/clock.ts";
import { until } from "../support/until.ts";

function setup() {
  type Listener = Parameters<Awaiting["listen"]>[0];
  const listeners = new Set<Listener>();
  let [looks, state] = [0, "running"];
  const deps = {
    clock: new TestClock(),
    reader: {
      runHead: async (id: string) => ({ id, state, definitionId: "d" }),
      heads: async () => {
        looks++;
        return [];
      },
    },
    renderer: { viewOf: async () => ({ steps: [] }) },
    listen(listener: Listener) {
      listeners.add(listener);
      return () => void listeners.delete(listener);
    },
  } as unknown as Awaiting;
  const task = (runId: string | null) => {
    for (const listener of [...listeners]) listener.task?.({ id: `${runId}.0`, runId } as TaskRow);
  };
  const run = (id: string) => {
    for (const listener of [...listeners]) listener.run?.({ id } as Run);
  };
  const end = (id: string) => {
    state = "succeeded";
    run(id);
  };
  return { deps, listeners, task, run, end, looks: () => looks };
}

it("a wait for a run reads it only when this run or a run inside it changes", async () => {
  const { deps, listeners, task, run, end, looks } = setup();
  const found = awaitRun(deps, "R1", { references: [], waitMs: 60_000, signal: new AbortController().signal });
  await until(() => looks() === 1 && listeners.size === 1);
  for (const other of ["R2", "R10", "R", null]) task(other);
  for (const other of ["R2", "R10-0-0", "R"]) run(other);
  await new Promise((resolve) => setImmediate(resolve));
  expect(looks()).toBe(1);
  task("R1");
  await until(() => looks() === 2);
  task("R1-3-0");
  await until(() => looks() === 3);
  end("R1");
  expect(await found).toMatchObject({ run: { id: "R1", state: "succeeded" }, timedOut: false });
});
