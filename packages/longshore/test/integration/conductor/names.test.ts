// Conductor workflows that are used by name in other ways: our own lists and starts, definition files, a server without a port.

import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { serve } from "../../../src/server/index.ts";
import { startConductor } from "../../support/conductor-rest.ts";
import { simple } from "../../support/conductor-world.ts";
import { temporaryFolder } from "../../support/parts.ts";

interface Listed {
  readonly items: readonly { readonly name: string; readonly dialect: string; readonly version: number }[];
}

const parcel = { name: "parcel", tasks: [simple("greet")], inputTemplate: { count: 1 }, outputParameters: { all: "${workflow.input}" } };

async function names(c: Awaited<ReturnType<typeof startConductor>>): Promise<unknown[]> {
  const { items } = await c.read<Listed>("/longshore/v1/definitions");
  return items.map(({ name, dialect, version }) => [name, dialect, version]);
}

it("a registered workflow is listed and can be started by our own API before its first start", async () => {
  const c = await startConductor();
  await c.workflow(parcel);
  expect(await names(c)).toEqual([["parcel", "conductor", 1]]);
  const started = JSON.parse(await c.ask("POST", "/longshore/v1/runs", { workflow: "parcel", input: { name: "Ada" } })) as { id: string };
  await c.settle();
  const task = await c.take("greet");
  await c.update(task);
  // The input has the definition's defaults for absent values, as after a start with Conductor's protocol.
  expect(await c.run(started.id)).toMatchObject({ status: "COMPLETED", workflowVersion: 1, output: { all: { name: "Ada", count: 1 } } });
});

it("a start by name uses the newest version and the current task definitions", async () => {
  const c = await startConductor();
  await c.workflow(parcel);
  await c.workflow({ ...parcel, version: 3, tasks: [simple("weigh")] });
  // An older version that is written again does not become the newest.
  await c.workflow({ ...parcel, version: 2, tasks: [simple("count")] });
  await c.taskDef({ name: "weigh", responseTimeoutSeconds: 77, timeoutSeconds: 100 });
  const { id } = await c.server.start("parcel", null);
  await c.settle();
  expect(await c.run(id)).toMatchObject({ workflowVersion: 3 });
  expect(await c.take("weigh")).toMatchObject({ responseTimeoutSeconds: 77 });
});

it("the same registration again makes no new version", async () => {
  const c = await startConductor();
  await c.workflow(parcel);
  await c.clock.advance(1_000);
  await c.workflow(parcel);
  expect(await names(c)).toEqual([["parcel", "conductor", 1]]);
});

it("an input that is not an object is refused by name", async () => {
  const c = await startConductor();
  await c.workflow(parcel);
  const answer = await c.send("POST", "/longshore/v1/runs", { workflow: "parcel", input: [1] });
  expect([answer.status, answer.text]).toEqual([400, expect.stringContaining("The input of parcel is not an object")]);
});

it("a definition file in Conductor's JSON is registered with its own name, and mistakes are reported with their place", async () => {
  const c = await startConductor();
  const define = (text: string) => c.send("POST", "/longshore/v1/definitions?name=some-file", text);
  expect((await define(JSON.stringify(parcel))).status).toBe(201);
  expect((await define(JSON.stringify(parcel))).status).toBe(200);
  expect(await c.read("/metadata/workflow/parcel")).toMatchObject({ name: "parcel", version: 1 });
  const changed = await define(JSON.stringify({ ...parcel, tasks: [simple("weigh")] }));
  expect([changed.status, JSON.parse(changed.text)]).toMatchObject([
    201,
    { definition: { name: "parcel", version: 2, dialect: "conductor" } },
  ]);
  const wrong = await define('{"name": "x",\n "tasks": [{"name": "a", "taskReferenceName": "a", "startDelay": "soon"}]}');
  expect([wrong.status, JSON.parse(wrong.text)]).toMatchObject([400, { error: { code: "LONGSHORE_BAD_DEFINITION", line: 2 } }]);
});

it("a folder of workflows may contain Conductor's JSON, also on a server without a port", async () => {
  const workflows = temporaryFolder();
  writeFileSync(
    join(workflows, "a-parcel.json"),
    JSON.stringify({ ...parcel, tasks: [{ name: "wait", taskReferenceName: "w", type: "NOOP" }] }),
  );
  await using server = await serve({ ephemeral: true, port: null, workflows });
  expect(server.workflows.defined.map(({ definition }) => [definition.name, definition.dialect])).toEqual([["parcel", "conductor"]]);
  const { id } = await server.start("parcel", { name: "Ada" });
  expect(await server.result(id)).toMatchObject({ state: "succeeded", output: { all: { name: "Ada", count: 1 } } });
});
