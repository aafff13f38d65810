import { describe, expect, it } from "vitest";
import { fork, openConductor, operator, simple, switchOn } from "../../../../test/support/conductor-world.ts";
import type { Json } from "../../../core/json/json.ts";

describe("SUB_WORKFLOW", () => {
  const child = (param: object, more: object = {}) => operator("SUB_WORKFLOW", "sub", { subWorkflowParam: param, ...more });
  const named = { name: "child", version: 1, tasks: [simple("ct", { inputParameters: { x: "${workflow.input.x}" } })] };

  it("[C98] ends as its child ends", async () => {
    const world = await openConductor();
    world.workflow(named);
    const start = () =>
      world.start([
        child({ name: "child" }, { inputParameters: { x: 5 } }),
        simple("after", { inputParameters: { id: "${sub.output.subWorkflowId}", r: "${sub.output.r}" } }),
      ]);
    const good = await start();
    expect(await world.record(good, "sub")).toMatchObject({
      type: "SUB_WORKFLOW",
      status: "IN_PROGRESS",
      input: { subWorkflowName: "child", subWorkflowVersion: 1, subWorkflowDefinition: null, workflowInput: { x: 5 } },
    });
    expect(JSON.parse((await world.work("ct", { output: { r: 9 } })).input)).toEqual({ x: 5 });
    const { output } = await world.record(good, "sub");
    const childId = (output as { subWorkflowId: string }).subWorkflowId;
    expect(output).toEqual({ subWorkflowId: childId, r: 9 });
    expect((await world.run(childId)).status).toBe("COMPLETED");
    expect(JSON.parse((await world.work("after")).input)).toEqual({ id: childId, r: 9 });

    const bad = await start();
    await world.work("ct", { error: "no", terminal: true });
    const failed = await world.record(bad, "sub");
    const failedId = (failed.output as { subWorkflowId: string }).subWorkflowId;
    expect(failed).toMatchObject({
      status: "FAILED",
      reason: `Sub workflow child.1/${failedId} failure reason: ${(await world.run(failedId)).error}`,
    });
    expect(await world.run(bad)).toMatchObject({ status: "FAILED", error: expect.stringContaining(`'${failed.reason}'`) });

    const stopped = await start();
    const running = (await world.record(stopped, "sub")).output as { subWorkflowId: string };
    await world.runs.cancel(running.subWorkflowId);
    await world.settle();
    expect((await world.record(stopped, "sub")).status).toBe("CANCELED");
    expect((await world.run(stopped)).status).toBe("TERMINATED");
  });

  it("times out with its child", async () => {
    const world = await openConductor();
    world.workflow({ ...named, timeoutSeconds: 5, timeoutPolicy: "TIME_OUT_WF" });
    const id = await world.start([child({ name: "child" })]);
    await world.clock.advance(5_000);
    await world.settle();
    expect((await world.record(id, "sub")).status).toBe("TIMED_OUT");
    expect((await world.run(id)).status).toBe("TIMED_OUT");
  });

  it("[C99] selects the newest version when the version is absent or 0, else the given one", async () => {
    const world = await openConductor();
    world.workflow({ ...named, tasks: [simple("v1")] });
    world.workflow({ ...named, version: 2, tasks: [simple("v2")] });
    await world.start([child({ name: "child" })]);
    await world.start([child({ name: "child", version: 0 })]);
    await world.start([child({ name: "child", version: 1 })]);
    expect(await world.poll("v2")).toBeDefined();
    expect(await world.poll("v2")).toBeDefined();
    expect(await world.poll("v2")).toBeUndefined();
    expect(await world.poll("v1")).toBeDefined();
  });

  it("[C100] may be defined inline, by an expression, or by a name from an expression", async () => {
    const world = await openConductor();
    world.workflow(named);
    const inline = await world.start([child({ name: "inline", workflowDefinition: { ...named, name: "inline" } })]);
    expect((await world.record(inline, "sub")).input).toMatchObject({ subWorkflowVersion: null, workflowInput: {} });
    const { subWorkflowId } = (await world.record(inline, "sub")).output as { subWorkflowId: string };
    expect(JSON.parse((await world.run(subWorkflowId)).input)).toEqual({ _systemMetadata: { dynamic: true } });
    await world.work("ct");
    expect((await world.run(inline)).status).toBe("COMPLETED");
    const given = await world.start([child({ name: "x", workflowDefinition: "${workflow.input.def}" })], {
      input: { def: named as unknown as Json },
    });
    await world.work("ct");
    expect((await world.run(given)).status).toBe("COMPLETED");
    const byName = await world.start([child({ name: "${workflow.input.which}", version: "${workflow.input.v}" })], {
      input: { which: "child", v: 1 },
    });
    const child2 = (await world.record(byName, "sub")).output as { subWorkflowId: string };
    expect(JSON.parse((await world.run(child2.subWorkflowId)).input)).toEqual({});
    await world.work("ct");
    expect((await world.run(byName)).status).toBe("COMPLETED");
  });

  it("[C83] completes in a branch; when an optional one fails, the JOIN completes with errors", async () => {
    const world = await openConductor();
    world.workflow(named);
    const id = await world.start(fork("f", [[child({ name: "child" }, { optional: true })], [simple("b")]], ["sub", "b"]));
    await world.work("ct", { error: "no", terminal: true });
    await world.work("b");
    expect(await world.statuses(id)).toEqual(["f:COMPLETED", "sub:COMPLETED_WITH_ERRORS", "b:COMPLETED", "f_join:COMPLETED_WITH_ERRORS"]);
    expect((await world.run(id)).status).toBe("COMPLETED");
  });

  it("fails when the workflow does not exist, and starts a new child when the run is retried", async () => {
    const world = await openConductor();
    const id = await world.start([child({ name: "child", version: 1 })]);
    expect((await world.run(id)).status).toBe("FAILED");
    expect(await world.record(id, "sub")).toMatchObject({
      status: "FAILED",
      output: {},
      reason: "No such workflow defined. name=child, version=1",
    });
    world.workflow(named);
    await world.runs.retry(id);
    await world.settle();
    await world.work("ct", { error: "no", terminal: true });
    await world.runs.retry(id);
    await world.settle();
    await world.work("ct");
    expect((await world.run(id)).status).toBe("COMPLETED");
  });

  it("[C103] is cancelled with its parent, with the reason", async () => {
    const world = await openConductor();
    world.workflow(named);
    const id = await world.start([child({ name: "child" })]);
    const { subWorkflowId } = (await world.record(id, "sub")).output as { subWorkflowId: string };
    await world.cancel(id, "enough");
    expect(await world.run(subWorkflowId)).toMatchObject({
      status: "TERMINATED",
      error: "Parent workflow has been terminated with reason: enough",
    });
    expect(await world.poll("ct")).toBeUndefined();
  });
});

describe("TERMINATE", () => {
  const terminate = (input: object) => operator("TERMINATE", "end", { inputParameters: input });

  it("[C105] ends the run at once, with only its own output", async () => {
    const world = await openConductor();
    const done = await world.start(
      [terminate({ terminationStatus: "COMPLETED", workflowOutput: { r: "${workflow.input.x}" } }), simple("t")],
      {
        input: { x: 1 },
        outputParameters: { other: 2 },
      },
    );
    expect(await world.run(done)).toMatchObject({
      status: "COMPLETED",
      output: { r: 1 },
      error: `Workflow is COMPLETED by TERMINATE task: ${world.attemptId(done, "end")}`,
    });
    expect(await world.statuses(done)).toEqual(["end:COMPLETED"]);
    const failed = await world.start([terminate({ terminationStatus: "FAILED", terminationReason: "enough", workflowOutput: 7 })]);
    expect(await world.run(failed)).toMatchObject({ status: "FAILED", error: "enough", output: { output: 7 } });
    const inside = await world.start([switchOn("s", { a: [terminate({ terminationStatus: "TERMINATED" })] }), simple("t")], {
      input: { key: "a" },
    });
    expect(await world.run(inside)).toMatchObject({ status: "TERMINATED", output: {} });
  });

  it("cancels everything else that is open", async () => {
    const world = await openConductor();
    const id = await world.start(fork("f", [[simple("a")], [simple("b"), terminate({ terminationStatus: "COMPLETED" })]], ["a", "end"]));
    await world.work("b");
    expect(await world.statuses(id)).toEqual(["f:COMPLETED", "a:CANCELED", "b:COMPLETED", "f_join:CANCELED", "end:COMPLETED"]);
    expect((await world.run(id)).status).toBe("COMPLETED");
  });
});

describe("SET_VARIABLE, NOOP and the run's own data", () => {
  it("[C108] sets variables for later tasks, and refuses variables above the limit", async () => {
    const world = await openConductor();
    const id = await world.start(
      [
        operator("SET_VARIABLE", "set", { inputParameters: { x: "${workflow.input.x}", y: "${workflow.variables.start}" } }),
        operator("NOOP", "noop", { inputParameters: { ignored: 1 } }),
        simple("t", { inputParameters: { v: "${workflow.variables}" } }),
      ],
      { input: { x: [1] }, variables: { start: true } },
    );
    expect(JSON.parse((await world.work("t")).input)).toEqual({ v: { start: true, x: [1], y: true } });
    expect(await world.statuses(id)).toEqual(["set:COMPLETED", "noop:COMPLETED", "t:COMPLETED"]);
    expect(await world.record(id, "noop")).toMatchObject({ input: {}, output: {} });
    const large = await world.start([operator("SET_VARIABLE", "set", { inputParameters: { x: "${workflow.input.x}" } })], {
      input: { x: "y".repeat(300_000) },
    });
    expect((await world.record(large, "set")).status).toBe("FAILED_WITH_TERMINAL_ERROR");
    expect(await world.run(large)).toMatchObject({ status: "FAILED", variables: null });
  });

  it("fills in the definition's defaults for missing inputs", async () => {
    const world = await openConductor();
    await world.start([simple("t", { inputParameters: { a: "${workflow.input.a}", b: "${workflow.input.b}" } })], {
      input: { a: 1 },
      inputTemplate: { a: 9, b: 2 },
    });
    expect(JSON.parse((await world.work("t")).input)).toEqual({ a: 1, b: 2 });
  });

  it("gives the output of the last task when it has no output parameters", async () => {
    const world = await openConductor();
    const id = await world.start([simple("a"), switchOn("s", { x: [simple("b")] }, [], "x")]);
    await world.work("a", { output: { n: 1 } });
    await world.work("b", { output: { n: 2 } });
    expect(await world.run(id)).toMatchObject({ status: "COMPLETED", output: { n: 2 } });
  });

  it("reads environment variables by name, and times out as a whole", async () => {
    const world = await openConductor({ environment: { REGION: "eu" } });
    const id = await world.start([simple("t", { inputParameters: { r: "${workflow.env.REGION}" } })], {
      timeoutSeconds: 5,
      timeoutPolicy: "TIME_OUT_WF",
    });
    expect(JSON.parse((await world.poll("t"))!.input)).toEqual({ r: "eu" });
    await world.clock.advance(5_000);
    const reason = "Workflow timed out after 5 seconds. Timeout configured as 5 seconds. Timeout policy configured to TIME_OUT_WF";
    expect(await world.run(id)).toMatchObject({ status: "TIMED_OUT", error: reason });
    expect(await world.statuses(id)).toEqual(["t:CANCELED"]);
  });

  it("starts the failure workflow once, and names it in the output", async () => {
    const world = await openConductor();
    world.workflow({ name: "rescue", tasks: [simple("r", { inputParameters: { of: "${workflow.input.workflowId}" } })] });
    const id = await world.start([simple("t")], { failureWorkflow: "rescue", outputParameters: { x: 1 } });
    await world.work("t", { error: "no", terminal: true });
    const { output } = await world.run(id);
    const rescue = (output as { [key: string]: string })["conductor.failure_workflow"]!;
    expect(output).toEqual({ x: 1, "conductor.failure_workflow": rescue });
    expect(JSON.parse((await world.work("r")).input)).toEqual({ of: id });
    expect((await world.run(rescue)).status).toBe("COMPLETED");
    const cancelled = await world.start([simple("t")], { failureWorkflow: "rescue" });
    await world.runs.cancel(cancelled);
    await world.settle();
    expect(await world.poll("r")).toBeUndefined();
  });
});

describe("WAIT and HUMAN", () => {
  const wait = (input: object) => operator("WAIT", "wait", { inputParameters: input });

  it("[C114] wait for a time, or for a report", async () => {
    const world = await openConductor();
    const timed = await world.start([wait({ duration: "2 seconds" }), simple("t")]);
    await world.clock.advance(1_999);
    expect(await world.statuses(timed)).toEqual(["wait:IN_PROGRESS"]);
    await world.clock.advance(1);
    expect(await world.statuses(timed)).toEqual(["wait:COMPLETED", "t:SCHEDULED"]);
    const past = await world.start([wait({ until: "2019-01-01" }), simple("t")]);
    expect(await world.statuses(past)).toEqual(["wait:COMPLETED", "t:SCHEDULED"]);
    const signalled = await world.start([wait({}), simple("t", { inputParameters: { said: "${wait.output.said}" } })]);
    await world.clock.advance(86_400_000);
    expect(await world.statuses(signalled)).toEqual(["wait:IN_PROGRESS"]);
    await world.signal(signalled, "wait", { said: "go" });
    expect(await world.record(signalled, "t")).toMatchObject({ input: { said: "go" } });
    const both = await world.start([wait({ duration: "${workflow.input.d}" })], { input: { d: "never" } });
    expect(await world.run(both)).toMatchObject({ status: "FAILED" });
  });

  it("[C115] time out by their definition, and wait again", async () => {
    const world = await openConductor();
    await world.task({ name: "wait", timeoutSeconds: 1, responseTimeoutSeconds: 1, timeoutPolicy: "RETRY", retryCount: 1 });
    const id = await world.start([wait({}), simple("t")]);
    await world.clock.advance(1_000);
    expect(await world.record(id, "wait")).toMatchObject({ retryCount: 1 });
    await world.signal(id, "wait");
    expect((await world.record(id, "t")).status).toBe("SCHEDULED");
  });

  it("[C116] a person completes a HUMAN task by report", async () => {
    const world = await openConductor();
    const id = await world.start([operator("HUMAN", "ask"), simple("t", { inputParameters: { ok: "${ask.output.ok}" } })]);
    expect(await world.statuses(id)).toEqual(["ask:IN_PROGRESS"]);
    await world.signal(id, "ask", { ok: true });
    expect(await world.record(id, "t")).toMatchObject({ input: { ok: true } });
  });

  it("[C72] are never sent to a domain", async () => {
    const world = await openConductor();
    const id = await world.start([wait({}), simple("t")], { settings: { taskToDomain: { "*": "d" } } });
    await world.signal(id, "wait");
    expect(await world.poll("d:t")).toBeDefined();
  });
});

describe("a run that begins again", () => {
  it("gives its tasks new ids, and does not use their earlier outputs", async () => {
    const world = await openConductor();
    const input = { me: "${CPEWF_TASK_ID}", later: "${t2.output.x}" };
    const id = await world.start([simple("t1", { inputParameters: input }), simple("t2"), simple("t3", { retryCount: 0 })]);
    expect(JSON.parse((await world.work("t1")).input)).toEqual({ me: world.attemptId(id, "t1", 0), later: null });
    await world.work("t2", { output: { x: 1 } });
    await world.work("t3", { error: "no" });
    await world.runs.tell(id, { kind: "restart" });
    expect(await world.statuses(id)).toEqual(["t1:SCHEDULED"]);
    expect(JSON.parse((await world.work("t1")).input)).toEqual({ me: world.attemptId(id, "t1", 1), later: null });
    expect(await world.record(id, "t2")).toMatchObject({ status: "SCHEDULED", retryCount: 0 });
  });

  it("starts a new child", async () => {
    const world = await openConductor();
    world.workflow({ name: "child", tasks: [simple("ct")] });
    const id = await world.start([
      operator("SUB_WORKFLOW", "sub", { subWorkflowParam: { name: "child" } }),
      simple("t", { retryCount: 0 }),
    ]);
    const childId = async () => ((await world.record(id, "sub")).output as { subWorkflowId: string }).subWorkflowId;
    const first = await childId();
    await world.work("ct");
    await world.work("t", { error: "no" });
    await world.runs.tell(id, { kind: "restart" });
    await world.settle();
    expect(await childId()).not.toBe(first);
    await world.work("ct");
    await world.work("t");
    expect((await world.run(id)).status).toBe("COMPLETED");
  });
});

describe("a definition", () => {
  it("stays unchanged for open runs", async () => {
    const world = await openConductor();
    await world.task({ name: "t", retryCount: 0 });
    const id = await world.start([simple("t")]);
    await world.task({ name: "t", retryCount: 5 });
    await world.work("t", { error: "no" });
    expect((await world.run(id)).status).toBe("FAILED");
  });

  it("may have a thousand tasks, and as many branches", async () => {
    const world = await openConductor();
    const chain = Array.from({ length: 1_000 }, (_, at) => operator("NOOP", `n${at}`));
    expect((await world.run(await world.start(chain))).status).toBe("COMPLETED");
    const branches = Array.from({ length: 1_000 }, (_, at) => [operator("NOOP", `b${at}`)]);
    const wide = await world.start(
      fork(
        "f",
        branches,
        branches.map((_, at) => `b${at}`),
      ),
    );
    expect((await world.run(wide)).status).toBe("COMPLETED");
  });
});

describe("a task that starts with the first part of the one before", () => {
  it("starts while that task runs, and its run ends when both have ended", async () => {
    const world = await openConductor();
    const id = await world.start([simple("a"), simple("b", { startWhen: "FIRST_PART" })]);
    const claim = async (lane: string) => {
      const [task] = await world.board.claim({ reach: { names: [lane], labels: [] }, holder: "w", termMs: 60_000 });
      return task === undefined ? undefined : { taskId: task.id, grant: task.grant };
    };
    const source = await claim("a");
    expect(await claim("b")).toBeUndefined();
    await world.parts.put(source as { taskId: string; grant: number }, [{ uid: "1", value: "1" }]);
    await world.board.complete((await claim("b")) as { taskId: string; grant: number }, '{"b":1}');
    expect((await world.run(id)).status).toBe("RUNNING");
    await world.board.complete(source as { taskId: string; grant: number }, '{"a":1}');
    expect((await world.run(id)).status).toBe("COMPLETED");
    expect(await claim("b")).toBeUndefined();
  });

  it("must be a worker's task, and must follow one", async () => {
    const world = await openConductor();
    const refused = (tasks: object[]) => world.start(tasks as never).catch((error: Error) => error.message);
    expect(await refused([simple("a", { startWhen: "FIRST_PART" })])).toContain("Task a has startWhen FIRST_PART");
    expect(await refused([simple("a"), operator("NOOP", "n", { startWhen: "FIRST_PART" })])).toContain("expected that of work");
  });
});
