import { expect, it } from "vitest";
import type { TestClock } from "../../../src/testing/clock.ts";
import { Faults, type FaultyServer, startFaulty } from "../../support/conductor-faulty.ts";
import type { RestRun, RestTask } from "../../support/conductor-rest.ts";
import { fork, operator, simple, switchOn } from "../../support/conductor-world.ts";

const second = 1_000;
/** Longer than the pause of a store after a failed write. */
const restMs = 5 * second;

/** A request whose write fails is refused as transient, changes nothing, and succeeds afterwards. */
async function refusedThenTaken(c: FaultyServer, method: string, path: string, body: unknown, unchanged: () => Promise<unknown>) {
  const before = await unchanged();
  c.faults.failNext = 1;
  const refused = await c.send(method, path, body);
  expect(refused.status).toBe(503);
  expect(JSON.parse(refused.text)).toMatchObject({ status: 503, retryable: true });
  await c.settle();
  expect(await unchanged()).toEqual(before);
  c.faults.failNext = 0;
  await c.clock.advance(restMs);
  const taken = await c.send(method, path, body);
  expect(taken.status).toBeLessThan(300);
  await c.settle();
}

it("[C124] refuses what it cannot write as transient, and leaves no incomplete changes", async () => {
  const c = await startFaulty();
  await c.workflow({ name: "w", tasks: [simple("a"), simple("b")] });
  const running = () => c.read<string[]>("/workflow/running/w?version=1");
  await refusedThenTaken(c, "POST", "/workflow", { name: "w" }, running);
  const [id] = await running();
  const state = async () => [await c.status(id as string), await c.statuses(id as string)];

  c.faults.failNext = 1;
  const poll = await c.send("GET", "/tasks/poll/batch/a?count=1&timeout=0&workerid=w1");
  expect([poll.status, poll.text === "[]" || poll.status === 503]).toEqual([poll.status, true]);
  expect(await state()).toEqual(["RUNNING", ["a:SCHEDULED"]]);
  await c.clock.advance(restMs);

  const a = await c.take("a");
  await refusedThenTaken(c, "POST", "/tasks", c.resultOf(a, { status: "IN_PROGRESS", callback: 0 }), state);
  await refusedThenTaken(c, "POST", "/tasks", c.resultOf(await c.take("a"), { output: { x: 1 } }), state);
  expect(await state()).toEqual(["RUNNING", ["a:COMPLETED", "b:SCHEDULED"]]);
  await refusedThenTaken(c, "PUT", `/workflow/${id}/pause`, undefined, state);
  await refusedThenTaken(c, "PUT", `/workflow/${id}/resume`, undefined, state);
  await refusedThenTaken(c, "DELETE", `/workflow/${id}?reason=r`, undefined, state);
  expect(await state()).toEqual(["TERMINATED", ["a:COMPLETED", "b:CANCELED"]]);
});

it("[C125] has every scheduled task in the queue after a crash before any response", async () => {
  const first = await startFaulty();
  const earlier = await first.begin([simple("a"), simple("b")]);
  await first.order("DELETE", earlier, "");
  first.faults.dieAt = { write: first.faults.writes + 1, when: "after" };
  expect((await first.send("POST", "/workflow", { name: "w" })).status).toBe(503);
  await first.close();
  const next = await startFaulty(new Faults(), first);
  const [id] = await next.read<string[]>("/workflow/running/w?version=1");
  const a = await next.take("a");
  next.faults.dieAt = { write: next.faults.writes + 1, when: "after" };
  expect((await next.send("POST", "/tasks", next.resultOf(a))).status).toBe(503);
  await next.close();
  const third = await startFaulty(new Faults(), first);
  expect((await third.send("POST", "/tasks", third.resultOf(a))).status).toBe(200);
  await third.work("b");
  expect(await third.statuses(id as string)).toEqual(["a:COMPLETED", "b:COMPLETED"]);
  expect(await third.status(id as string)).toBe("COMPLETED");
});

it("[C124] fires a timer and notifies a parent of its child after writing works again", async () => {
  const c = await startFaulty();
  await c.workflow({ name: "child", tasks: [operator("WAIT", "wait", { inputParameters: { duration: "10 seconds" } })] });
  const timeout = { timeoutSeconds: 30, timeoutPolicy: "TIME_OUT_WF" };
  const id = await c.begin([operator("SUB_WORKFLOW", "sub", { subWorkflowParam: { name: "child" } }), simple("t")], timeout);
  const child = await c.child(id, "sub");
  c.faults.failNext = 3;
  await c.clock.advance(10 * second);
  await c.settle();
  expect(await c.status(child)).toBe("RUNNING");
  c.faults.failNext = 0;
  for (let at = 0; at < 10; at++) {
    await c.clock.advance(second);
    await c.settle();
  }
  expect(await c.status(child)).toBe("COMPLETED");
  expect(await c.statuses(id)).toEqual(["sub:COMPLETED", "t:SCHEDULED"]);
  c.faults.failNext = 5;
  await c.clock.advance(10 * second);
  c.faults.failNext = 0;
  await c.clock.advance(restMs);
  expect(await c.status(id)).toBe("TIMED_OUT");
});

const everything = [
  simple("first"),
  ...fork(
    "f",
    [
      [simple("flaky"), operator("SET_VARIABLE", "set", { inputParameters: { x: "${flaky.output.n}" } })],
      [operator("SUB_WORKFLOW", "sub", { subWorkflowParam: { name: "child" } })],
      [operator("WAIT", "wait", { inputParameters: { duration: "7 seconds" } })],
      [simple("soft", { optional: true })],
    ],
    ["set", "sub", "wait", "soft"],
  ),
  switchOn("choose", { yes: [simple("chosen")] }, [simple("not_chosen")], "${sub.output.answer}"),
];
const workerTypes = ["first", "flaky", "soft", "inner", "chosen", "not_chosen", "mourn"];

async function defineEverything(c: FaultyServer): Promise<void> {
  const retried = { retryCount: 5, retryDelaySeconds: 3, responseTimeoutSeconds: 20, timeoutPolicy: "RETRY" };
  await c.taskDef(...workerTypes.map((name) => ({ name, ...retried })), { name: "soft", ...retried, retryCount: 0 });
  await c.workflow({ name: "child", tasks: [simple("inner")] });
  await c.workflow({ name: "mourning", tasks: [simple("mourn")] });
  const outputParameters = { x: "${workflow.variables.x}", chosen: "${choose.output.selectedCase}", joined: "${f_join.output}" };
  const end = operator("TERMINATE", "end", { inputParameters: { terminationStatus: "FAILED", terminationReason: "on purpose" } });
  await c.workflow({ name: "w", tasks: [...everything, end], outputParameters, failureWorkflow: "mourning" });
}

function outcomeOf(task: RestTask, done: Set<string>): { status?: "FAILED"; output?: { [key: string]: string | number } } {
  if (task.taskType === "flaky" && !done.has("flaky")) return { status: "FAILED" };
  if (task.taskType === "soft") return { status: "FAILED" };
  if (task.taskType === "inner") return { output: { answer: "yes" } };
  return { output: { n: 7 } };
}

interface Story {
  runs: { [workflow: string]: { status: string; output: unknown; variables: unknown; records: string[] }[] };
  writes: number;
}

/** Runs the whole workflow. The server dies at one write and is started again. Every request without a response is repeated. */
async function play(dieAt: Faults["dieAt"]): Promise<Story> {
  let c = await startFaulty();
  await defineEverything(c);
  const from = c.faults.writes;
  if (dieAt !== null) c.faults.dieAt = { ...dieAt, write: from + dieAt.write };
  const home: { clock: TestClock; data: string } = c;
  let writes = 0;
  const done = new Set<string>();
  const again = async () => {
    writes += c.faults.writes;
    await c.close();
    c = await startFaulty(new Faults(), home);
  };
  const insist = async (method: string, path: string, body?: unknown): Promise<string> => {
    for (;;) {
      const answer = await c.send(method, path, body);
      await c.settle();
      if (c.faults.dead) await again();
      else if (answer.status < 300) return answer.text;
      else throw new Error(`${method} ${path}: ${answer.status} ${answer.text}`);
    }
  };
  const id = await insist("POST", "/workflow", { name: "w", idempotencyKey: "once", idempotencyStrategy: "RETURN_EXISTING" });
  for (let idle = 0; idle < 40; ) {
    let worked = false;
    for (const type of workerTypes) {
      const tasks = JSON.parse(await insist("GET", `/tasks/poll/batch/${type}?count=5&timeout=0&workerid=w1`)) as RestTask[];
      for (const task of tasks) {
        await insist("POST", "/tasks", c.resultOf(task, outcomeOf(task, done)));
        done.add(type);
        worked = true;
      }
    }
    if (worked) continue;
    idle++;
    await c.clock.advance(second);
    await c.settle();
    if (c.faults.dead) await again();
  }
  const found = JSON.parse(await insist("GET", "/workflow/search?size=100")) as { results: { workflowId: string; workflowType: string }[] };
  const runs: Story["runs"] = {};
  for (const { workflowId, workflowType } of found.results) {
    const run = JSON.parse(await insist("GET", `/workflow/${workflowId}`)) as RestRun;
    const text = JSON.stringify(run.output).replaceAll(id, "ID");
    const records = run.tasks.filter((task) => task.status !== "TIMED_OUT").map((task) => `${task.referenceTaskName}:${task.status}`);
    runs[workflowType] = [
      ...(runs[workflowType] ?? []),
      { status: run.status, output: JSON.parse(text), variables: run.variables, records: records.sort() },
    ];
  }
  return { runs, writes: writes + c.faults.writes - from };
}

const pointsMax = 24;

for (const when of ["before", "after"] as const) {
  it(`[C126] has the same end when the server dies ${when} any of its writes`, async () => {
    const undisturbed = await play(null);
    expect(Object.keys(undisturbed.runs).sort()).toEqual(["child", "mourning", "w"]);
    expect(undisturbed.runs.w).toMatchObject([{ status: "FAILED", variables: { x: 7 } }]);
    expect(undisturbed.runs.mourning).toMatchObject([{ status: "COMPLETED" }]);
    const every = Math.max(1, Math.floor(undisturbed.writes / pointsMax));
    for (let write = 1; write <= undisturbed.writes; write += every) {
      const { runs } = await play({ write, when });
      expect({ write, runs }).toEqual({ write, runs: undisturbed.runs });
    }
  }, 240_000);
}

it("[C127] completes a join once, for any number of branches that end at the same time", async () => {
  const c = await startFaulty();
  const names = Array.from({ length: 40 }, (_, at) => `b${at}`);
  const branches = names.map((taskReferenceName) => [simple("branch", { taskReferenceName })]);
  await c.workflow({ name: "w", tasks: [...fork("f", branches, names), simple("after")] });
  const ids = await Promise.all([1, 2, 3].map(() => c.start("w")));
  const tasks = await c.pollMany("branch", 200);
  expect(tasks).toHaveLength(120);
  await Promise.all(tasks.map((task) => c.ask("POST", "/tasks", c.resultOf(task, { output: { of: task.referenceTaskName } }))));
  for (const id of ids) {
    const run = await c.run(id);
    const joins = run.tasks.filter((task) => task.taskType === "JOIN");
    expect(joins.map(({ status }) => status)).toEqual(["COMPLETED"]);
    expect(Object.keys(joins[0]?.outputData ?? {})).toHaveLength(40);
    expect(run.tasks.filter((task) => task.referenceTaskName === "after")).toHaveLength(1);
  }
  expect(await c.pollMany("after", 10)).toHaveLength(3);
});

it("[C128] reads and writes as many rows with a thousand finished runs as with ten, and scans no table", async () => {
  const c = await startFaulty();
  await c.workflow({ name: "w", tasks: [simple("a"), simple("b")] });
  const finish = async (runs: number) => {
    for (let run = 0; run < runs; run++) await c.ask("POST", "/workflow", { name: "w" });
    for (const type of ["a", "b"]) {
      for (let left = runs; left > 0; ) {
        const tasks = await c.pollMany(type, 100);
        await Promise.all(tasks.map((task) => c.ask("POST", "/tasks", c.resultOf(task))));
        left -= tasks.length;
      }
    }
  };
  const cost = async () => {
    c.faults.counted = [];
    const id = await c.ask("POST", "/workflow", { name: "w" });
    await c.ask("POST", "/tasks", c.resultOf(await c.take("a", { worker: "m" })));
    await c.ask("POST", "/tasks", c.resultOf(await c.take("b", { worker: "m" })));
    await c.settle();
    const counted = c.faults.counted;
    c.faults.counted = null;
    expect(await c.status(id)).toBe("COMPLETED");
    return counted;
  };
  await finish(10);
  const few = await cost();
  await finish(1_000);
  for (let run = 0; run < 100; run++)
    await c.ask("POST", "/workflow", { name: "other", workflowDef: { name: "other", tasks: [simple("x")] } });
  const many = await cost();
  const sum = (counted: typeof few) => ({ statements: counted.length, rows: counted.reduce((total, { rows }) => total + rows, 0) });
  expect(sum(many)).toEqual(sum(few));
  for (const sql of new Set(many.map((each) => each.sql))) {
    if (!/^\s*(SELECT|UPDATE|DELETE|WITH)/i.test(sql)) continue;
    const plan = c.db.prepare(`EXPLAIN QUERY PLAN ${sql}`).all();
    for (const { detail } of plan)
      expect({ sql, detail }).not.toMatchObject({ detail: expect.stringMatching(/^SCAN (task|run|attempt)\b/) });
  }
});
