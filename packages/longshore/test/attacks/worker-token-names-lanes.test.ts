// The attacker holds a worker token and repeatedly reports an output of megabytes that names a DYNAMIC task, or may start runs with domains
// of megabytes. The name of every lane stayed in memory and was part of metrics and lists of queues. 26 reports used 800 MB, and one
// response even more.

import { expect, it, onTestFinished } from "vitest";
import { startConductor } from "../support/conductor-rest.ts";
import { simple } from "../support/conductor-world.ts";
import { openEngineWithStore } from "../support/engine.ts";

const million = 1_000_000;
/** The maximum size of all responses that list lanes together, when the server has only short names. */
const answerCharsMax = 100_000;

const dynamic = {
  name: "d",
  taskReferenceName: "d",
  type: "DYNAMIC",
  dynamicTaskNameParam: "which",
  inputParameters: { which: "${s.output.n}" },
};

type Conductor = Awaited<ReturnType<typeof startConductor>>;

async function listedChars(c: Conductor): Promise<number> {
  const paths = ["/metrics", "/api/longshore/v1/queues", "/api/tasks/queue/all", "/api/tasks/queue/all/verbose"];
  const texts = await Promise.all(paths.map(async (path) => (await fetch(c.url + path)).text()));
  return texts.reduce((sum, { length }) => sum + length, 0);
}

it("a name of a million characters creates no lane: the run fails with a short reason", async () => {
  const c = await startConductor();
  const id = await c.begin([simple("s"), dynamic]);
  await c.work("s", { output: { n: "n".repeat(million) } });
  const run = await c.run(id);
  expect(run).toMatchObject({ status: "FAILED", reasonForIncompletion: expect.stringContaining("1000000 characters") });
  expect(run.reasonForIncompletion?.length).toBeLessThan(1_000);
  expect(await listedChars(c)).toBeLessThan(answerCharsMax);
});

it("a name with a NUL, which separates names and labels of lanes, also creates no lane", async () => {
  const c = await startConductor();
  const id = await c.begin([simple("s"), dynamic]);
  await c.work("s", { output: { n: "work\u0000gpu" } });
  expect(await c.run(id)).toMatchObject({ status: "FAILED", reasonForIncompletion: expect.stringContaining("control character") });
});

it("a name with the maximum length of definition names works", async () => {
  const c = await startConductor();
  const id = await c.begin([simple("s"), dynamic]);
  const longest = "n".repeat(255);
  await c.work("s", { output: { n: longest } });
  await c.work(longest);
  expect(await c.status(id)).toBe("COMPLETED");
});

it.each([
  ["a domain of a million characters", { s: "d".repeat(million) }],
  ["200,000 domains for a task", { s: Array.from({ length: 200_000 }, (_, at) => `d${at}`).join(",") }],
  ["a task type of a million characters", { ["t".repeat(million)]: "d" }],
  ["20,000 task types", Object.fromEntries(Array.from({ length: 20_000 }, (_, at) => [`t${at}`, "d"]))],
  ["a domain that is not a text", { s: { not: "a text" } }],
])("a start with %s in taskToDomain is refused, and the refusal names the field", async (_what, taskToDomain) => {
  const c = await startConductor();
  await c.workflow({ name: "w", tasks: [simple("s")] });
  const { status, text } = await c.send("POST", "/workflow", { name: "w", taskToDomain });
  expect(status).toBe(400);
  expect(JSON.parse(text)).toMatchObject({ validationErrors: [{ path: "startWorkflow.arg0.taskToDomain" }] });
  expect(text.length).toBeLessThan(1_000);
  expect(await listedChars(c)).toBeLessThan(answerCharsMax);
});

it("a start with 100 domains of 255 characters is placed on the first that is polled", async () => {
  const c = await startConductor();
  const domains = Array.from({ length: 100 }, (_, at) => String(at).padStart(255, "d"));
  await c.poll("s", { domain: domains[7] as string });
  await c.begin([simple("s")], { start: { taskToDomain: { s: domains.join(",") } } });
  expect(await c.poll("s", { domain: domains[7] as string })).toMatchObject({ domain: domains[7] });
});

it.each([
  ["a million characters", "d".repeat(million)],
  ["no text", { not: "a text" }],
])("a sub-workflow whose domain is data, with %s, fails its step", async (_what, domain) => {
  const c = await startConductor();
  await c.workflow({ name: "child", tasks: [simple("t")] });
  const subWorkflowParam = { name: "child", taskToDomain: { t: "${s.output.domain}" } };
  const id = await c.begin([simple("s"), { name: "sub", taskReferenceName: "sub", type: "SUB_WORKFLOW", subWorkflowParam }]);
  await c.work("s", { output: { domain } });
  expect(await c.run(id)).toMatchObject({ status: "FAILED", reasonForIncompletion: expect.stringContaining("taskToDomain") });
  expect(await listedChars(c)).toBeLessThan(answerCharsMax);
});

it.each([
  ["a name of 2,049 characters", [{ name: "n".repeat(2_049), labels: [] }], "2049 characters"],
  ["a label of 513 characters", [{ name: "n", labels: ["l".repeat(513)] }], "513 characters"],
  ["101 labels", [{ name: "n", labels: Array.from({ length: 101 }, (_, at) => `l${at}`) }], "101 labels"],
  ["a NUL in its name", [{ name: "n\u0000l", labels: [] }], "NUL"],
  ["a NUL in a label", [{ name: "n", labels: ["l\u0000m"] }], "NUL"],
  ["101 lanes", Array.from({ length: 101 }, (_, at) => ({ name: `n${at}`, labels: [] })), "101 lanes"],
])("the board takes no task with %s, whoever posts it", async (_what, lanes, reason) => {
  const { board, store, close } = await openEngineWithStore({ directory: null });
  onTestFinished(() => close());
  const task = { id: "t", step: "s", lanes, input: "null", policy: null };
  const refused = { code: "LONGSHORE_BAD_INPUT", message: expect.stringContaining(reason) };
  await expect(board.post([task])).rejects.toMatchObject(refused);
  await expect(board.perform(task)).rejects.toMatchObject(refused);
  expect(store.board.lanes.size).toBe(0);
});

it("the board accepts a task with the longest name and the most labels that are allowed", async () => {
  const { board, close } = await openEngineWithStore({ directory: null });
  onTestFinished(() => close());
  const labels = Array.from({ length: 100 }, (_, at) => String(at).padStart(512, "l"));
  const name = "n".repeat(2_048);
  await board.post([{ id: "t", step: "s", lanes: [{ name, labels }], input: "null", policy: null }]);
  const claimed = await board.claim({ reach: { names: [name], labels }, holder: "w", termMs: 60_000 });
  expect(claimed.map(({ id }) => id)).toEqual(["t"]);
});
