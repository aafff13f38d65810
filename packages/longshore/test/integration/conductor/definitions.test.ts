import { expect, it } from "vitest";
import { startConductor } from "../../support/conductor-rest.ts";
import { simple, switchOn } from "../../support/conductor-world.ts";

interface Refusal {
  status: number;
  message: string;
  retryable: boolean;
  validationErrors?: { path: string; message: string; invalidValue?: string }[];
}

const refusalOf = (answer: { text: string }) => JSON.parse(answer.text) as Refusal;

it("[C1] returns a task definition with the defaults filled in", async () => {
  const c = await startConductor();
  await c.taskDef({ name: "t", ownerEmail: "a@b.c", timeoutSeconds: 10, responseTimeoutSeconds: 5 });
  const defaults = { retryCount: 3, retryDelaySeconds: 60, retryLogic: "FIXED", timeoutPolicy: "TIME_OUT_WF", backoffScaleFactor: 1 };
  const given = { name: "t", ownerEmail: "a@b.c", timeoutSeconds: 10, responseTimeoutSeconds: 5 };
  expect(await c.read("/metadata/taskdefs/t")).toMatchObject({ ...given, ...defaults });
  await c.taskDef({ name: "plain" });
  expect(await c.read("/metadata/taskdefs/plain")).toMatchObject({ responseTimeoutSeconds: 3_600, timeoutSeconds: 0 });
});

it("[C2] returns a workflow definition by name, and by name and version", async () => {
  const c = await startConductor();
  await c.workflow({ name: "w", version: 1, tasks: [simple("t")], outputParameters: { o: "${t.output.x}" } });
  await c.workflow({ name: "w", version: 3, tasks: [simple("t"), simple("u")] });
  const first = await c.read<{ tasks: unknown[] }>("/metadata/workflow/w?version=1");
  expect(first).toMatchObject({ version: 1, schemaVersion: 2, restartable: true, outputParameters: { o: "${t.output.x}" } });
  expect(first.tasks).toHaveLength(1);
  expect(await c.read("/metadata/workflow/w")).toMatchObject({ version: 3 });
});

it("[C3] refuses to write a definition over another by default", async () => {
  const c = await startConductor();
  const definition = { name: "w", version: 1, tasks: [simple("t")] };
  expect((await c.send("POST", "/metadata/workflow", definition)).status).toBe(200);
  const again = await c.send("POST", "/metadata/workflow", definition);
  expect([again.status, refusalOf(again).message]).toEqual([409, "Workflow with w.1 already exists!"]);
  expect((await c.send("POST", "/metadata/workflow?overwrite=true", definition)).status).toBe(200);
  const put = await c.send("PUT", "/metadata/workflow", [definition]);
  expect(JSON.parse(put.text)).toEqual({ bulkErrorResults: {}, bulkSuccessfulResults: ["w"] });
});

it("[C13] reports that a removed definition does not exist", async () => {
  const c = await startConductor();
  await c.workflow({ name: "w", version: 1, tasks: [simple("t")] });
  await c.ask("DELETE", "/metadata/workflow/w/1");
  const answer = await c.send("GET", "/metadata/workflow/w?version=1");
  expect(answer.status).toBe(404);
  expect(refusalOf(answer)).toMatchObject({ status: 404, message: "No such workflow found by name: w, version: 1", retryable: false });
});

it("[C14] responds with 404 and an error body for unknown objects", async () => {
  const c = await startConductor();
  for (const path of ["/metadata/taskdefs/none", "/workflow/none", "/tasks/none", "/workflow/none/no/such/path", "/metadata/none"]) {
    const answer = await c.send("GET", path);
    expect([path, answer.status, refusalOf(answer).status]).toEqual([path, 404, 404]);
    expect(refusalOf(answer).message).toEqual(expect.any(String));
  }
});

it("[C16] refuses an empty workflow definition, naming both faults", async () => {
  const c = await startConductor();
  const answer = await c.send("POST", "/metadata/workflow", {});
  expect(answer.status).toBe(400);
  const messages = refusalOf(answer).validationErrors?.map(({ message }) => message);
  expect(messages).toContain("WorkflowDef name cannot be null or empty");
  expect(messages).toContain("WorkflowTask list cannot be empty");
});

it("[C17] creates a task definition that does not exist on PUT, with and without its name in the path", async () => {
  const c = await startConductor();
  expect((await c.send("PUT", "/metadata/taskdefs", { name: "a", retryCount: 1 })).status).toBe(200);
  expect((await c.send("PUT", "/metadata/taskdefs/b", { name: "ignored", retryCount: 2 })).status).toBe(200);
  expect((await c.send("POST", "/metadata/taskdefs", [{ name: "a", retryCount: 5 }])).status).toBe(200);
  expect(await c.read("/metadata/taskdefs/a")).toMatchObject({ retryCount: 5 });
  expect(await c.read("/metadata/taskdefs/b")).toMatchObject({ name: "b", retryCount: 2 });
});

it("[C18] refuses a reference that is used twice, also in a branch", async () => {
  const c = await startConductor();
  const tasks = [simple("t"), switchOn("s", { a: [simple("other", { taskReferenceName: "t" })] })];
  const answer = await c.send("POST", "/metadata/workflow", { name: "w", tasks });
  expect(answer.status).toBe(400);
  expect(answer.text).toContain("taskReferenceName: t should be unique across tasks for a given workflowDefinition: w");
});

it("[C19] refuses an input that reads an unknown task", async () => {
  const c = await startConductor();
  const tasks = [simple("t", { inputParameters: { x: "${nope.output.x}" } })];
  const answer = await c.send("POST", "/metadata/workflow", { name: "w", tasks });
  expect(answer.status).toBe(400);
  expect(answer.text).toContain("taskReferenceName: nope for given task: t");
});

it("[C29] stores schemas that are sent alone or in a list, by name and version", async () => {
  const c = await startConductor();
  await c.ask("POST", "/schema", { name: "one", type: "JSON", data: { type: "object" } });
  await c.ask("POST", "/schema", [
    { name: "one", version: 2, type: "JSON", data: { type: "string" } },
    { name: "two", version: 1, type: "JSON", data: {} },
  ]);
  await c.ask("POST", "/schema?newVersion=true", { name: "two", type: "JSON", data: { type: "number" } });
  expect(await c.read("/schema/one")).toMatchObject({ version: 2, data: { type: "string" } });
  expect(await c.read("/schema/one/1")).toMatchObject({ version: 1, data: { type: "object" } });
  expect(await c.read("/schema/two")).toMatchObject({ version: 2, data: { type: "number" } });
  expect((await c.send("GET", "/schema/one/9")).status).toBe(404);
  await c.ask("DELETE", "/schema/one/2");
  expect(await c.read("/schema/one")).toMatchObject({ version: 1 });
});
