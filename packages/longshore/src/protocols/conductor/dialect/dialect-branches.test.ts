// Operators that choose or split the path of a run: DYNAMIC, SWITCH, FORK_JOIN and JOIN.

import { describe, expect, it } from "vitest";
import { fork, openConductor, operator, simple, switchOn } from "../../../../test/support/conductor-world.ts";
import type { JsonObject } from "../../../core/json/json.ts";

describe("DYNAMIC and user-defined tasks", () => {
  it("keep their record when a worker reports the same error text as for a mistake in the definition", async () => {
    const world = await openConductor();
    const id = await world.start([simple("t1")]);
    await world.work("t1", { error: "No evaluator registered for type: magic", terminal: true });
    expect((await world.run(id)).error).toMatch(
      /^Task \S+ failed with status: FAILED and reason: 'No evaluator registered for type: magic'$/,
    );
    expect(await world.records(id)).toHaveLength(1);
  });

  const dynamic = operator("DYNAMIC", "d", { dynamicTaskNameParam: "which", inputParameters: { which: "${workflow.input.which}", x: 1 } });

  it("run as the task that the input names; without retries when this task is not registered", async () => {
    const world = await openConductor();
    await world.task({ name: "real", retryCount: 0, inputTemplate: { y: 2 } });
    const id = await world.start([dynamic], { input: { which: "real" } });
    expect(JSON.parse((await world.work("real", { output: { r: 1 } })).input)).toEqual({ which: "real", x: 1, y: 2 });
    expect(await world.run(id)).toMatchObject({ status: "COMPLETED", output: { r: 1 } });
    expect(await world.record(id, "d")).toMatchObject({ type: "real" });

    const missing = await world.start([dynamic]);
    expect(await world.run(missing)).toMatchObject({
      status: "FAILED",
      error: "Cannot map a dynamic task based on the parameter and input. Parameter= which, input= {which=null, x=1}",
    });
    expect(await world.records(missing)).toEqual([]);
    const unknown = await world.start([dynamic], { input: { which: "ghost" } });
    await world.work("ghost", { error: "no" });
    expect((await world.run(unknown)).status).toBe("FAILED");
  });

  it("have the timeouts and retries of the definition that is chosen at run time", async () => {
    const world = await openConductor();
    await world.task({ name: "real", retryCount: 1, retryDelaySeconds: 0, pollTimeoutSeconds: 2, timeoutPolicy: "RETRY" });
    const id = await world.start([dynamic], { input: { which: "real" } });
    await world.clock.advance(2_000);
    expect(await world.record(id, "d")).toMatchObject({ status: "SCHEDULED", retryCount: 1 });
    await world.clock.advance(2_000);
    expect(await world.run(id)).toMatchObject({ status: "TIMED_OUT" });
  });

  it("with a user-defined type are in the queue of their type and use the definition of their name", async () => {
    const world = await openConductor();
    await world.task({ name: "mine" });
    const id = await world.start([operator("my_queue", "mine")]);
    expect(await world.poll("mine")).toBeUndefined();
    await world.work("my_queue");
    expect(await world.record(id, "mine")).toMatchObject({ type: "my_queue", status: "COMPLETED" });
    const without = await world.start([operator("my_queue", "nobody")]);
    await world.work("my_queue", { error: "no" });
    expect((await world.run(without)).status).toBe("FAILED");
  });
});

describe("SWITCH", () => {
  const chosen = async (cases: { [key: string]: object[] }, defaultCase: object[] | undefined, input: JsonObject) => {
    const world = await openConductor();
    const id = await world.start([switchOn("s", cases, defaultCase), simple("after")], { input });
    return { world, id, statuses: await world.statuses(id) };
  };

  it("[C74] runs the matching case, else the default, else continues after itself", async () => {
    const cases = { a: [simple("ta"), simple("ta2")], b: [simple("tb")] };
    const hit = await chosen(cases, [simple("td")], { key: "a" });
    expect(hit.statuses).toEqual(["s:COMPLETED", "ta:SCHEDULED"]);
    expect(await hit.world.record(hit.id, "s")).toMatchObject({
      type: "SWITCH",
      input: { key: "a", case: "a", hasChildren: "true" },
      output: { evaluationResult: ["a"], selectedCase: "a" },
    });
    await hit.world.work("ta");
    await hit.world.work("ta2");
    await hit.world.work("after");
    expect((await hit.world.run(hit.id)).status).toBe("COMPLETED");

    const missed = await chosen(cases, [simple("td")], { key: "zzz" });
    expect(missed.statuses).toEqual(["s:COMPLETED", "td:SCHEDULED"]);
    expect((await missed.world.record(missed.id, "s")).output).toEqual({ evaluationResult: ["zzz"], selectedCase: "zzz" });
    expect((await chosen(cases, undefined, { key: "zzz" })).statuses).toEqual(["s:COMPLETED", "after:SCHEDULED"]);
  });

  it("converts any value to text", async () => {
    const cases = { null: [simple("n")], true: [simple("t")], "1": [simple("one")], "[a, {b=2}]": [simple("list")] };
    expect((await chosen(cases, undefined, {})).statuses).toContain("n:SCHEDULED");
    expect((await chosen(cases, undefined, { key: true })).statuses).toContain("t:SCHEDULED");
    expect((await chosen(cases, undefined, { key: 1 })).statuses).toContain("one:SCHEDULED");
    expect((await chosen(cases, undefined, { key: ["a", { b: 2 }] })).statuses).toContain("list:SCHEDULED");
  });

  it("[C76] may have an empty case, may contain other switches, and may contain forks", async () => {
    expect((await chosen({ a: [] }, [simple("td")], { key: "a" })).statuses).toEqual(["s:COMPLETED", "after:SCHEDULED"]);
    const nested = { a: [switchOn("inner", { a: [simple("deep")] }), simple("inside")] };
    const { world, id } = await chosen(nested, undefined, { key: "a" });
    await world.work("deep");
    await world.work("inside");
    expect(await world.statuses(id)).toEqual(["s:COMPLETED", "inner:COMPLETED", "deep:COMPLETED", "inside:COMPLETED", "after:SCHEDULED"]);
    const forked = await chosen({ a: fork("f", [[simple("x")], [simple("y")]], ["x", "y"]) }, undefined, { key: "a" });
    await forked.world.work("x");
    await forked.world.work("y");
    expect(await forked.world.statuses(forked.id)).toEqual([
      "s:COMPLETED",
      "f:COMPLETED",
      "x:COMPLETED",
      "y:COMPLETED",
      "f_join:COMPLETED",
      "after:SCHEDULED",
    ]);
  });

  it("ends the run when its evaluator is unknown", async () => {
    const world = await openConductor();
    const strange = operator("SWITCH", "s", { evaluatorType: "magic", expression: "x", decisionCases: { a: [] } });
    expect(await world.run(await world.start([strange]))).toMatchObject({
      status: "FAILED",
      error: "No evaluator registered for type: magic",
    });
  });
});

describe("FORK_JOIN and JOIN", () => {
  it("[C79] starts every branch, and joins them when all have ended", async () => {
    const world = await openConductor();
    const next = simple("next", { inputParameters: { all: "${f_join.output}" } });
    const id = await world.start([...fork("f", [[simple("a"), simple("a2")], [simple("b")]], ["a2", "b"]), next]);
    expect(await world.statuses(id)).toEqual(["f:COMPLETED", "a:SCHEDULED", "b:SCHEDULED", "f_join:IN_PROGRESS"]);
    expect(await world.record(id, "f")).toMatchObject({ type: "FORK" });
    expect(await world.record(id, "f_join")).toMatchObject({ type: "JOIN", input: { joinOn: ["a2", "b"] } });
    await world.work("a");
    await world.work("b", { output: { n: 2 } });
    expect((await world.record(id, "f_join")).status).toBe("IN_PROGRESS");
    await world.work("a2", { output: { n: 1 } });
    expect(await world.record(id, "f_join")).toMatchObject({ status: "COMPLETED", output: { a2: { n: 1 }, b: { n: 2 } } });
    expect(JSON.parse((await world.work("next")).input)).toEqual({ all: { a2: { n: 1 }, b: { n: 2 } } });
    expect((await world.run(id)).status).toBe("COMPLETED");
  });

  it("[C80] ends the run when a branch fails, and cancels the rest", async () => {
    const world = await openConductor();
    const id = await world.start(fork("f", [[simple("a")], [simple("b")]], ["a", "b"]));
    await world.work("a", { error: "no", terminal: true });
    expect((await world.run(id)).status).toBe("FAILED");
    expect(await world.statuses(id)).toEqual(["f:COMPLETED", "a:FAILED_WITH_TERMINAL_ERROR", "b:CANCELED", "f_join:CANCELED"]);
  });

  it("[C81] fails the JOIN of a permissive branch only when all branches have ended", async () => {
    const world = await openConductor();
    const id = await world.start(fork("f", [[simple("a", { permissive: true, retryCount: 0 })], [simple("b")]], ["a", "b"]));
    await world.work("a", { error: "no" });
    expect((await world.record(id, "f_join")).status).toBe("IN_PROGRESS");
    await world.work("b", { output: { n: 1 } });
    expect(await world.record(id, "f_join")).toMatchObject({ status: "FAILED", reason: "no", output: {} });
    expect((await world.run(id)).status).toBe("FAILED");
  });

  it("[C82] continues where it failed when the run is retried", async () => {
    const world = await openConductor();
    const id = await world.start([...fork("f", [[simple("a")], [simple("b")], [simple("c")]], ["a", "b", "c"]), simple("next")]);
    await world.work("c");
    await world.work("a", { error: "no", terminal: true });
    await world.runs.retry(id);
    expect((await world.statuses(id)).filter((one) => !one.startsWith("f:")).sort()).toEqual([
      "a:SCHEDULED",
      "b:SCHEDULED",
      "c:COMPLETED",
      "f_join:IN_PROGRESS",
    ]);
    await world.work("a");
    await world.work("b");
    await world.work("next");
    expect((await world.run(id)).status).toBe("COMPLETED");
  });

  it("completes with errors when an optional branch fails as the last one", async () => {
    const world = await openConductor();
    const id = await world.start([
      ...fork("f", [[simple("a", { optional: true, retryCount: 0 })], [simple("b")]], ["a", "b"]),
      simple("c", { inputParameters: { a: "${a.status}", x: "${a.output.x}" } }),
    ]);
    await world.work("b");
    await world.poll("a");
    await world.report(id, "a", "FAILED", { x: 1 });
    expect(await world.record(id, "f_join")).toMatchObject({ status: "COMPLETED_WITH_ERRORS", output: { a: { x: 1 } } });
    expect((await world.record(id, "c")).input).toEqual({ a: "COMPLETED_WITH_ERRORS", x: 1 });
  });

  it("completes with errors when an optional branch failed", async () => {
    const world = await openConductor();
    const id = await world.start(fork("f", [[simple("a", { optional: true, retryCount: 0 })], [simple("b")]], ["a", "b"]));
    await world.work("a", { error: "no" });
    await world.work("b");
    expect(await world.record(id, "f_join")).toMatchObject({
      status: "COMPLETED_WITH_ERRORS",
      reason: expect.stringMatching(/^a\/.* completed with errors$/),
    });
    expect((await world.run(id)).status).toBe("COMPLETED");
  });

  it("[C84] waits only for what it joins, while the run waits for everything", async () => {
    const world = await openConductor();
    const id = await world.start([...fork("f", [[simple("a")], [simple("slow")]], ["a"]), simple("next")]);
    await world.work("a");
    await world.work("next", { output: { last: true } });
    expect((await world.run(id)).status).toBe("RUNNING");
    await world.work("slow");
    expect((await world.run(id)).status).toBe("COMPLETED");
  });

  it("joins at once when it joins nothing", async () => {
    const world = await openConductor();
    const id = await world.start([...fork("f", [[simple("a")]], []), simple("next")]);
    expect(await world.statuses(id)).toEqual(["f:COMPLETED", "a:SCHEDULED", "f_join:COMPLETED", "next:SCHEDULED"]);
  });

  it("joins on a SWITCH as soon as it has chosen", async () => {
    const world = await openConductor();
    const id = await world.start(fork("f", [[switchOn("s", { a: [simple("slow")] })], [simple("b")]], ["s", "b"]), { input: { key: "a" } });
    await world.work("b");
    expect(await world.statuses(id)).toEqual(["f:COMPLETED", "s:COMPLETED", "slow:SCHEDULED", "b:COMPLETED", "f_join:COMPLETED"]);
    await world.work("slow");
    expect((await world.run(id)).status).toBe("COMPLETED");
  });

  it("can be nested, and a JOIN is valid without a fork before it", async () => {
    const world = await openConductor();
    const inner = fork("in", [[simple("x")], [simple("y")]], ["x", "y"]);
    const id = await world.start([...fork("out", [[...inner], [simple("z")]], ["in_join", "z"]), simple("last")]);
    for (const name of ["x", "y", "z", "last"]) await world.work(name);
    expect((await world.run(id)).status).toBe("COMPLETED");
    const alone = await world.start([simple("a"), operator("JOIN", "j", { joinOn: ["a"] }), simple("b")]);
    await world.work("a", { output: { n: 1 } });
    expect(await world.statuses(alone)).toEqual(["a:COMPLETED", "j:COMPLETED", "b:SCHEDULED"]);
  });

  it("is refused when it is not followed by a JOIN", async () => {
    const world = await openConductor();
    const id = await world.start([operator("FORK_JOIN", "f", { forkTasks: [[simple("a")]] }), simple("b")]);
    expect((await world.run(id)).error).toBe("Fork task definition is not followed by a join task.  Check the blueprint");
    expect(await world.records(id)).toEqual([]);
  });
});

it("an EXCLUSIVE_JOIN none of whose tasks has run waits for a client, and the checker accepts that", async () => {
  const world = await openConductor();
  const choose = switchOn("choose", { a: [simple("x")], b: [simple("y")] }, []);
  const id = await world.start([choose, operator("EXCLUSIVE_JOIN", "join", { joinOn: ["x", "y"] }), simple("after")]);
  expect(await world.statuses(id)).toEqual(["choose:COMPLETED", "join:IN_PROGRESS"]);
  expect(world.findings()).toEqual([]);
  await world.report(id, "join", "COMPLETED");
  await world.work("after");
  expect((await world.run(id)).status).toBe("COMPLETED");
});
