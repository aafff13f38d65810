import { expect, it } from "vitest";
import { readFile } from "../../../core/file-place.ts";
import { format } from "./format.ts";

function parse(text: string, json = true) {
  return format.parse(readFile(text, { json, code: "LONGSHORE_BAD_DEFINITION" }), "other.json");
}

const simple = { name: "greet", taskReferenceName: "greet", type: "SIMPLE", inputParameters: {} };

it("recognises a definition by its tasks", () => {
  expect(format.accepts(["name", "tasks"])).toBe(true);
  expect(format.accepts(["name", "jobs"])).toBe(false);
});

it("reads a definition under its own name, from JSON and from YAML, with Conductor's defaults", () => {
  const { name, source, warnings } = parse(JSON.stringify({ name: "parcel", tasks: [simple] }));
  expect([name, warnings]).toEqual(["parcel", []]);
  expect(JSON.parse(source)).toMatchObject({ name: "parcel", version: 1, schemaVersion: 2, tasks: [{ name: "greet", type: "SIMPLE" }] });
  expect(parse("name: parcel\ntasks:\n  - { name: greet, taskReferenceName: greet }\n", false).name).toBe("parcel");
});

it("refuses a mistake at its place", () => {
  const text = `{\n  "name": "parcel",\n  "tasks": [\n    {"name": "greet", "taskReferenceName": "greet", "startDelay": "soon"}\n  ]\n}`;
  expect(() => parse(text)).toThrow(
    expect.objectContaining({
      code: "LONGSHORE_BAD_DEFINITION",
      message: expect.stringContaining("tasks[0].startDelay: "),
      detail: expect.objectContaining({ line: 4, column: 67, field: "tasks[0].startDelay" }),
    }),
  );
});

it("reports the number of further mistakes", () => {
  expect(() => parse(JSON.stringify({ name: "", tasks: [] }))).toThrow(/\(and \d+ more\)/);
});
