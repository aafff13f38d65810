// Any definition, with tasks that fail, are optional, end the run or start other runs, has an end with consistent records. It has the same
// end when the server is stopped and started in between.

import fc from "fast-check";
import { expect, it } from "vitest";
import { type ConductorServer, type RestRun, startConductor } from "../../support/conductor-rest.ts";
import { operator, simple, switchOn } from "../../support/conductor-world.ts";

type Luck = "good" | "second-time" | "bad" | "terminal";
type Shape =
  | { kind: "simple"; luck: Luck; forgiven: "no" | "optional" | "permissive" }
  | { kind: "set" }
  | { kind: "terminate"; status: "COMPLETED" | "FAILED" | "TERMINATED" }
  | { kind: "switch"; on: "a" | "z"; a: Shape[]; otherwise: Shape[] }
  | { kind: "fork"; branches: Shape[][] }
  | { kind: "sub"; tasks: Shape[]; optional: boolean };

const luck = fc.oneof(
  { weight: 12, arbitrary: fc.constant<Luck>("good") },
  { weight: 3, arbitrary: fc.constantFrom<Luck>("second-time", "bad", "terminal") },
);
const { list } = fc.letrec<{ shape: Shape; list: Shape[] }>((tie) => ({
  shape: fc.oneof(
    { maxDepth: 3, withCrossShrink: true },
    {
      weight: 6,
      arbitrary: fc.record({
        kind: fc.constant("simple" as const),
        luck,
        forgiven: fc.constantFrom("no" as const, "optional" as const, "permissive" as const),
      }),
    },
    { weight: 1, arbitrary: fc.constant<Shape>({ kind: "set" }) },
    {
      weight: 1,
      arbitrary: fc.record({
        kind: fc.constant("terminate" as const),
        status: fc.constantFrom("COMPLETED" as const, "FAILED" as const, "TERMINATED" as const),
      }),
    },
    {
      weight: 2,
      arbitrary: fc.record({
        kind: fc.constant("switch" as const),
        on: fc.constantFrom("a" as const, "z" as const),
        a: tie("list"),
        otherwise: tie("list"),
      }),
    },
    {
      weight: 3,
      arbitrary: fc.record({ kind: fc.constant("fork" as const), branches: fc.array(tie("list"), { minLength: 1, maxLength: 3 }) }),
    },
    { weight: 3, arbitrary: fc.record({ kind: fc.constant("sub" as const), tasks: tie("list"), optional: fc.boolean() }) },
  ),
  list: fc.array(tie("shape"), { maxLength: 3 }),
}));

class Writer {
  readonly luck = new Map<string, Luck>();
  #count = 0;

  tasks(shapes: readonly Shape[]): object[] {
    return shapes.flatMap((shape) => this.#task(shape, `${shape.kind}${this.#count++}`));
  }

  #task(shape: Shape, name: string): object[] {
    switch (shape.kind) {
      case "simple": {
        this.luck.set(name, shape.luck);
        const forgiven = { optional: shape.forgiven === "optional", permissive: shape.forgiven === "permissive" };
        return [simple("work", { taskReferenceName: name, inputParameters: { own: "${CPEWF_TASK_ID}" }, ...forgiven })];
      }
      case "set":
        return [operator("SET_VARIABLE", name, { inputParameters: { [name]: "${workflow.input.x}" } })];
      case "terminate":
        return [operator("TERMINATE", name, { inputParameters: { terminationStatus: shape.status, workflowOutput: { by: name } } })];
      case "switch":
        return [switchOn(name, { a: this.tasks(shape.a) }, this.tasks(shape.otherwise), shape.on)];
      case "fork": {
        const branches = shape.branches.map((branch) => this.tasks(branch));
        const ends = branches.map((branch) => (branch.at(-1) as { taskReferenceName?: string } | undefined)?.taskReferenceName);
        const join = operator("JOIN", `${name}_join`, { joinOn: ends.filter((end) => end !== undefined) });
        return [operator("FORK_JOIN", name, { forkTasks: branches }), join];
      }
      case "sub": {
        const workflowDefinition = {
          name: `child_${name}`,
          version: 1,
          tasks: [operator("NOOP", `${name}_begin`), ...this.tasks(shape.tasks)],
        };
        return [
          operator("SUB_WORKFLOW", name, { optional: shape.optional, subWorkflowParam: { name: `child_${name}`, workflowDefinition } }),
        ];
      }
    }
  }
}

const open = new Set(["SCHEDULED", "IN_PROGRESS"]);
const endings: { [status: string]: string } = { COMPLETED: "COMPLETED", FAILED: "FAILED", TERMINATED: "CANCELED", TIMED_OUT: "TIMED_OUT" };

/** Does the work of one run until it ends. `disturb` may replace the server before each task. */
async function play(
  server: ConductorServer,
  id: string,
  luck: ReadonlyMap<string, Luck>,
  disturb: (server: ConductorServer, round: number) => Promise<ConductorServer>,
): Promise<ConductorServer> {
  let c = server;
  const handedOut = new Set<string>();
  for (let round = 0; round < 300; round++) {
    c = await disturb(c, round);
    const task = await c.poll("work");
    if (task === undefined) return c;
    expect(handedOut.has(task.taskId)).toBe(false);
    handedOut.add(task.taskId);
    expect(task.inputData).toEqual({ own: task.taskId });
    const chance = luck.get(task.referenceTaskName);
    const failed = chance === "bad" || (chance === "second-time" && task.retryCount === 0);
    const status = chance === "terminal" ? "FAILED_WITH_TERMINAL_ERROR" : failed ? "FAILED" : "COMPLETED";
    await c.update(task, { status, output: { by: task.referenceTaskName }, ...(status === "COMPLETED" ? {} : { reason: "no luck" }) });
  }
  throw new Error(`Run ${id} does not end.`);
}

/** The visible state of a run and its child runs, without its own id. Fails the test when the state is inconsistent. */
async function seen(c: ConductorServer, id: string, root = id): Promise<object> {
  const run = await c.run(id);
  expect(["COMPLETED", "FAILED", "TERMINATED"]).toContain(run.status);
  expect(run.tasks.filter((task) => open.has(task.status))).toEqual([]);
  expect(run.tasks.map(({ seq }) => seq)).toEqual(run.tasks.map((_, at) => at + 1));
  const latest = new Map(run.tasks.map((task) => [task.referenceTaskName, task]));
  if (run.status === "COMPLETED" && !run.tasks.some(({ taskType }) => taskType === "TERMINATE")) {
    for (const task of latest.values()) expect(["COMPLETED", "COMPLETED_WITH_ERRORS"]).toContain(task.status);
  }
  const children: object[] = [];
  for (const task of latest.values()) {
    if (task.taskType !== "SUB_WORKFLOW") continue;
    // Cancelled before its child had begun.
    if (task.subWorkflowId === undefined) {
      expect([task.status, task.outputData]).toEqual(["CANCELED", {}]);
      continue;
    }
    const child = await c.run(task.subWorkflowId as string);
    expect(child.parentWorkflowTaskId).toBe(task.taskId);
    // A step that was cancelled together with its run gets no notification of its child, which may have ended just before.
    if (task.status !== "COMPLETED_WITH_ERRORS" && task.status !== "CANCELED") expect(task.status).toBe(endings[child.status]);
    if (task.status === "CANCELED") expect(run.status).not.toBe("RUNNING");
    children.push(await seen(c, child.workflowId, root));
  }
  const { status, output, variables, reasonForIncompletion, failedReferenceTaskNames } = run;
  const records = run.tasks.map(recordOf);
  const shown = { status, output, variables, reasonForIncompletion, failedReferenceTaskNames, records, children };
  return JSON.parse(JSON.stringify(shown).replaceAll(root, "ID")) as object;
}

function recordOf({ referenceTaskName, status, outputData, retryCount, reasonForIncompletion }: RestRun["tasks"][number]): object {
  return { referenceTaskName, status, outputData, retryCount, reasonForIncompletion };
}

/** Two ends in parallel branches. One of them is never reached. */
const twoEnds: Shape = {
  kind: "fork",
  branches: [[{ kind: "terminate", status: "COMPLETED" }], [{ kind: "terminate", status: "COMPLETED" }]],
};

it("any definition has a consistent end, and the same end over restarts of the server", async () => {
  let [calm, shaken] = [await startConductor(), await startConductor()];
  for (const c of [calm, shaken]) await c.taskDef({ name: "work", retryCount: 1, retryDelaySeconds: 0 });
  let cases = 0;
  await fc.assert(
    fc.asyncProperty(list, fc.array(fc.nat(6), { maxLength: 2 }), async (shapes, stops) => {
      const writer = new Writer();
      const definition = { name: `w${cases++}`, tasks: [operator("NOOP", "begin"), ...writer.tasks(shapes)] };
      const start = async (c: ConductorServer) => {
        await c.workflow(definition);
        return c.start(definition.name, { input: { x: 1 } });
      };
      const [here, there] = [await start(calm), await start(shaken)];
      calm = await play(calm, here, writer.luck, async (c) => c);
      shaken = await play(shaken, there, writer.luck, async (c, round) => {
        if (!stops.includes(round)) return c;
        await c.close();
        const next = await startConductor({}, c);
        await next.settle();
        return next;
      });
      expect(await seen(shaken, there)).toEqual(await seen(calm, here));
    }),
    { numRuns: 60, examples: [[[twoEnds], []]] },
  );
}, 120_000);
