// The attacker holds a worker token, claims turns of durable functions, and sends reports that our worker never sends. One command with a
// time above all valid dates made every list of tasks fail with 500 for all callers. A turn that ended in two ways left tasks that were never
// cancelled. A repeated command was started twice. Errors and shown values of megabytes were written again with every turn of the run.

import { describe, expect, it } from "vitest";
import { readReport, shownValuesMax } from "../../src/core/turn.ts";
import { startFunctions } from "../support/function-world.ts";

const step = { node: 1, kind: "step", name: "s", after: 0 };
const greatest = Number.MAX_SAFE_INTEGER;

describe("a command that our worker never sends", () => {
  it.each([
    ["a time beyond all dates", { kind: "sleep", until: greatest }, "until"],
    ["a timeout of ages", { timeoutMs: greatest }, "timeoutMs"],
    ["a priority beyond all others", { priority: -greatest }, "priority"],
    ["retries without an end", { retry: { failures: greatest } }, "retry.failures"],
    ["a wait that is not a number", { retry: { failures: 1, backoff: { kind: "linear", delayMs: 1, maxMs: "x" } } }, "retry.backoff.maxMs"],
    ["a jitter that is no share", { retry: { failures: 1, backoff: { kind: "fixed", delayMs: 1, jitter: -50 } } }, "retry.backoff.jitter"],
    ["a rate of ages", { limits: [{ key: "k", rate: { count: 1, windowMs: greatest } }] }, "limits[0].rate.windowMs"],
    ["a name with a NUL", { name: "a\u0000b" }, "name"],
    ["a label with half of a surrogate pair", { labels: ["a\ud800"] }, "labels[0]"],
  ])("%s is named in the refusal", (_what, parts, field) => {
    const report = { by: "w-1", commands: [{ ...step, ...parts }] };
    expect(() => readReport(report)).toThrow(`commands[0].${field} of a turn`);
  });

  it("ends the function, and lists of tasks stay readable", async () => {
    const { api, begin, report, run } = await startFunctions();
    const { id, lease } = await begin();
    expect(await report(lease, { commands: [{ ...step, kind: "sleep", until: greatest }] })).toBe(200);
    expect(await run(id)).toMatchObject({ state: "failed", error: expect.stringContaining("until") });
    const statuses = await Promise.all(
      ["/tasks", `/runs/${id}/tasks`, `/runs/${id}/steps`].map(async (path) => (await api("GET", path)).status),
    );
    expect(statuses).toEqual([200, 200, 200]);
  });
});

it("a command that is in a report twice is started once", async () => {
  const { api, begin, report } = await startFunctions();
  const { id, lease } = await begin();
  await report(lease, { commands: [step, { ...step, name: "t" }] });
  const { items } = (await (await api("GET", `/runs/${id}/tasks`)).json()) as { items: { step: string }[] };
  expect(items.map((task) => task.step).sort()).toEqual(["f", "s"]);
});

it("a turn after which the run begins again cannot start commands, because nothing would cancel them", async () => {
  const { begin, report, run } = await startFunctions();
  const { id, lease } = await begin();
  await report(lease, { commands: [step], end: { kind: "continued", input: 1 } });
  expect(await run(id)).toMatchObject({ state: "failed", error: expect.stringContaining("commands of a turn") });
});

it("an end without a value has the value null", async () => {
  const { begin, take, report, run } = await startFunctions();
  const { id, lease } = await begin();
  expect(await report(lease, { end: { kind: "continued" } })).toBe(200);
  const next = await take();
  expect(next.turn).toMatchObject({ life: 1, input: null });
  await report(next.lease, { end: { kind: "done" } });
  expect(await run(id)).toMatchObject({ state: "succeeded", output: null });
});

it.each([
  ["that blocks the function", { end: { kind: "blocked", error: "e".repeat(100_000) } }],
  ["that ends the function", { end: { kind: "failed", error: "e".repeat(100_000) } }],
])("an error of megabytes %s is kept with its head and tail", async (_what, parts) => {
  const { begin, report, run } = await startFunctions();
  const { id, lease } = await begin();
  await report(lease, parts);
  expect((await run(id)).error?.length).toBeLessThan(20_000);
});

it("the result of a side effect without a value is null, as every replay reads it", async () => {
  const { begin, add, journal } = await startFunctions();
  const { lease } = await begin();
  await add(lease, { commands: [{ ...step, kind: "local", error: "e".repeat(100_000) }] });
  const [entry] = (await journal(lease)).entries;
  expect(entry?.result?.error?.length).toBeLessThan(20_000);
});

it("all values that a function shows together have a size limit, in any kind of report", async () => {
  const { begin, add, run } = await startFunctions();
  const { id, lease } = await begin();
  const value = "v".repeat(shownValuesMax.chars / 4);
  const statuses: number[] = [];
  for (let at = 0; at < 6; at++) statuses.push(await add(lease, { set: { [`key-${at}`]: value } }));
  expect(statuses).toEqual([200, 200, 200, 400, 400, 400]);
  expect(JSON.stringify((await run(id)).variables).length).toBeLessThan(shownValuesMax.chars + 100);
});

it("no worker holds a function before its first turn or between two turns", async () => {
  const { api, take, report, add, journalStatus } = await startFunctions();
  const { id } = (await (await api("POST", "/runs", { workflow: "f" })).json()) as { id: string };
  expect([await add(`${id}.0-0`, { commands: [step] }), await journalStatus(`${id}.0-0`)]).toEqual([409, 409]);
  const { lease } = await take();
  expect([await add(lease, { commands: [{ ...step, kind: "signal" }] }), await journalStatus(lease)]).toEqual([200, 200]);
  await report(lease, {});
  await api("POST", `/runs/${id}/signals`, { name: "s" });
  expect([await add(lease, { commands: [{ ...step, node: 2 }] }), await journalStatus(lease)]).toEqual([409, 409]);
  expect((await take()).turn).toMatchObject({ commands: 1, results: [{ node: 1 }] });
});
