// The attacker may start runs or, with a worker token, register schemas, and uses ids and names of megabytes. They are keys in the data file,
// and every list of runs or schemas repeats them.

import { expect, it } from "vitest";
import { startConductor } from "../support/conductor-rest.ts";
import { simple } from "../support/conductor-world.ts";

const longest = "i".repeat(512);
const tooLong = `${longest}i`;

async function setup() {
  const c = await startConductor();
  await c.workflow({ name: "w", tasks: [simple("s")] });
  return c;
}

function refusalOf(path: string) {
  const message = expect.stringMatching(/has \d+ characters, at most 512 are allowed/);
  return { validationErrors: [{ path, message }] };
}

it.each(["correlationId", "idempotencyKey", "createdBy"])(
  "a start with a long %s is refused, and the refusal names the field",
  async (field) => {
    const c = await setup();
    for (const value of [tooLong, "i".repeat(3_000_000)]) {
      const { status, text } = await c.send("POST", "/workflow", { name: "w", [field]: value });
      expect(status).toBe(400);
      expect(JSON.parse(text)).toMatchObject(refusalOf(`startWorkflow.arg0.${field}`));
      expect(text.length).toBeLessThan(1_000);
    }
    expect((await c.send("POST", "/workflow", { name: "w", [field]: longest })).status).toBe(200);
  },
);

it.each([
  ["correlationId", "startWorkflow.arg2"],
  ["idempotencyKey", "startWorkflow.idempotencyKey"],
])("a start by name with a long %s in the query is refused", async (field, path) => {
  const c = await setup();
  const { status, text } = await c.send("POST", `/workflow/w?${field}=${tooLong}`, {});
  expect(status).toBe(400);
  expect(JSON.parse(text)).toMatchObject(refusalOf(path));
});

it("a rerun with a long correlationId is refused, and the run does not change", async () => {
  const c = await setup();
  const id = await c.start("w", { correlationId: "c" });
  await c.work("s");
  const { status, text } = await c.order("POST", id, "/rerun", { correlationId: "i".repeat(3_000_000) });
  expect(status).toBe(400);
  expect(JSON.parse(text)).toMatchObject(refusalOf("rerunWorkflow.arg1.correlationId"));
  expect(await c.run(id)).toMatchObject({ status: "COMPLETED", correlationId: "c" });
});

it("a schema with a too long name is refused, and one with the longest allowed name is found by it", async () => {
  const c = await setup();
  const schema = (name: string) => [{ name, version: 1, type: "JSON", data: {} }];
  for (const name of [tooLong, "i".repeat(200_000)]) {
    const { status, text } = await c.send("POST", "/schema", schema(name));
    expect(status).toBe(400);
    expect(JSON.parse(text)).toMatchObject(refusalOf("saveSchemas.arg0[0].name"));
    expect(text.length).toBeLessThan(1_000);
  }
  await c.ask("POST", "/schema", schema(longest));
  expect(JSON.parse(await c.ask("GET", `/schema/${longest}`))).toMatchObject({ name: longest });
});
