import { describe, expect, it } from "vitest";
import { openConductor, operator, simple } from "../../../../test/support/conductor-world.ts";

describe("SIMPLE tasks", () => {
  it("[C33] run one after the other, read their own id and outputs of earlier tasks, and set the output of the run", async () => {
    const world = await openConductor();
    const id = await world.start(
      [
        simple("t1", { inputParameters: { p1: "${workflow.input.a}", p3: "${CPEWF_TASK_ID}", k: null } }),
        simple("t2", { inputParameters: { tp2: "${t1.output.op}" } }),
      ],
      { input: { a: 7 }, outputParameters: { o1: "${t2.output.r}", o2: "${t1.taskType}", o3: "${workflow.workflowType}" } },
    );
    expect(JSON.parse((await world.work("t1", { output: { op: [1] } })).input)).toEqual({ p1: 7, p3: world.attemptId(id, "t1"), k: null });
    expect(JSON.parse((await world.work("t2", { output: { r: "done" } })).input)).toEqual({ tp2: [1] });
    expect(await world.run(id)).toMatchObject({ status: "COMPLETED", output: { o1: "done", o2: "t1", o3: "w" } });
    expect(await world.statuses(id)).toEqual(["t1:COMPLETED", "t2:COMPLETED"]);
  });

  it("[C34] end the run when they fail permanently, with Conductor's reason and the computed output", async () => {
    const world = await openConductor();
    const id = await world.start([simple("t1"), simple("t2")], { outputParameters: { x: "${t1.status}" } });
    await world.work("t1", { error: "bad input", terminal: true });
    expect(await world.run(id)).toMatchObject({
      status: "FAILED",
      error: `Task ${world.attemptId(id, "t1")} failed with status: FAILED and reason: 'bad input'`,
      output: { x: "FAILED_WITH_TERMINAL_ERROR" },
    });
    expect(await world.statuses(id)).toEqual(["t1:FAILED_WITH_TERMINAL_ERROR"]);
  });

  it("are retried as their definition says, with an input that is computed again", async () => {
    const world = await openConductor();
    await world.task({ name: "t1", retryCount: 1, retryDelaySeconds: 2 });
    const id = await world.start([simple("t1", { inputParameters: { me: "${CPEWF_TASK_ID}" } })]);
    await world.work("t1", { error: "no" });
    await world.clock.advance(1_999);
    expect(await world.poll("t1")).toBeUndefined();
    await world.clock.advance(1);
    const second = await world.work("t1", { output: { ok: true } });
    expect(JSON.parse(second.input)).toEqual({ me: world.attemptId(id, "t1", 1) });
    expect(await world.run(id)).toMatchObject({ status: "COMPLETED", output: { ok: true } });
    expect(await world.record(id, "t1")).toMatchObject({ retryCount: 1 });
  });

  it("[C48] get the defaults of their definition for inputs that are missing or null", async () => {
    for (const [given, expected] of [
      [{ a: null }, 1],
      [{ a: 2 }, 2],
      [{}, 1],
      [{ a: "${workflow.input.none}" }, 1],
    ] as const) {
      const world = await openConductor();
      await world.task({ name: "t1", inputTemplate: { a: 1 } });
      await world.start([simple("t1", { inputParameters: given })]);
      expect(JSON.parse((await world.poll("t1"))!.input)).toEqual({ a: expected });
    }
  });

  it("are the only tasks that get these defaults: tasks that the server performs have only the inputs of the workflow", async () => {
    const world = await openConductor();
    const inputTemplate = { extra: "T", a: 1, duration: "9 hours", terminationReason: "theirs" };
    for (const name of ["set", "wait", "human", "end"]) await world.task({ name, inputTemplate });
    const given = { inputParameters: { a: null } };
    const id = await world.start([operator("SET_VARIABLE", "set", given), operator("HUMAN", "human", given)]);
    expect(await world.record(id, "set")).toMatchObject({ status: "COMPLETED", input: { a: null } });
    expect((await world.record(id, "human")).input).toEqual({ a: null });
    expect((await world.run(id)).variables).toBe('{"a":null}');
    const waiting = await world.start([operator("WAIT", "wait", given)]);
    expect((await world.record(waiting, "wait")).input).toEqual({ a: null });
    const ended = await world.start([operator("TERMINATE", "end", { inputParameters: { terminationStatus: "FAILED" } })]);
    expect((await world.record(ended, "end")).input).toEqual({ terminationStatus: "FAILED" });
    expect((await world.run(ended)).status).toBe("FAILED");
  });

  it("[C54] prefer the retryCount of the workflow to that of their definition", async () => {
    const world = await openConductor();
    await world.task({ name: "t1", retryCount: 5, retryDelaySeconds: 0 });
    const id = await world.start([simple("t1", { retryCount: 0 })]);
    await world.work("t1", { error: "no" });
    expect((await world.run(id)).status).toBe("FAILED");
  });

  it("[C55] that are optional may fail, and the run completes", async () => {
    const world = await openConductor();
    await world.task({ name: "t1", retryCount: 1, retryDelaySeconds: 0 });
    const id = await world.start([simple("t1", { optional: true }), simple("t2")]);
    await world.work("t1", { error: "no" });
    await world.work("t1", { error: "no" });
    expect(await world.statuses(id)).toEqual(["t1:COMPLETED_WITH_ERRORS", "t2:SCHEDULED"]);
    await world.work("t2");
    expect((await world.run(id)).status).toBe("COMPLETED");
  });

  it("[C56] that are permissive and fail let the rest run, and the run fails at its end with all reasons", async () => {
    const world = await openConductor();
    const permissive = { permissive: true, retryCount: 0 };
    const id = await world.start([simple("t1", permissive), simple("t2", permissive), simple("t3")]);
    await world.work("t1", { error: "one" });
    await world.work("t2", { error: "two" });
    expect(await world.statuses(id)).toEqual(["t1:FAILED", "t2:FAILED", "t3:SCHEDULED"]);
    await world.work("t3");
    const said = (ref: string, why: string) => `Task ${world.attemptId(id, ref)} failed with status: FAILED and reason: '${why}'`;
    expect(await world.run(id)).toMatchObject({ status: "FAILED", error: `${said("t1", "one")}. ${said("t2", "two")}` });
  });

  it("[C57] that are both optional and permissive behave as optional", async () => {
    const world = await openConductor();
    const id = await world.start([simple("t1", { optional: true, permissive: true, retryCount: 0 })]);
    await world.work("t1", { error: "no" });
    expect((await world.run(id)).status).toBe("COMPLETED");
    expect(await world.statuses(id)).toEqual(["t1:COMPLETED_WITH_ERRORS"]);
  });

  it("[C59] that time out end the run at once when the policy requires it", async () => {
    const world = await openConductor();
    await world.task({ name: "t1", timeoutSeconds: 1, responseTimeoutSeconds: 1, timeoutPolicy: "TIME_OUT_WF", retryCount: 3 });
    const id = await world.start([simple("t1"), simple("t2")]);
    await world.poll("t1");
    await world.clock.advance(999);
    expect(await world.statuses(id)).toEqual(["t1:IN_PROGRESS"]);
    await world.clock.advance(1);
    const reason = "Task timed out after 1 seconds. Timeout configured as 1 seconds. Timeout policy configured to TIME_OUT_WF";
    expect(await world.record(id, "t1")).toMatchObject({ status: "TIMED_OUT", retryCount: 0, reason });
    expect(await world.run(id)).toMatchObject({ status: "TIMED_OUT", error: expect.stringContaining(reason) });
  });

  it("[C58] that time out are retried when the policy requires it, until the run times out", async () => {
    const world = await openConductor();
    await world.task({
      name: "t1",
      timeoutSeconds: 1,
      responseTimeoutSeconds: 1,
      timeoutPolicy: "RETRY",
      retryCount: 1,
      retryDelaySeconds: 0,
    });
    const id = await world.start([simple("t1")]);
    for (const retryCount of [0, 1]) {
      await world.poll("t1");
      expect(await world.record(id, "t1")).toMatchObject({ status: "IN_PROGRESS", retryCount });
      await world.clock.advance(1_000);
    }
    expect(await world.record(id, "t1")).toMatchObject({ status: "TIMED_OUT", retryCount: 1 });
    expect((await world.run(id)).status).toBe("TIMED_OUT");
  });

  it("[C37] whose worker sends nothing are given to another worker", async () => {
    const world = await openConductor();
    await world.task({ name: "t1", responseTimeoutSeconds: 10, retryCount: 1, retryDelaySeconds: 0 });
    const id = await world.start([simple("t1")]);
    await world.poll("t1");
    await world.clock.advance(9_999);
    expect(await world.poll("t1")).toBeUndefined();
    await world.clock.advance(1);
    expect(await world.record(id, "t1")).toMatchObject({ status: "SCHEDULED", retryCount: 1 });
    await world.work("t1");
    expect((await world.run(id)).status).toBe("COMPLETED");
  });

  it("[C52] are not retried when the time for all attempts is over", async () => {
    const world = await openConductor();
    await world.task({ name: "t1", totalTimeoutSeconds: 5, retryCount: 9, retryDelaySeconds: 2, timeoutPolicy: "RETRY" });
    const id = await world.start([simple("t1")]);
    for (let tries = 0; tries < 3; tries++) {
      await world.work("t1", { error: "no" });
      await world.clock.advance(2_000);
    }
    expect((await world.run(id)).status).toBe("TIMED_OUT");
    expect((await world.record(id, "t1")).retryCount).toBeLessThan(4);
    const held = await world.start([simple("t1")]);
    await world.poll("t1");
    await world.clock.advance(5_000);
    expect((await world.run(held)).status).toBe("TIMED_OUT");
  });

  it("[C53] with the policy ALERT_ONLY are not retried when the time for all attempts is over", async () => {
    const world = await openConductor();
    await world.task({ name: "t1", totalTimeoutSeconds: 5, retryCount: 9, retryDelaySeconds: 0, timeoutPolicy: "ALERT_ONLY" });
    const id = await world.start([simple("t1")]);
    const task = await world.poll("t1");
    await world.clock.advance(5_000);
    expect((await world.run(id)).status).toBe("RUNNING");
    await world.board.fail({ taskId: task!.id, grant: task!.grant }, { error: "no", retryable: true });
    expect((await world.run(id)).status).toBe("FAILED");
  });

  it("[C60] that no worker polls in time end the run", async () => {
    const world = await openConductor();
    await world.task({ name: "t1", pollTimeoutSeconds: 3, timeoutPolicy: "TIME_OUT_WF" });
    const id = await world.start([simple("t1")]);
    await world.clock.advance(2_999);
    expect((await world.run(id)).status).toBe("RUNNING");
    await world.clock.advance(1);
    expect((await world.run(id)).status).toBe("TIMED_OUT");
    expect((await world.record(id, "t1")).reason).toMatch(/^Task poll timed out after 3 seconds\./);
  });

  it("[C70] with a start delay cannot be polled before it ends", async () => {
    const world = await openConductor();
    await world.start([simple("t1", { startDelay: 3 })]);
    await world.clock.advance(2_999);
    expect(await world.poll("t1")).toBeUndefined();
    await world.clock.advance(1);
    expect(await world.poll("t1")).toBeDefined();
  });

  it("are queued in the run's first domain that a worker polls, else in the last domain", async () => {
    const world = await openConductor();
    await world.start([simple("t1")], { settings: { taskToDomain: { t1: "d1,NO_DOMAIN" } } });
    expect(await world.poll("d1:t1")).toBeUndefined();
    expect(await world.poll("t1")).toBeDefined();
    await world.start([simple("t1")], { settings: { taskToDomain: { "*": "d1,NO_DOMAIN" } } });
    expect(await world.poll("t1")).toBeUndefined();
    expect(await world.poll("d1:t1")).toBeDefined();
    await world.start([simple("t1")], { settings: { taskToDomain: { "*": "other", t1: "d2" } } });
    expect(await world.poll("d2:t1")).toBeDefined();
  });
});
