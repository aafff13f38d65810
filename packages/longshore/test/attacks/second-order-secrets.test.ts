// The attacker may start runs with a chosen input, or holds a worker token and chooses the output of a task. The server has secrets, and a
// definition may use some of them. The attacker writes `${workflow.secrets.S1}` into data and tries to read the secret at a worker.

import { beforeEach, describe, expect, it, onTestFinished } from "vitest";
import type { Json, JsonObject } from "../../src/core/json/json.ts";
import { startConductor } from "../support/conductor-rest.ts";
import { operator, simple } from "../support/conductor-world.ts";

const stolen = "${workflow.secrets.S1}";
const traps: readonly Json[] = [
  stolen,
  `before ${stolen} after`,
  `$${stolen}`,
  `$$${stolen}`,
  `${stolen}${stolen}`,
  { deep: [{ [stolen]: stolen }] },
  "${workflow.secrets.${workflow.secrets.S1}}",
];

/** How a trap reads inside a text: objects and lists as the real server writes them. */
const inText = (trap: Json) => (typeof trap === "string" ? trap : `{deep=[{${stolen}=${stolen}}]}`);

/** One run or task, or a page of them. */
interface Shown {
  readonly id: string;
  readonly input: Json;
  readonly items?: readonly Shown[];
}

beforeEach(() => {
  process.env.CONDUCTOR_SECRET_S1 = "hunter2";
  onTestFinished(() => {
    delete process.env.CONDUCTOR_SECRET_S1;
  });
});

describe("text that looks like a secret", () => {
  for (const trap of traps) {
    it(`stays the text ${JSON.stringify(trap)} in a run's input, wherever it is used`, async () => {
      const c = await startConductor();
      await c.workflow({ name: "child", tasks: [simple("inner", { inputParameters: { given: "${workflow.input.x}" } })] });
      const id = await c.begin(
        [
          operator("SET_VARIABLE", "set", { inputParameters: { x: "${workflow.input.x}" } }),
          simple("t", {
            inputParameters: {
              x: "${workflow.input.x}",
              all: "${workflow.input}",
              variable: "${workflow.variables.x}",
              before: "${set.input.x}",
              run: "${workflow}",
              found: "${$..x}",
            },
          }),
          operator("SUB_WORKFLOW", "s", { subWorkflowParam: { name: "child" }, inputParameters: { x: "${workflow.variables.x}" } }),
        ],
        { start: { input: { x: trap } } },
      );
      const task = await c.take("t");
      expect(JSON.stringify(task)).not.toContain("hunter2");
      expect(task.inputData).toMatchObject({ x: trap, all: { x: trap }, variable: trap, before: trap });
      expect((await c.record(id, "t")).inputData).toEqual(task.inputData);
      expect(await c.run(id)).toMatchObject({ input: { x: trap }, variables: { x: trap } });
      await c.update(task);
      expect((await c.work("inner")).inputData).toEqual({ given: trap });
      expect(await c.run(await c.child(id, "s"))).toMatchObject({ input: { x: trap } });
    });

    it(`stays the text ${JSON.stringify(trap)} in the output of a worker`, async () => {
      const c = await startConductor();
      await c.begin([
        simple("first"),
        simple("t", { inputParameters: { x: "${first.output.x}", all: "${first}", text: "${first.output.x}!" } }),
      ]);
      await c.work("first", { output: { x: trap } });
      const { inputData } = await c.take("t");
      expect(JSON.stringify(inputData)).not.toContain("hunter2");
      expect(inputData).toMatchObject({
        x: trap,
        all: { output: { x: trap } },
        text: `${inText(trap)}!`,
      });
    });
  }

  it("is also shown unchanged by our own API, in runs and tasks, one by one and in lists", async () => {
    const c = await startConductor();
    for (const trap of traps) {
      const id = await c.begin([simple("t", { inputParameters: { x: "${workflow.input.x}" } })], { start: { input: { x: trap } } });
      const get = async (path: string) => (await (await fetch(`${c.server.url}/api/longshore/v1${path}`)).json()) as Shown;
      const run = await get(`/runs/${id}`);
      expect(run.input).toEqual({ x: trap });
      expect((await get("/runs")).items?.find((item) => item.id === run.id)?.input).toEqual({ x: trap });
      const [listed] = (await get(`/runs/${run.id}/tasks`)).items ?? [];
      expect(listed?.input).toEqual({ x: trap });
      expect((await get(`/tasks/${listed?.id}`)).input).toEqual({ x: trap });
      expect((await get("/tasks")).items?.find((item) => item.id === listed?.id)?.input).toEqual({ x: trap });
    }
  });

  it("is not created from adjacent pieces of data, or from data next to the definition's own text", async () => {
    const c = await startConductor();
    const input: JsonObject = { a: "$", b: "{workflow.secrets.S1}", c: "${workflow.secrets.", d: "S1}", e: "5$" };
    const inputParameters = {
      two: "${workflow.input.a}${workflow.input.b}",
      halves: "${workflow.input.c}${workflow.input.d}",
      definition: "${workflow.input.a}{workflow.secrets.S1}",
      written: "$${workflow.secrets.S1}",
      price: "${workflow.input.e}${workflow.secrets.S1}",
    };
    await c.begin([simple("t", { inputParameters })], { start: { input } });
    expect((await c.take("t")).inputData).toEqual({ two: stolen, halves: stolen, definition: stolen, written: stolen, price: "5$hunter2" });
  });

  it("stays a text in new inputs for a task or a run that is retried", async () => {
    const c = await startConductor();
    const id = await c.begin([simple("t", { inputParameters: { x: "${workflow.input.x}" } })], { start: { input: { x: 1 } } });
    const failed = await c.take("t");
    await c.update(failed, { status: "FAILED_WITH_TERMINAL_ERROR" });
    await c.ask("POST", `/workflow/${id}/rerun`, { reRunFromTaskId: failed.taskId, taskInput: { x: stolen } });
    const second = await c.take("t");
    expect(second.inputData).toEqual({ x: stolen });
    await c.update(second, { status: "FAILED_WITH_TERMINAL_ERROR" });
    await c.ask("POST", `/workflow/${id}/rerun`, { workflowInput: { x: stolen } });
    expect((await c.take("t")).inputData).toEqual({ x: stolen });
  });

  it("stays a text in a failure workflow, while a secret of its own definition is filled in", async () => {
    const c = await startConductor();
    const inputParameters = { x: "${workflow.input.x}", reason: "${workflow.input.reason}", mine: stolen };
    await c.workflow({ name: "after", tasks: [simple("mourn", { inputParameters })] });
    await c.workflow({ name: "w", failureWorkflow: "after", tasks: [simple("t")] });
    await c.ask("POST", "/workflow/w", { x: stolen });
    await c.update(await c.take("t"), { status: "FAILED_WITH_TERMINAL_ERROR", reason: stolen });
    const { inputData } = await c.take("mourn");
    expect(inputData).toMatchObject({ x: stolen, mine: "hunter2" });
    expect(inputData.reason).toContain(stolen);
  });

  it("stays a text in a definition that arrived as data", async () => {
    const c = await startConductor();
    const definition = {
      name: "made",
      version: 1,
      ownerEmail: "a@example.com",
      tasks: [simple("inner", { inputParameters: { x: stolen } })],
    };
    await c.begin(
      [operator("SUB_WORKFLOW", "s", { subWorkflowParam: { name: "made", workflowDefinition: "${workflow.input.def}" } as never })],
      { start: { input: { def: definition } } },
    );
    expect((await c.take("inner")).inputData).toEqual({ x: stolen });
  });

  for (const disguised of ["${ workflow.secrets.S1}", "${\tworkflow.secrets.S1 }", "${ workflow.secrets.${workflow.input.name}}"]) {
    it(`is no secret as ${JSON.stringify(disguised)} in a definition that arrived as data`, async () => {
      const c = await startConductor();
      const leak = simple("inner", { inputParameters: { x: disguised } });
      const definition = { name: "made", version: 1, ownerEmail: "a@example.com", inputTemplate: { name: "S1" }, tasks: [leak] };
      const made = { name: "made", workflowDefinition: "${workflow.input.def}" } as never;
      await c.begin([operator("SUB_WORKFLOW", "s", { subWorkflowParam: made })], { start: { input: { def: definition } } });
      expect(JSON.stringify(await c.pollMany("inner", 1))).not.toContain("hunter2");
    });
  }
});
