import { expect, it } from "vitest";
import { Slices } from "../../core/slices/slices.ts";
import { TestClock } from "../../testing/clock.ts";
import { newTask } from "../board/new-task.ts";
import type { TaskRow } from "../board/task.ts";
import type { Rows } from "../cached-rows.ts";
import type { GroupCommit } from "../commit.ts";
import { Postponed } from "../commit-errors.ts";
import type { Tx } from "../tx.ts";
import { RecordsAhead } from "./records-ahead.ts";
import { taskIdOf } from "./run.ts";

const tx = {} as Tx;
const sliceTasks = 10;

/** Records of a run, and how many of them each slice has read. */
function setup({ chars = 10, charsMax = 1_000_000 } = {}) {
  const slices: number[] = [];
  const record = (node: number): TaskRow => {
    const base = { id: taskIdOf("r", node), runId: "r", node, step: `s${node}`, lanes: [], policy: null };
    return newTask({ ...base, input: "x".repeat(chars) }, 0, null);
  };
  const nodeOf = (id: string) => Number(id.slice(id.lastIndexOf(".") + 1));
  const tasks = {
    get: (_tx: unknown, id: string) => {
      slices[slices.length - 1] = (slices.at(-1) ?? 0) + 1;
      return record(nodeOf(id));
    },
    newest: (_tx: unknown, _id: string, stored: TaskRow) => stored,
  };
  const commit = {
    read: async (work: (tx: unknown) => unknown) => {
      slices.push(0);
      return work(tx);
    },
  };
  const ahead = new RecordsAhead({
    ...{ commit: commit as unknown as GroupCommit, tasks: tasks as unknown as Rows<TaskRow> },
    ...{ clock: new TestClock(), slices: new Slices(), sliceTasks, charsMax },
  });
  const nodes = Array.from({ length: 35 }, (_, at) => at);
  const postponed = async () => {
    try {
      ahead.of(tx, "r", nodes);
    } catch (thrown) {
      if (thrown instanceof Postponed) return thrown.until;
    }
    throw new Error("The operation was not postponed.");
  };
  return { ahead, nodes, slices, postponed };
}

it("many records are read in slices before the operation that needs them", async () => {
  const { ahead, nodes, slices, postponed } = setup();
  await postponed();
  expect(slices).toEqual([10, 10, 10, 5]);
  const read = ahead.of(tx, "r", nodes);
  expect(nodes.map((node) => read?.(node)?.node)).toEqual(nodes);
  expect(slices).toHaveLength(4);
});

it("few records are left to the operation", () => {
  const { ahead, nodes } = setup();
  expect(ahead.of(tx, "r", nodes.slice(0, sliceTasks))).toBeUndefined();
});

it("a record that a commit has changed since then is left to the operation", async () => {
  const { ahead, nodes, postponed } = setup();
  await postponed();
  ahead.changed({ runId: "r", node: 3 });
  const read = ahead.of(tx, "r", nodes);
  expect(nodes.filter((node) => read?.(node) === null)).toEqual([3]);
});

it("no more is read than the decision accepts", async () => {
  const { slices, postponed } = setup({ chars: 100, charsMax: 1_500 });
  await postponed();
  expect(slices).toEqual([10, 10]);
});
