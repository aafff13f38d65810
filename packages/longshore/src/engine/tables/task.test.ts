import { describe, expect, it } from "vitest";
import type { TaskRow } from "../board/task.ts";
import type { Column } from "../rows.ts";
import { closing, queueing, sameClosing, sameQueueing } from "./task.ts";

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
});
