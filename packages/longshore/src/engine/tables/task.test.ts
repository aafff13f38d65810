import { describe, expect, it } from "vitest";
import { newTask } from "../board/new-task.ts";
import type { TaskRow } from "../board/task.ts";
import { copyOf } from "../board/task-copy.ts";
import type { Column } from "../rows.ts";
import { atPlainEnd, closing, ending, holding, queueing, sameClosing, sameHolding, sameQueueing, taskOf, taskTable } from "./task.ts";

/** The fields that `read` looks at, of a task in which all fields have the same value. */
function fieldsOf(read: (task: TaskRow) => unknown): string[] {
  const fields = new Set<string>();
  const task = new Proxy({} as TaskRow, {
    get: (_, field) => {
      fields.add(String(field));
      return "same";
    },
  });
  read(task);
  return [...fields].sort();
}

function written(columns: readonly Column<TaskRow>[]): string[] {
  return fieldsOf((task) => columns.map(([, value]) => value(task)));
}

describe("Which columns of a task are written", () => {
  it("depends on every field of the columns that change when it is queued", () => {
    expect(fieldsOf((task) => sameQueueing(task, task))).toEqual(written(queueing));
  });

  it("depends on every field of the columns that change when a report closes it", () => {
    expect(fieldsOf((task) => sameClosing(task, task))).toEqual(written(closing));
  });

  it("depends at the end on every field that is written only when it has changed", () => {
    const compared = fieldsOf((task) => sameHolding(task, task));
    expect([...compared, ...written(atPlainEnd)].sort()).toEqual(written([...holding, ...closing, ...ending]));
  });

  it("uses as usual values those of a new task without options", () => {
    const fresh = newTask({ id: "t", step: "s", lanes: [], input: "null", policy: null }, 0, null);
    const usual = Object.keys(taskTable.usual ?? {});
    const row = Object.fromEntries(taskTable.columns.filter(([name]) => usual.includes(name)).map(([name, value]) => [name, value(fresh)]));
    expect(row).toEqual(taskTable.usual);
  });
});

describe("A task", () => {
  it("has its fields in the same order when it is new, read and copied, so that all have one hidden class", () => {
    const fresh = newTask({ id: "t", step: "s", lanes: [], input: "null", policy: null }, 0, null);
    const read = taskOf(Object.fromEntries(taskTable.columns.map(([name, value]) => [name, value(fresh)])));
    expect(Object.keys(read)).toEqual(Object.keys(fresh));
    expect(Object.keys(copyOf(fresh))).toEqual(Object.keys(fresh));
    expect(copyOf(fresh)).toEqual(fresh);
    expect(read).toEqual(fresh);
  });
});
