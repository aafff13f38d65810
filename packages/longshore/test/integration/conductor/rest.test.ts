import { expect, it } from "vitest";
import { type ConductorServer, type RestRun, type RestTask, startConductor } from "../../support/conductor-rest.ts";
import { simple } from "../../support/conductor-world.ts";

interface Found<T = { workflowId: string }> {
  totalHits: number;
  results: T[];
}

const search = (c: ConductorServer, query: string, more = "") =>
  c.read<Found>(`/workflow/search?query=${encodeURIComponent(query)}${more}`);

it("[C4] starts with a correlation id and a priority, and shows a run without its tasks", async () => {
  const c = await startConductor();
  await c.workflow({ name: "w", tasks: [simple("t")] });
  const answer = await c.send("POST", "/workflow", { name: "w", correlationId: "c1", priority: 50 });
  expect(answer.headers["content-type"]).toBe("text/plain;charset=UTF-8");
  const run = await c.read(`/workflow/${answer.text}?includeTasks=false`);
  expect(run).toMatchObject({ status: "RUNNING", tasks: [], correlationId: "c1", priority: 50 });
});

it("[C5] counts queued tasks, also delayed ones, and lists running ones", async () => {
  const c = await startConductor();
  const id = await c.begin([simple("t")]);
  expect(await c.read("/tasks/queue/size?taskType=t")).toBe(1);
  expect(await c.read("/workflow/running/w?version=1")).toEqual([id]);
  await c.update(await c.take("t"), { status: "IN_PROGRESS", callback: 60 });
  expect(await c.read("/tasks/queue/sizes?taskType=t&taskType=u")).toEqual({ t: 1, u: 0 });
  expect(await c.read("/tasks/queue/all")).toMatchObject({ t: 1 });
  expect(await c.ask("POST", "/tasks/queue/requeue/t")).toBe("1");
  await c.order("DELETE", id, "");
  expect(await c.read("/tasks/queue/size?taskType=t")).toBe(0);
  expect(await c.read("/workflow/running/w")).toEqual([]);
});

it("[C6] responds to an empty batch poll with an empty list and to an empty single poll with no content", async () => {
  const c = await startConductor();
  const batch = await c.send("GET", "/tasks/poll/batch/none?timeout=0&count=3");
  expect([batch.status, batch.text]).toEqual([200, "[]"]);
  const single = c.send("GET", "/tasks/poll/none");
  await c.clock.armed(100);
  await c.clock.advance(100);
  expect(await single).toMatchObject({ status: 204, text: "" });
});

it("[C7] responds to an update with the task's id, and shows worker and times", async () => {
  const c = await startConductor();
  const id = await c.begin([simple("t1"), simple("t2")]);
  await c.clock.advance(5);
  const task = await c.take("t1", { worker: "ann" });
  const answer = await c.send("POST", "/tasks", c.resultOf(task, { worker: "ann" }));
  expect([answer.text, answer.headers["content-type"]]).toEqual([task.taskId, "text/plain;charset=UTF-8"]);
  expect(await c.statuses(id)).toEqual(["t1:COMPLETED", "t2:SCHEDULED"]);
  const done = await c.record(id, "t1");
  expect(done).toMatchObject({ workerId: "ann", pollCount: 1 });
  expect(done.startTime - done.scheduledTime).toBe(5);
});

it("[C8] finds runs by type in every spelling, with and without a status", async () => {
  const c = await startConductor();
  const id = await c.begin([simple("t")], { name: "x" });
  await c.begin([simple("t")], { name: "y" });
  for (const query of ["workflowType='x'", 'workflowType="x"', "workflowType IN (x)", "workflowType=x"]) {
    expect(await search(c, query)).toMatchObject({ totalHits: 1, results: [{ workflowId: id }] });
    expect(await search(c, `${query} AND status IN (RUNNING)`)).toMatchObject({ totalHits: 1 });
    expect(await search(c, `${query} AND status='COMPLETED'`)).toMatchObject({ totalHits: 0 });
  }
  expect((await c.send("GET", `/workflow/search?query=${encodeURIComponent("workflowType ~ x")}`)).status).toBe(400);
});

it("[C9] returns search results in pages, newest first", async () => {
  const c = await startConductor();
  await c.workflow({ name: "w", tasks: [simple("t")] });
  const ids: string[] = [];
  for (let at = 0; at < 3; at++) {
    ids.push(await c.start("w"));
    await c.clock.advance(10);
  }
  const first = await search(c, "workflowType=w", "&start=0&size=2&sort=startTime:DESC");
  expect([first.totalHits, first.results.map(({ workflowId }) => workflowId)]).toEqual([3, [ids[2], ids[1]]]);
  const second = await search(c, "workflowType=w", "&start=2&size=2&sort=startTime:DESC");
  expect([second.totalHits, second.results.map(({ workflowId }) => workflowId)]).toEqual([3, [ids[0]]]);
});

it("[C10] finds tasks and their runs, as summaries and in full", async () => {
  const c = await startConductor();
  const id = await c.begin([simple("t", { inputParameters: { k: 1 } })]);
  const query = encodeURIComponent("taskType='t'");
  expect(await c.read(`/tasks/search?query=${query}`)).toMatchObject({ totalHits: 1, results: [{ taskType: "t", workflowId: id }] });
  const whole = await c.read<Found<RestTask>>(`/tasks/search-v2?query=${query}`);
  expect(whole.results[0]).toMatchObject({ taskType: "t", workflowInstanceId: id, inputData: { k: 1 } });
  expect(await c.read(`/workflow/search-by-tasks?query=${query}`)).toMatchObject({ totalHits: 1, results: [{ workflowId: id }] });
  const runs = await c.read<Found<object>>(`/workflow/search-by-tasks-v2?query=${query}`);
  expect(runs.results[0]).toMatchObject({ workflowId: id, workflowDefinition: { name: "w" } });
});

it("[C11] terminates a run permanently, but not one that has completed", async () => {
  const c = await startConductor();
  const id = await c.begin([simple("t")]);
  expect((await c.order("DELETE", id, "?reason=enough")).status).toBe(200);
  expect(await c.run(id)).toMatchObject({ status: "TERMINATED", reasonForIncompletion: "enough", tasks: [{ status: "CANCELED" }] });
  expect((await c.order("DELETE", id, "?reason=other")).status).toBe(200);
  expect(await c.run(id)).toMatchObject({ status: "TERMINATED", reasonForIncompletion: "enough" });
  const done = await c.start("w");
  await c.work("t");
  expect((await c.order("DELETE", done, "")).status).toBe(409);
});

it("[C12] restarts a run under its own id, but only after it has ended", async () => {
  const c = await startConductor();
  const id = await c.begin([simple("t")]);
  expect((await c.order("POST", id, "/restart")).status).toBe(409);
  await c.order("DELETE", id, "");
  expect((await c.order("POST", id, "/restart")).status).toBe(204);
  expect(await c.run(id)).toMatchObject({ workflowId: id, status: "RUNNING", tasks: [{ status: "SCHEDULED", retryCount: 0 }] });
  expect((await c.run(id)).tasks).toHaveLength(1);
});

it("[C15] refuses an empty result, naming the two fields that are missing", async () => {
  const c = await startConductor();
  const answer = await c.send("POST", "/tasks", {});
  expect(answer.status).toBe(400);
  const errors = (JSON.parse(answer.text) as { validationErrors: { message: string }[] }).validationErrors;
  expect(errors.map(({ message }) => message).sort()).toEqual(["Task ID cannot be null or empty", "Workflow Id cannot be null or empty"]);
});

it("[C20] refuses to wait longer than five seconds for a poll", async () => {
  const c = await startConductor();
  const answer = await c.send("GET", "/tasks/poll/batch/t?timeout=5001");
  expect([answer.status, JSON.parse(answer.text).message]).toEqual([400, "Long Poll Timeout value cannot be more than 5 seconds"]);
});

it("[C21] accepts a second report on a task that has ended, and changes nothing", async () => {
  const c = await startConductor();
  const id = await c.begin([simple("t")]);
  const task = await c.work("t", { output: { first: true } });
  const again = await c.send("POST", "/tasks", c.resultOf(task, { status: "FAILED", output: { second: true } }));
  expect([again.status, again.text]).toEqual([200, task.taskId]);
  expect(await c.record(id, "t")).toMatchObject({ status: "COMPLETED", outputData: { first: true } });
  expect(await c.status(id)).toBe("COMPLETED");
});

it("[C22] accepts a report on a task of a terminated run, which stays canceled", async () => {
  const c = await startConductor();
  const id = await c.begin([simple("t")]);
  const task = await c.take("t");
  await c.order("DELETE", id, "");
  expect((await c.send("POST", "/tasks", c.resultOf(task))).status).toBe(200);
  expect(await c.record(id, "t")).toMatchObject({ status: "CANCELED" });
  expect(await c.status(id)).toBe("TERMINATED");
});

it("[C23] stores logs from results and from the log endpoint, oldest first", async () => {
  const c = await startConductor();
  await c.begin([simple("t")]);
  const task = await c.take("t");
  expect((await c.send("GET", `/tasks/${task.taskId}/log`)).status).toBe(204);
  const at = c.clock.now();
  const logs = [
    { log: "one", taskId: task.taskId, createdTime: at },
    { message: "two", createdTime: at + 1 },
  ];
  await c.ask("POST", "/tasks", { ...c.resultOf(task, { status: "IN_PROGRESS" }), logs });
  await c.clock.advance(5);
  await c.ask("POST", `/tasks/${task.taskId}/log`, "three, as plain text");
  const kept = await c.read<{ log: string; taskId: string }[]>(`/tasks/${task.taskId}/log`);
  expect(kept.map(({ log }) => log)).toEqual(["one", "two", "three, as plain text"]);
  expect(new Set(kept.map(({ taskId }) => taskId))).toEqual(new Set([task.taskId]));
});

it("[C24] responds to update-v2 with the next task, or with no content", async () => {
  const c = await startConductor();
  await c.begin([simple("t")]);
  const second = await c.start("w");
  const task = await c.take("t");
  const v2 = (result: object) => c.send("POST", "/tasks/update-v2", result);
  expect((await v2({ ...c.resultOf(task), extendLease: true })).status).toBe(204);
  const next = await v2(c.resultOf(task));
  expect(next.status).toBe(200);
  const handed = JSON.parse(next.text) as RestTask;
  expect(handed).toMatchObject({ workflowInstanceId: second, status: "IN_PROGRESS", workerId: "w1", pollCount: 1 });
  expect((await v2(c.resultOf(handed, { status: "IN_PROGRESS", callback: 60 }))).status).toBe(204);
  expect((await v2(c.resultOf(handed))).status).toBe(204);
  expect((await v2({ ...c.resultOf(handed), taskId: "no-such-task" })).status).toBe(204);
});

it("[C-V2-10] responds to update-v2 only with a task of the same type and domain, for the worker of the result", async () => {
  const c = await startConductor();
  await c.poll("t", { domain: "east" });
  await c.workflow({ name: "w", tasks: [simple("t")] });
  await c.workflow({ name: "other", tasks: [simple("u")] });
  const first = await c.start("w");
  await c.start("other");
  const east = await c.start("w", { taskToDomain: { t: "east" } });
  const v2 = async (result: object) => c.send("POST", "/tasks/update-v2", result);
  const task = await c.take("t");
  expect(task.workflowInstanceId).toBe(first);
  expect((await v2(c.resultOf(task))).status).toBe(204);
  const elsewhere = await c.take("t", { domain: "east" });
  expect(elsewhere.workflowInstanceId).toBe(east);
  const next = await c.start("w", { taskToDomain: { t: "east" } });
  const answer = await v2({ ...c.resultOf(elsewhere), workerId: "eve" });
  expect(JSON.parse(answer.text)).toMatchObject({ workflowInstanceId: next, domain: "east", workerId: "eve" });
});

it("[C25] lists which worker polled for what, separately for each domain", async () => {
  const c = await startConductor();
  await c.poll("t", { worker: "ann" });
  await c.clock.advance(1_000);
  await c.poll("t", { worker: "bob", domain: "d" });
  const data = await c.read("/tasks/queue/polldata?taskType=t");
  const now = c.clock.now();
  expect(data).toEqual([
    { queueName: "t", workerId: "ann", lastPollTime: now - 1_000 },
    { queueName: "t", domain: "d", workerId: "bob", lastPollTime: now },
  ]);
  expect(await c.read("/tasks/queue/polldata/all")).toHaveLength(2);
});

it("[C26] performs a bulk command as far as possible, and reports the failures", async () => {
  const c = await startConductor();
  const id = await c.begin([simple("t")]);
  const answer = await c.send("PUT", "/workflow/bulk/pause", [id, "unknown"]);
  const body = JSON.parse(answer.text) as { bulkErrorResults: object; bulkSuccessfulResults: string[] };
  expect([answer.status, body.bulkSuccessfulResults, Object.keys(body.bulkErrorResults)]).toEqual([200, [id], ["unknown"]]);
  expect(await c.status(id)).toBe("PAUSED");
});

it("[C27] refuses more than a thousand ids at once", async () => {
  const c = await startConductor();
  const ids = Array.from({ length: 1_001 }, (_, at) => `id-${at}`);
  expect((await c.send("PUT", "/workflow/bulk/pause", ids)).status).toBe(400);
  expect((await c.send("PUT", "/workflow/bulk/pause", ids.slice(1))).status).toBe(200);
});

it("lists runs of one correlation id oldest first, without closed runs when the caller requests this", async () => {
  const c = await startConductor();
  const first = await c.begin([simple("t")], { start: { correlationId: "a" } });
  const second = await c.start("w", { correlationId: "a" });
  const other = await c.start("w", { correlationId: "b" });
  await c.work("t");
  const ids = (runs: RestRun[] | undefined) => runs?.map(({ workflowId }) => workflowId);
  expect(ids(await c.read<RestRun[]>("/workflow/w/correlated/a"))).toEqual([second]);
  expect(ids(await c.read<RestRun[]>("/workflow/w/correlated/a?includeClosed=true"))).toEqual([first, second]);
  const lists = JSON.parse(await c.ask("POST", "/workflow/w/correlated?includeClosed=true", ["none", "a", "b"])) as Record<
    string,
    RestRun[]
  >;
  expect([ids(lists.none), ids(lists.a), ids(lists.b)]).toEqual([[], [first, second], [other]]);
});
