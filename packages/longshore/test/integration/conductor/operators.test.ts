import { describe, expect, it } from "vitest";
import type { Json } from "../../../src/core/json/json.ts";
import { type ConductorServer, startConductor } from "../../support/conductor-rest.ts";
import { fork, operator, simple, switchOn } from "../../support/conductor-world.ts";

const second = 1_000;

it("[C74] runs the matching case, else the default, else continues after the switch", async () => {
  const c = await startConductor();
  const withDefault = [switchOn("s", { a: [simple("ta")] }, [simple("other")]), simple("after")];
  const hit = await c.begin(withDefault, { start: { input: { key: "a" } } });
  expect(await c.statuses(hit)).toEqual(["s:COMPLETED", "ta:SCHEDULED"]);
  expect(await c.record(hit, "s")).toMatchObject({
    taskType: "SWITCH",
    inputData: { key: "a", case: "a" },
    outputData: { evaluationResult: ["a"], selectedCase: "a" },
  });
  const missed = await c.begin(withDefault, { start: { input: { key: "zzz" } } });
  expect(await c.statuses(missed)).toEqual(["s:COMPLETED", "other:SCHEDULED"]);
  expect((await c.record(missed, "s")).outputData).toMatchObject({ evaluationResult: ["zzz"] });
  const none = await c.begin([switchOn("s", { a: [simple("ta")] }), simple("after")], { start: { input: { key: "zzz" } } });
  expect(await c.statuses(none)).toEqual(["s:COMPLETED", "after:SCHEDULED"]);
  await c.work("ta");
  expect(await c.statuses(hit)).toEqual(["s:COMPLETED", "ta:COMPLETED", "after:SCHEDULED"]);
});

it("[C76] supports switches in switches, a fork in a case, and an empty case", async () => {
  const c = await startConductor();
  const inner = switchOn("inner", { x: [simple("deep")] }, [simple("shallow")], "${workflow.input.second}");
  const forked = fork("f", [[simple("left")], [simple("right")]], ["left", "right"]);
  const tasks = [switchOn("outer", { nest: [inner], fork: forked, nothing: [] }, [simple("other")]), simple("after")];
  const nested = await c.begin(tasks, { start: { input: { key: "nest", second: "x" } } });
  expect(await c.statuses(nested)).toEqual(["outer:COMPLETED", "inner:COMPLETED", "deep:SCHEDULED"]);
  await c.work("deep");
  await c.work("after");
  expect(await c.status(nested)).toBe("COMPLETED");

  const split = await c.begin(tasks, { start: { input: { key: "fork" } } });
  await c.work("left");
  expect(await c.poll("after")).toBeUndefined();
  await c.work("right");
  await c.work("after");
  expect(await c.status(split)).toBe("COMPLETED");

  const empty = await c.begin(tasks, { start: { input: { key: "nothing" } } });
  expect(await c.statuses(empty)).toEqual(["outer:COMPLETED", "after:SCHEDULED"]);
});

it("[C79] joins both branches of a fork, and passes on their outputs", async () => {
  const c = await startConductor();
  const after = simple("after", { inputParameters: { got: "${f_join.output}" } });
  const id = await c.begin([...fork("f", [[simple("l1"), simple("l2")], [simple("r")]], ["l2", "r"]), after]);
  expect(await c.statuses(id)).toEqual(["f:COMPLETED", "l1:SCHEDULED", "r:SCHEDULED", "f_join:IN_PROGRESS"]);
  expect((await c.run(id)).tasks.map((task) => task.taskType)).toEqual(["FORK", "l1", "r", "JOIN"]);
  await c.work("l1", { output: { n: 1 } });
  await c.work("l2", { output: { n: 2 } });
  expect((await c.record(id, "f_join")).status).toBe("IN_PROGRESS");
  await c.work("r", { output: { n: 3 } });
  expect(await c.record(id, "f_join")).toMatchObject({ status: "COMPLETED", outputData: { l2: { n: 2 }, r: { n: 3 } } });
  expect((await c.work("after")).inputData).toEqual({ got: { l2: { n: 2 }, r: { n: 3 } } });
  expect(await c.status(id)).toBe("COMPLETED");
});

it("[C80] [C82] cancels the other branches when one fails permanently, and starts them again on a retry", async () => {
  const c = await startConductor();
  const id = await c.begin([...fork("f", [[simple("done")], [simple("bad")], [simple("idle")]], ["done", "bad", "idle"]), simple("after")]);
  await c.work("done");
  const idle = await c.take("idle");
  await c.work("bad", { status: "FAILED_WITH_TERMINAL_ERROR", reason: "no" });
  expect(await c.status(id)).toBe("FAILED");
  const statuses = ["f:COMPLETED", "done:COMPLETED", "bad:FAILED_WITH_TERMINAL_ERROR", "idle:CANCELED", "f_join:CANCELED"];
  expect(await c.statuses(id)).toEqual(statuses);
  expect((await c.order("POST", id, "/retry")).status).toBe(204);
  expect(await c.status(id)).toBe("RUNNING");
  expect((await c.record(id, "f_join")).status).toBe("IN_PROGRESS");
  expect(await c.poll("done")).toBeUndefined();
  // A later report of the cancelled attempt's worker is accepted without an error, and changes nothing.
  await c.update(idle, { output: { stale: true } });
  const [bad, again] = [await c.take("bad"), await c.take("idle")];
  expect(again.taskId).not.toBe(idle.taskId);
  await c.update(bad);
  await c.update(again, { output: { fresh: true } });
  await c.work("after");
  expect(await c.run(id)).toMatchObject({ status: "COMPLETED" });
  expect((await c.record(id, "f_join")).outputData).toEqual({ idle: { fresh: true } });
});

it("[C81] waits for every branch when a permissive one fails, and then fails", async () => {
  const c = await startConductor();
  await c.taskDef({ name: "soft", retryCount: 0 });
  const id = await c.begin([...fork("f", [[simple("soft", { permissive: true })], [simple("hard")]], ["soft", "hard"]), simple("after")]);
  await c.work("soft", { status: "FAILED", reason: "soft reason" });
  expect(await c.status(id)).toBe("RUNNING");
  expect((await c.record(id, "f_join")).status).toBe("IN_PROGRESS");
  await c.work("hard");
  expect(await c.record(id, "f_join")).toMatchObject({ status: "FAILED", reasonForIncompletion: "soft reason" });
  expect(await c.status(id)).toBe("FAILED");
  expect(await c.poll("after")).toBeUndefined();

  const last = await c.begin([...fork("f", [[simple("soft", { permissive: true })], [simple("hard")]], ["soft", "hard"])]);
  await c.work("hard");
  await c.work("soft", { status: "FAILED", reason: "too late", output: { part: 1 } });
  expect(await c.record(last, "f_join")).toMatchObject({ status: "FAILED", reasonForIncompletion: "too late" });
});

it("[C83] completes forks in forks, and sub-workflows in branches", async () => {
  const c = await startConductor();
  await c.workflow({ name: "child", tasks: [simple("inner")] });
  await c.taskDef({ name: "inner", retryCount: 0 });
  const sub = (name: string, more: object = {}) => operator("SUB_WORKFLOW", name, { subWorkflowParam: { name: "child" }, ...more });
  const nested = fork("g", [[simple("a")], [simple("b")]], ["a", "b"]);
  const id = await c.begin([...fork("f", [nested, [sub("s")]], ["g_join", "s"])]);
  await c.work("a");
  await c.work("b");
  expect((await c.record(id, "f_join")).status).toBe("IN_PROGRESS");
  await c.work("inner", { output: { x: 1 } });
  expect(await c.record(id, "f_join")).toMatchObject({ status: "COMPLETED", outputData: { s: { x: 1 } } });
  expect(await c.status(id)).toBe("COMPLETED");

  const forgiven = await c.begin([...fork("f", [[simple("a")], [sub("s", { optional: true })]], ["a", "s"]), simple("after")]);
  await c.work("a");
  await c.work("inner", { status: "FAILED" });
  expect((await c.record(forgiven, "s")).status).toBe("COMPLETED_WITH_ERRORS");
  expect((await c.record(forgiven, "f_join")).status).toBe("COMPLETED_WITH_ERRORS");
  await c.work("after");
  expect(await c.status(forgiven)).toBe("COMPLETED");
});

it("[C84] the join does not wait for a branch that it does not name, but the run does", async () => {
  const c = await startConductor();
  const id = await c.begin([...fork("f", [[simple("named")], [simple("free")]], ["named"]), simple("after")]);
  await c.work("named");
  expect((await c.record(id, "f_join")).status).toBe("COMPLETED");
  await c.work("after");
  expect(await c.status(id)).toBe("RUNNING");
  await c.work("free");
  expect(await c.status(id)).toBe("COMPLETED");
});

const terminate = (terminationStatus: string, more: { [key: string]: Json } = {}) =>
  operator("TERMINATE", "end", { inputParameters: { terminationStatus, ...more } });

it("[C105] ends the run at a TERMINATE, with its output and reason", async () => {
  const c = await startConductor();
  await c.workflow({ name: "after_failure", tasks: [simple("mourn")] });
  const done = await c.begin([simple("t1"), terminate("COMPLETED", { workflowOutput: { from: "${t1.output.x}" } }), simple("never")], {
    outputParameters: { unused: 1 },
  });
  await c.work("t1", { output: { x: 5 } });
  const end = await c.record(done, "end");
  expect(await c.run(done)).toMatchObject({
    status: "COMPLETED",
    output: { from: 5 },
    reasonForIncompletion: `Workflow is COMPLETED by TERMINATE task: ${end.taskId}`,
  });
  expect((await c.run(done)).output).toEqual({ from: 5 });
  expect(await c.poll("mourn")).toBeUndefined();

  const failed = await c.begin([simple("t1"), terminate("FAILED", { terminationReason: "enough" })], { failureWorkflow: "after_failure" });
  await c.work("t1");
  expect(await c.run(failed)).toMatchObject({ status: "FAILED", reasonForIncompletion: "enough" });
  expect((await c.work("mourn")).workflowInstanceId).not.toBe(failed);

  const inCase = await c.begin([switchOn("s", { stop: [terminate("TERMINATED")] }), simple("never")], {
    start: { input: { key: "stop" } },
  });
  expect(await c.run(inCase)).toMatchObject({ status: "TERMINATED" });
  expect(await c.poll("never")).toBeUndefined();

  await c.workflow({ name: "child", tasks: [simple("inner")] });
  const sub = operator("SUB_WORKFLOW", "sub", { subWorkflowParam: { name: "child" } });
  const whole = await c.begin(fork("f", [[sub], [simple("t1"), terminate("COMPLETED")], [simple("idle")]], ["sub", "end", "idle"]));
  const child = await c.child(whole, "sub");
  expect(await c.status(child)).toBe("RUNNING");
  await c.work("t1");
  expect(await c.status(whole)).toBe("COMPLETED");
  expect(await c.status(child)).toBe("TERMINATED");
  expect((await c.record(whole, "sub")).status).toBe("CANCELED");
  expect((await c.record(whole, "idle")).status).toBe("CANCELED");
  expect(await c.poll("inner")).toBeUndefined();
});

it("[C108] keeps variables for later tasks, and fails permanently when they grow too large", async () => {
  const c = await startConductor();
  const set = operator("SET_VARIABLE", "set", { inputParameters: { x: "${workflow.input.x}", y: 1 } });
  const tasks = [set, simple("t", { inputParameters: { seen: "${workflow.variables.x}" } })];
  const id = await c.begin(tasks, { variables: { y: 0, z: 9 }, start: { input: { x: [1, 2] } } });
  expect((await c.take("t")).inputData).toEqual({ seen: [1, 2] });
  expect((await c.run(id)).variables).toEqual({ x: [1, 2], y: 1, z: 9 });
  const large = await c.begin(tasks, { variables: { y: 0 }, start: { input: { x: "v".repeat(256 * 1_024) } } });
  expect(await c.run(large)).toMatchObject({ status: "FAILED", variables: { y: 0 } });
  expect((await c.record(large, "set")).status).toBe("FAILED_WITH_TERMINAL_ERROR");
});

it("[C114] waits exactly for its duration, until a date, or for a report", async () => {
  const c = await startConductor();
  const wait = (inputParameters: object) => operator("WAIT", "wait", { inputParameters });
  const timed = await c.begin([wait({ duration: "2 seconds" }), simple("t")]);
  await c.clock.advance(2 * second - 1);
  expect(await c.statuses(timed)).toEqual(["wait:IN_PROGRESS"]);
  await c.clock.advance(1);
  expect(await c.statuses(timed)).toEqual(["wait:COMPLETED", "t:SCHEDULED"]);

  const past = await c.begin([wait({ until: "2019-01-01 00:00 GMT" }), simple("t")]);
  expect(await c.statuses(past)).toEqual(["wait:COMPLETED", "t:SCHEDULED"]);

  const open = await c.begin([wait({}), simple("t")]);
  await c.clock.advance(3600 * second);
  expect(await c.record(open, "wait")).toMatchObject({ status: "IN_PROGRESS", callbackAfterSeconds: 2_147_483_647 });
  await c.signal(open, "wait", { a: 1 }, "IN_PROGRESS");
  await c.signal(open, "wait", { b: 2 });
  expect(await c.record(open, "wait")).toMatchObject({ status: "COMPLETED", outputData: { a: 1, b: 2 } });

  const both = { name: "both", tasks: [wait({ duration: "2 seconds", until: "2019-01-01" })] };
  expect((await c.send("POST", "/metadata/workflow", both)).status).toBe(400);
});

it("[C115] ends a WAIT by the timeout of its task definition, and waits again", async () => {
  const c = await startConductor();
  await c.taskDef({
    name: "wait",
    retryCount: 1,
    retryDelaySeconds: 0,
    timeoutSeconds: 1,
    responseTimeoutSeconds: 1,
    timeoutPolicy: "RETRY",
  });
  const id = await c.begin([operator("WAIT", "wait"), simple("t")]);
  await c.clock.advance(second);
  const [first, again] = (await c.run(id)).tasks;
  expect(first).toMatchObject({ status: "TIMED_OUT", retried: true });
  expect(again).toMatchObject({ retryCount: 1, retriedTaskId: first?.taskId });
  await c.update(again as NonNullable<typeof again>);
  expect(await c.statuses(id)).toEqual(["wait:TIMED_OUT", "wait:COMPLETED", "t:SCHEDULED"]);
});

it("[C116] continues with a person's input", async () => {
  const c = await startConductor();
  const id = await c.begin([operator("HUMAN", "ask"), simple("t", { inputParameters: { said: "${ask.output.said}" } })]);
  const { taskId } = await c.record(id, "ask");
  expect(await c.signal(id, "ask", { said: "yes" })).toBe(taskId);
  expect((await c.take("t")).inputData).toEqual({ said: "yes" });
});

it("ends a WAIT and a HUMAN by a signal with the reference name of the task, also by an earlier signal", async () => {
  const c = await startConductor();
  const wait = operator("WAIT", "pause", { inputParameters: {} });
  const timed = operator("WAIT", "nap", { inputParameters: { duration: "1 hour" } });
  const id = await c.begin([wait, operator("HUMAN", "approve"), timed, simple("t", { inputParameters: { by: "${approve.output.by}" } })]);
  await c.server.signal(id, "approve", { by: "Ann" });
  await c.server.signal(id, "nap", "wake up");
  expect(await c.statuses(id)).toEqual(["pause:IN_PROGRESS"]);
  await c.server.signal(id, "pause");
  expect(await c.statuses(id)).toEqual(["pause:COMPLETED", "approve:COMPLETED", "nap:COMPLETED", "t:SCHEDULED"]);
  const outputs = await Promise.all(["pause", "approve", "nap"].map(async (name) => (await c.record(id, name)).outputData));
  expect(outputs).toEqual([{}, { by: "Ann" }, { result: "wake up" }]);
  expect((await c.work("t")).inputData).toEqual({ by: "Ann" });
});

it("[C117] runs a DYNAMIC task as the task that its input names, and fails without a name", async () => {
  const c = await startConductor();
  await c.taskDef({ name: "known", retryCount: 0, inputTemplate: { extra: 1 } });
  const dynamic = operator("DYNAMIC", "d", { dynamicTaskNameParam: "which", inputParameters: { which: "${workflow.input.which}" } });
  const id = await c.begin([dynamic, simple("after")], { start: { input: { which: "known" } } });
  const task = await c.take("known");
  expect(task).toMatchObject({ taskType: "known", taskDefName: "known", inputData: { which: "known", extra: 1 } });
  await c.update(task);
  expect(await c.statuses(id)).toEqual(["d:COMPLETED", "after:SCHEDULED"]);
  const nameless = await c.begin([dynamic], { start: { input: {} } });
  expect(await c.run(nameless)).toMatchObject({ status: "FAILED" });
  expect((await c.run(nameless)).reasonForIncompletion).toMatch(/^Cannot map a dynamic task .*Parameter= which/);
  const unknown = await c.begin([dynamic], { start: { input: { which: "nobody" } } });
  // As on the real server, although its documents say otherwise: it runs, and is not retried.
  await c.work("nobody", { status: "FAILED" });
  expect(await c.run(unknown)).toMatchObject({ status: "FAILED", failedTaskNames: ["nobody"] });
});

it.each(["JOIN", "FORK_JOIN", "SUB_WORKFLOW", "DYNAMIC", "HTTP"])(
  "fails a DYNAMIC task that names the operator %s, with the reason",
  async (which) => {
    const c = await startConductor();
    const dynamic = operator("DYNAMIC", "d", { dynamicTaskNameParam: "which", inputParameters: { which: "${workflow.input.which}" } });
    const id = await c.begin([dynamic], { start: { input: { which } } });
    const reasonForIncompletion = `Cannot map a dynamic task: ${which} is an operator that this server does not start dynamically`;
    expect(await c.run(id)).toMatchObject({ status: "FAILED", reasonForIncompletion });
  },
);

describe("a DYNAMIC task that names an operator", () => {
  const named = (inputParameters: object = {}) =>
    operator("DYNAMIC", "d", { dynamicTaskNameParam: "which", inputParameters: { which: "${workflow.input.which}", ...inputParameters } });
  const begun = async (which: string, inputParameters?: object) => {
    const c = await startConductor();
    return { c, id: await c.begin([named(inputParameters), simple("after")], { start: { input: { which } } }) };
  };

  it.each(["NOOP", "SWITCH", "DECISION"])("completes at once when it is %s", async (which) => {
    const { c, id } = await begun(which);
    const { endTime } = await c.record(id, "d");
    expect(await c.record(id, "d")).toMatchObject({ taskType: which, taskDefName: which, status: "COMPLETED", inputData: { which } });
    expect(endTime).toBeGreaterThan(0);
    expect(await c.statuses(id)).toEqual(["d:COMPLETED", "after:SCHEDULED"]);
  });

  it("sets variables when it is SET_VARIABLE", async () => {
    const { c, id } = await begun("SET_VARIABLE", { v: "${workflow.input.which}" });
    expect(await c.run(id)).toMatchObject({ status: "RUNNING", variables: { which: "SET_VARIABLE", v: "SET_VARIABLE" } });
    expect(await c.statuses(id)).toEqual(["d:COMPLETED", "after:SCHEDULED"]);
  });

  it.each([
    ["COMPLETED", { workflowOutput: { a: 1 } }, { output: { a: 1 } }],
    ["FAILED", { terminationReason: "because" }, { reasonForIncompletion: "because" }],
  ])("ends the run as %s when it is TERMINATE", async (terminationStatus, given, expected) => {
    const { c, id } = await begun("TERMINATE", { terminationStatus, ...given });
    expect(await c.run(id)).toMatchObject({ status: terminationStatus, ...expected });
    expect(await c.statuses(id)).toEqual(["d:COMPLETED"]);
  });

  it.each(["WAIT", "HUMAN"])("waits for a report when it is %s", async (which) => {
    const { c, id } = await begun(which);
    expect(await c.record(id, "d")).toMatchObject({ taskType: which, status: "IN_PROGRESS" });
    expect((await c.send("POST", `/tasks/${id}/d/COMPLETED`, { x: 1 })).status).toBe(200);
    expect(await c.record(id, "d")).toMatchObject({ status: "COMPLETED", outputData: { x: 1 } });
    expect(await c.statuses(id)).toEqual(["d:COMPLETED", "after:SCHEDULED"]);
  });

  it("waits for the time that it is given when it is WAIT, also over a restart of the server and a retry of the run", async () => {
    const { c, id } = await begun("WAIT", { duration: "5 seconds" });
    await c.order("DELETE", id, "");
    await c.order("POST", id, "/retry");
    expect(await c.statuses(id)).toEqual(["d:CANCELED", "d:IN_PROGRESS"]);
    await c.close();
    const again = await startConductor({}, c);
    await again.clock.advance(5_000);
    await again.settle();
    expect(await again.statuses(id)).toEqual(["d:CANCELED", "d:COMPLETED", "after:SCHEDULED"]);
  });
});

it("[C118] signals a WAIT, at any depth", async () => {
  const c = await startConductor();
  await c.workflow({ name: "child", tasks: [operator("WAIT", "inner_wait")] });
  const own = await c.begin([operator("WAIT", "wait"), simple("t")]);
  expect((await c.send("POST", `/tasks/${own}/COMPLETED/signal`, { x: 1 })).status).toBe(200);
  expect(await c.record(own, "wait")).toMatchObject({ status: "COMPLETED", outputData: { x: 1 } });

  const sync = await c.begin([operator("WAIT", "first"), operator("WAIT", "second")]);
  const answer = await c.send("POST", `/tasks/${sync}/COMPLETED/signal/sync`, { x: 1 });
  expect(JSON.parse(answer.text)).toMatchObject({ targetWorkflowId: sync, targetWorkflowStatus: "RUNNING", signalTimeout: false });
  expect(await c.statuses(sync)).toEqual(["first:COMPLETED", "second:IN_PROGRESS"]);

  expect((await c.send("POST", "/tasks/nope/COMPLETED/signal", {})).status).toBe(404);
  expect(await c.send("POST", `/tasks/${own}/COMPLETED/signal`, {})).toMatchObject({ status: 200, text: "" });
  expect((await c.send("POST", `/tasks/${own}/COMPLETED/signal/sync`, {})).status).toBe(404);

  const parent = await c.begin([operator("SUB_WORKFLOW", "sub", { subWorkflowParam: { name: "child" } })]);
  const child = await c.child(parent, "sub");
  await c.send("POST", `/tasks/${parent}/COMPLETED/signal`, { deep: true });
  await c.settle();
  expect(await c.record(child, "inner_wait")).toMatchObject({ status: "COMPLETED", outputData: { deep: true } });
  expect(await c.status(parent)).toBe("COMPLETED");
});

async function execute(c: ConductorServer, name: string, query = "", body: object = {}) {
  return c.send("POST", `/workflow/execute/${name}/1?requestId=r1${query}`, body);
}

it("[C119] starts a run and responds when it has ended, waits, has reached a task, or takes too long", async () => {
  const c = await startConductor();
  await c.workflow({ name: "quick", tasks: [operator("NOOP", "n"), operator("SET_VARIABLE", "s", { inputParameters: { x: 1 } })] });
  await c.workflow({ name: "waits", tasks: [operator("WAIT", "wait"), simple("t")] });
  await c.workflow({ name: "works", tasks: [simple("t"), simple("u")] });
  const quick = JSON.parse((await execute(c, "quick")).text) as { [field: string]: Json };
  expect(quick).toMatchObject({ targetWorkflowStatus: "COMPLETED", status: "COMPLETED", variables: { x: 1 }, requestId: "r1" });
  const stands = JSON.parse((await execute(c, "waits")).text) as { [field: string]: Json };
  expect(stands).toMatchObject({ targetWorkflowStatus: "RUNNING", signalTimeout: false });

  const until = execute(c, "works", "&waitUntilTaskRef=t");
  let task = await c.poll("t");
  while (task === undefined) task = await c.poll("t");
  await c.update(task, { output: { done: 1 } });
  expect(JSON.parse((await until).text)).toMatchObject({ targetWorkflowStatus: "RUNNING", signalTimeout: false });

  const slow = execute(c, "works", "&waitForSeconds=2");
  while ((await c.poll("t")) === undefined);
  await c.clock.armed(2 * second);
  await c.clock.advance(2 * second);
  expect(JSON.parse((await slow).text)).toMatchObject({ targetWorkflowStatus: "RUNNING", signalTimeout: true });
});

it("[C122] supports times, nested expressions, filters, escapes and expressions in texts", async () => {
  const c = await startConductor();
  const inputParameters = {
    ended: "${a.endTime}",
    nested: "${a.output.${b.output.k}}",
    filtered: "${a.output.list[?(@.n > 1)].name}",
    escaped: "$${x}",
    text: "n is ${a.output.n} of ${workflow.input.all}!",
  };
  await c.begin([simple("a"), simple("b"), simple("t", { inputParameters })], { start: { input: { all: 3 } } });
  const list = [
    { n: 1, name: "one" },
    { n: 2, name: "two" },
  ];
  await c.work("a", { output: { n: 2, chosen: { deep: true }, list } });
  await c.work("b", { output: { k: "chosen" } });
  expect((await c.take("t")).inputData).toEqual({
    ended: c.clock.now(),
    nested: { deep: true },
    filtered: ["two"],
    escaped: "${x}",
    text: "n is 2 of 3!",
  });
});

it("ends a WAIT whose time passed while the server was down, and one that is retried after its date", async () => {
  const c = await startConductor();
  const timed = { retryCount: 1, retryDelaySeconds: 0, timeoutSeconds: 5, responseTimeoutSeconds: 5, timeoutPolicy: "RETRY" };
  await c.taskDef({ name: "late", ...timed });
  const plain = await c.begin([operator("WAIT", "wait", { inputParameters: { duration: "10 seconds" } }), simple("t")]);
  const date = new Date(c.clock.now() + 60 * second).toISOString().slice(0, 16).replace("T", " ");
  const dated = await c.begin([operator("WAIT", "late", { inputParameters: { until: `${date} UTC` } }), simple("t")]);
  await c.close();
  c.clock.jump(120 * second);
  const again = await startConductor({}, c);
  await again.clock.advance(1);
  expect(await again.statuses(plain)).toEqual(["wait:COMPLETED", "t:SCHEDULED"]);
  expect(await again.statuses(dated)).toEqual(["late:TIMED_OUT", "late:COMPLETED", "t:SCHEDULED"]);
});
