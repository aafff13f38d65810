import { describe, expect, it } from "vitest";
import type { LongshoreError } from "../../../core/errors.ts";
import { parseFile } from "./file.ts";

const yaml = (...on: string[]) => ["name: N", ...on, "jobs: { a: { run: x } }"].join("\n");
const schedulesOf = (...on: string[]) => parseFile(yaml(...on), { file: "flows/nightly.yml" }).schedules;

function thrownBy(work: () => unknown): LongshoreError {
  try {
    work();
  } catch (error) {
    return error as LongshoreError;
  }
  throw new Error("Nothing was thrown.");
}

describe("schedules of a definition file", () => {
  it("have the name of the file; the second and later ones also have a number", () => {
    const found = schedulesOf(
      "on:",
      "  push:",
      "  schedule:",
      "    - { cron: 0 3 * * 1-5, timezone: Europe/Berlin, overlap: queue, queueMax: 3, input: { deep: [1, null] } }",
      "    - { every: 5000, jitter: 1s, catchUp: all, catchUpWindow: 2h }",
      "    - { name: gift, at: 2030-12-24T18:00:00+01:00, tickField: day }",
    );
    expect(found).toEqual([
      {
        name: "nightly",
        rules: { workflow: "nightly", cron: "0 3 * * 1-5", timezone: "Europe/Berlin", overlap: "queue", queueMax: 3 },
        input: '{"deep":[1,null]}',
        place: { field: "on.schedule[0]", line: 5, column: 7 },
      },
      {
        name: "nightly-2",
        rules: { workflow: "nightly", every: 5000, jitter: "1s", catchUp: "all", catchUpWindow: "2h" },
        input: "null",
        place: expect.anything(),
      },
      {
        name: "gift",
        rules: { workflow: "nightly", at: "2030-12-24T18:00:00+01:00", tickField: "day" },
        input: "{}",
        place: expect.anything(),
      },
    ]);
  });

  it("do not exist for other triggers", () => {
    expect([schedulesOf("on: push"), schedulesOf("on: [push]"), schedulesOf("on: { push: {} }")]).toEqual([[], [], []]);
  });

  it.each([
    ["a map", ["on:", "  schedule: { cron: 0 3 * * * }"], "not a list", "on.schedule", 3, 13],
    ["no kind of times", ["on:", "  schedule: [{ overlap: skip }]"], "this one has none of them", "on.schedule[0]", 3, 14],
    [
      "a wrong value",
      ["on:", "  schedule:", "    - every: 5m", "      overlap: maybe"],
      'overlap is "maybe"',
      "on.schedule[0].overlap",
      5,
      16,
    ],
    [
      "one name twice",
      ["on:", "  schedule:", "    - { every: 5m, name: x }", "    - { every: 6m, name: x }"],
      "the name x",
      "on.schedule[1]",
      5,
      7,
    ],
  ])("are refused for %s, with the place", (_, on, message, field, line, column) => {
    const error = thrownBy(() => schedulesOf(...on));
    expect(error.message).toContain(message);
    expect(error.detail).toMatchObject({ field, line, column });
  });

  it.each([
    ["a text", ["on: schedule"], "has no times here", "on", 2, 5],
    ["a list", ["on: [push, schedule]"], "has no times here", "on[1]", 2, 12],
    ["nothing", ["on:", "  schedule:"], "has no times", "on.schedule", 3, 3],
  ])("warn about %s without times, and start nothing", (_, on, message, field, line, column) => {
    const { schedules, warnings } = parseFile(yaml(...on));
    expect(schedules).toEqual([]);
    expect(warnings).toEqual([{ message: expect.stringContaining(message), field, line, column }]);
  });

  it("cause a warning for a field without meaning", () => {
    const { warnings } = parseFile(yaml("on: { schedule: [{ every: 5m, colour: red }] }"));
    expect(warnings).toEqual([expect.objectContaining({ message: expect.stringContaining("'colour'"), line: 2 })]);
  });
});
