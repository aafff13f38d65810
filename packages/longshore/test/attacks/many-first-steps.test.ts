// The attacker holds an operator token, and a worker token where a workflow sends what a worker reports as an event. Starts that arrived
// together shared a transaction, however many steps each began with: 256 starts of a graph with 200 steps took 540 ms of CPU in one turn of the
// event loop. An event started up to 100 such runs in one operation (390 ms), and copied its payload for each run and handler: 8 MB for 100
// handlers took 7.8 s. What workflows compare in an event had no common limit, and each event read it all.

import { expect, it, onTestFinished, vi } from "vitest";
import { RunTasks } from "../../src/engine/board/run-tasks.ts";
import { rowSteps } from "../../src/engine/cached-rows.ts";
import { eventConditionsCharsMax, eventCopiesCharsMax } from "../../src/engine/event/store.ts";
import { placeSteps } from "../../src/engine/run/decisions.ts";
import { startSteps, stepsMax } from "../../src/engine/run/draft.ts";
import { serve } from "../../src/server/index.ts";
import { startConductor } from "../support/conductor-rest.ts";
import { operator, simple } from "../support/conductor-world.ts";
import { countTurns } from "../support/turn-count.ts";

const many = 40;
/** Steps that one decision starts. */
const steps = stepsMax / startSteps;
/** A transaction takes no more operations after a budget of 50,000, of which each new step costs some; the last decision may exceed it. */
const inTurnMax = Math.ceil(50_000 / (rowSteps + placeSteps)) + steps;

async function startServer() {
  const server = await serve({ ephemeral: true, port: 0, logger: { level: "silent" } });
  onTestFinished(() => server.close(0));
  const send = async (path: string, body: object) => {
    const headers = { "content-type": "application/json" };
    const answer = await fetch(`${server.url}/api/longshore/v1${path}`, { method: "POST", headers, body: JSON.stringify(body) });
    return { status: answer.status, body: (await answer.json()) as { runs?: unknown[]; error?: { message: string } } };
  };
  return { server, send };
}

function wide(name: string, events?: object[]) {
  const source = { name, steps: Array.from({ length: steps }, (_, at) => ({ id: `s${at}`, task: "t", input: null })), output: null };
  return { source: events === undefined ? source : { ...source, events } };
}

function countPlaced() {
  const turns = countTurns();
  const { place } = RunTasks.prototype;
  const spy = vi.spyOn(RunTasks.prototype, "place").mockImplementation(function (this: RunTasks, ...given) {
    turns.add();
    return place.apply(this, given);
  });
  onTestFinished(() => spy.mockRestore());
  return turns;
}

it("starts of runs with many first steps do not share one turn of the event loop", async () => {
  const { server, send } = await startServer();
  await send("/definitions", wide("wide"));
  const placed = countPlaced();
  await Promise.all(Array.from({ length: many }, () => server.start("wide")));
  expect(placed.total).toBe(many * steps);
  expect(placed.most).toBeLessThanOrEqual(inTurnMax);
});

it("the runs of one event begin in several turns, and all of them begin", async () => {
  const { send } = await startServer();
  for (let at = 0; at < many; at++) await send("/definitions", wide(`wide-${at}`, [{ event: "e" }]));
  const placed = countPlaced();
  const { status, body } = await send("/events", { name: "e", payload: 1 });
  expect([status, body.runs?.length]).toEqual([202, many]);
  await vi.waitFor(() => expect(placed.total).toBe(many * steps), { timeout: 20_000 });
  expect(placed.most).toBeLessThanOrEqual(inTurnMax);
});

it("an event whose copies are too large together starts nothing", async () => {
  const { send } = await startServer();
  for (const name of ["one", "two", "three"]) await send("/definitions", { source: { name, function: true, events: [{ event: "e" }] } });
  const largest = "x".repeat(500_000);
  expect((await send("/events", { name: "e", payload: largest })).body.runs).toHaveLength(3);
  for (let at = 0; at < 10; at++) await send("/definitions", { source: { name: `f${at}`, function: true, events: [{ event: "e" }] } });
  const refused = await send("/events", { name: "e", payload: largest });
  expect(largest.length * 12).toBeGreaterThan(eventCopiesCharsMax);
  expect([refused.status, refused.body.error?.message]).toEqual([
    429,
    expect.stringContaining("13 workflows and handlers get a copy each"),
  ]);
});

it("what workflows compare in one event has a limit together", async () => {
  const { send } = await startServer();
  const listen = (name: string) =>
    send("/definitions", {
      source: { name, function: true, events: [{ event: "e", match: { field: "v".repeat(eventConditionsCharsMax / 2) } }] },
    });
  expect((await listen("one")).status).toBe(201);
  const refused = await listen("two");
  expect([refused.status, refused.body.error?.message]).toEqual([429, expect.stringContaining("compare less")]);
  // The same workflow may change what it compares.
  expect((await listen("one")).status).toBeLessThan(300);
});

it("an EVENT task with a payload that is too large for its handlers fails", async () => {
  const c = await startConductor();
  const actions = [{ action: "start_workflow", start_workflow: { name: "other" } }];
  for (let at = 0; at < 10; at++) await c.ask("POST", "/event", { name: `h${at}`, event: "conductor:sender:tell", active: true, actions });
  const text = ["${", "workflow.input.text}"].join("");
  await c.workflow({ name: "sender", tasks: [operator("EVENT", "tell", { sink: "conductor", inputParameters: { text } })] });
  const id = await c.start("sender", { input: { text: "x".repeat(1_000_000) } });
  await vi.waitFor(async () => expect(await c.status(id)).toBe("FAILED"), { timeout: 20_000 });
});

it("a handler of an event gets all digits of a whole number", async () => {
  const c = await startConductor();
  const part = (path: string) => ["${", `${path}}`].join("");
  const actions = [{ action: "start_workflow", start_workflow: { name: "other", input: { n: part("n") } } }];
  await c.ask("POST", "/event", { name: "h", event: "conductor:sender:tell", active: true, actions });
  await c.workflow({ name: "other", tasks: [simple("leaf", { inputParameters: { n: part("workflow.input.n") } })] });
  await c.workflow({
    name: "sender",
    tasks: [operator("EVENT", "tell", { sink: "conductor", inputParameters: { n: part("workflow.input.n") } })],
  });
  await c.ask("POST", "/workflow/sender", '{"n":12345678901234567890}');
  await vi.waitFor(async () => expect(await c.read<number>("/tasks/queue/size?taskType=leaf")).toBe(1), { timeout: 20_000 });
  const { text } = await c.send("GET", "/tasks/poll/leaf");
  expect(text).toContain("12345678901234567890");
});
