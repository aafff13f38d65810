import { expect, it, onTestFinished } from "vitest";
import { task } from "../../../src/core/task.ts";
import { graph } from "../../../src/graph.ts";
import { startConductor } from "../../support/conductor-rest.ts";
import { operator, simple } from "../../support/conductor-world.ts";

function environment(variables: { [name: string]: string }): void {
  for (const name of Object.keys(variables)) process.env[name] = variables[name];
  onTestFinished(() => {
    for (const name of Object.keys(variables)) delete process.env[name];
  });
}

const literal = "${workflow.secrets.KEY}";

it("[C121] fills in secrets only for the polling worker, and stores the literal expression everywhere", async () => {
  environment({ CONDUCTOR_SECRET_KEY: "hunter2", CONDUCTOR_SECRET_PAIR: '{"user":"u","pass":"p"}', CONDUCTOR_ENV_REGION: "north" });
  const c = await startConductor();
  await c.workflow({ name: "child", tasks: [simple("inner", { inputParameters: { given: "${workflow.input.key}" } })] });
  const inputParameters = {
    key: literal,
    text: `Bearer ${literal}`,
    pass: "${workflow.secrets.PAIR.pass}",
    unknown: "${workflow.secrets.NOBODY}",
    region: "${workflow.env.REGION}",
    variable: "${workflow.variables.key}",
  };
  const id = await c.begin([
    operator("SET_VARIABLE", "set", { inputParameters: { key: literal } }),
    simple("t", { inputParameters }),
    operator("SUB_WORKFLOW", "s", { subWorkflowParam: { name: "child" }, inputParameters: { key: literal } }),
  ]);
  const filled = { key: "hunter2", text: "Bearer hunter2", pass: "p", unknown: null, region: "north", variable: "hunter2" };
  const task = await c.take("t");
  expect(task.inputData).toEqual(filled);
  const stored = { ...inputParameters, region: "north", variable: literal };
  expect((await c.record(id, "t")).inputData).toEqual(stored);
  expect((await c.read<{ inputData: object }>(`/tasks/${task.taskId}`)).inputData).toEqual(stored);
  await c.update(task);
  const child = await c.child(id, "s");
  expect((await c.run(child)).input).toEqual({ key: literal });
  expect((await c.work("inner")).inputData).toEqual({ given: "hunter2" });
  expect(await c.status(id)).toBe("COMPLETED");
  for (const run of [id, child]) expect(JSON.stringify(await c.run(run))).not.toContain("hunter2");
});

it("[C121] also fills in secrets in tasks that update-v2 hands out", async () => {
  environment({ CONDUCTOR_SECRET_KEY: "hunter2" });
  const c = await startConductor();
  const id = await c.begin([
    simple("t", { taskReferenceName: "one" }),
    simple("t", { taskReferenceName: "two", inputParameters: { key: literal } }),
  ]);
  const next = await c.ask("POST", "/tasks/update-v2", c.resultOf(await c.take("t")));
  expect(JSON.parse(next)).toMatchObject({ referenceTaskName: "two", inputData: { key: "hunter2" } });
  expect((await c.record(id, "two")).inputData).toEqual({ key: literal });
});

it("hands out the secrets and variables that a task definition names, and shows them nowhere else", async () => {
  environment({ CONDUCTOR_SECRET_KEY: "hunter2", CONDUCTOR_ENV_REGION: "north", CONDUCTOR_ENV_KEY: "not this one" });
  const c = await startConductor();
  await c.taskDef({ name: "t", runtimeMetadata: ["KEY", "REGION", "NOBODY"] });
  const id = await c.begin([simple("t")]);
  const task = await c.take("t");
  expect(task.runtimeMetadata).toEqual({ KEY: "hunter2", REGION: "north" });
  expect(await c.record(id, "t")).not.toHaveProperty("runtimeMetadata");
});

it("does not change texts that look like a secret in tasks of other dialects", async () => {
  environment({ CONDUCTOR_SECRET_KEY: "hunter2" });
  const c = await startConductor();
  const plain = graph("plain", (g) =>
    g.step(
      task("plain_task", (input: { key: string }) => input.key),
      { key: literal },
    ),
  );
  await c.server.define(plain);
  await c.server.start(plain, {});
  expect((await c.take("plain_task")).inputData).toEqual({ key: literal });
});
