import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { longshore, temporaryFolder } from "../support/cli.ts";

const fixtures = "test/fixtures/signatures";

it("[C-SCH-02, C-SCH-03] prints the input and output of each task, and writes the schemas to a file", async () => {
  const out = join(temporaryFolder(), "schemas.json");
  const { code, stdout, stderr } = await longshore(["schema", `${fixtures}/handlers.ts`, "--out", out]);
  expect({ code, stdout, stderr }).toEqual({
    code: 0,
    stdout: "greet\n  input   name\n  output  text\ncount\n  input   items\n  output  number\n",
    stderr: "",
  });
  expect(JSON.parse(readFileSync(out, "utf8"))).toMatchObject({ greet: { input: { required: ["name"], additionalProperties: true } } });
});

it("[C-SCH-04] reports why an input or output has no schema, and continues with the others", async () => {
  const { code, stdout, stderr } = await longshore(["schema", `${fixtures}/tasks.ts`, "--json", "--strict"]);
  expect(code).toBe(1);
  expect(stderr).toContain("unsayable has no input schema: orders[].total is a bigint");
  const schemas = JSON.parse(stdout);
  expect(schemas.unsayable).toEqual({});
  expect(schemas.basic.input).toMatchObject({ additionalProperties: false });
});

it("has a message for a file that does not exist", async () => {
  const { code, stderr } = await longshore(["schema", "nowhere.ts"]);
  expect({ code, stderr }).toEqual({
    code: 2,
    stderr: expect.stringMatching(/^longshore: nowhere\.ts does not exist \(looked for .*\)\.\n$/),
  });
});
