import { describe, expect, it } from "vitest";
import { readFile } from "../../../core/file-place.ts";
import { parseFlow } from "./file.ts";

const parse = (text: string, file = "f.yaml") =>
  parseFlow(readFile(text, { json: file.endsWith(".json"), code: "LONGSHORE_BAD_DEFINITION" }), file);
const head = "name: n\ndescription: d\n";
const refusal = (text: string, file?: string) => {
  try {
    parse(text, file);
  } catch (error) {
    const { message, detail } = error as { message: string; detail: object };
    return { message, ...detail };
  }
  return undefined;
};

describe("a flow in a file", () => {
  it("is kept as compact JSON in the order in which it was written, under the name of the file", () => {
    const yaml = `${head}steps:\n  - id: a\n    component: /python/udf\n    input: { x: { $input: $.x } }\noutput: { $step: a }\n`;
    const source =
      '{"name":"n","description":"d","steps":[{"id":"a","component":"/python/udf","input":{"x":{"$input":"$.x"}}}],"output":{"$step":"a"}}';
    expect(parse(yaml, "flows/ask.yml")).toEqual({ name: "ask", source, warnings: [] });
    expect(parse(JSON.stringify(JSON.parse(source), null, 2), "ask.json").source).toBe(source);
    expect(parse(yaml, "").name).toBe("n");
  });

  it("is refused with the place of the mistake", () => {
    expect(refusal(`${head}steps:\n  - id: a\n    component: [x]\n`)).toEqual({
      message: "`component` is not a text.",
      field: "steps[0].component",
      expected: "a text",
      line: 5,
      column: 16,
    });
    expect(refusal(`${head}steps:\n  - id: a\n    component: /x\n    onError: { action: maybe }\n`)).toMatchObject({
      line: 6,
      field: "steps[0].onError.action",
    });
    expect(refusal('{"steps": [{"id": "a",\n "component": "/x", "input": {"$step": "b"}}]}', "f.json")).toMatchObject({
      message: "Step 'a' references undefined step 'b'",
      line: 2,
      field: "steps[0].input",
    });
    expect(refusal('{"steps": [}', "f.json")).toMatchObject({ line: 1, expected: "JSON" });
    expect(refusal("steps: [\n")).toMatchObject({ message: expect.stringContaining("not YAML") });
  });

  it("in the old language is refused with what to write instead", () => {
    const old = refusal(`${head}steps:\n  - id: a\n    component: /x\n    input:\n      q: { $from: { step: b }, path: c }\n`);
    expect(old).toMatchObject({ line: 7, field: "steps[0].input.q.$from" });
    expect(old?.message).toContain('Write {"$step": "id", "path": "..."}');
  });

  it("is warned about where something is odd, with the place", () => {
    const { warnings } = parse("name: n\nsteps:\n  - id: a\n    component: /x\n");
    expect(warnings).toEqual([
      { message: "Workflow has no description", field: "", line: 1, column: 1 },
      { message: "Step 'a' is not referenced by any other step or the output", field: "steps[0]", line: 3, column: 5 },
    ]);
  });

  it("takes aliases, and refuses what is nested too deeply", () => {
    expect(parse(`${head}steps: []\noutput: { a: &x { b: 1 }, c: *x }\n`).source).toContain('{"a":{"b":1},"c":{"b":1}}');
    const deep = `{"steps":[],"output":${"[".repeat(200)}${"]".repeat(200)}}`;
    expect(refusal(deep, "f.json")?.message).toMatch(/nested too deeply|recursion limit/);
  });
});
