// The events of a run: in order, with strictly rising numbers, and always the same, also after its end and after a restart.

import { describe, expect, it } from "vitest";
import type { JsonObject } from "../../../src/core/json/json.ts";
import { StatusEventType } from "../../../src/protocols/stepflow/wire/api-messages.ts";
import { RunsService } from "../../../src/protocols/stepflow/wire/services.ts";
import { EventReader } from "../../support/event-reader.ts";
import { either } from "../../support/flow-world.ts";
import { type Body, oneStep, startStepflow } from "../../support/stepflow-server.ts";

const two: JsonObject = {
  name: "two",
  steps: [
    { id: "first", component: "/hold", input: { $input: "$" } },
    { id: "second", component: "/builtin/noop", input: { $step: "first" } },
    { id: "unneeded", component: "/builtin/noop", input: 1 },
  ],
  output: { $step: "second" },
};

interface Told {
  readonly number: number;
  readonly name: string;
  readonly event: Body;
}

function told({ data, id }: { data: string; id: string | undefined }): Told {
  const { sequenceNumber, timestamp, event } = JSON.parse(data);
  expect(id).toBe(String(sequenceNumber));
  expect(timestamp).toMatch(/^\d{4}-\d\d-\d\dT.*Z$/);
  const [[name, body]] = Object.entries(event) as [[string, Body]];
  return { number: sequenceNumber, name, event: body };
}

const all = async (reader: EventReader) => (await reader.rest()).map(told);
const names = (events: readonly Told[]) => events.map(({ name }) => name);

function expectRising(events: readonly Told[]): void {
  for (let at = 1; at < events.length; at++) expect(events[at]?.number).toBeGreaterThan(events[at - 1]?.number as number);
}

describe("the events of a run", () => {
  it("[S9-58] are sent while it runs, in order, and end with it", async () => {
    const { submit, events, claim, complete } = await startStepflow();
    const runId = await submit(two, [{ a: 1 }]);
    const reader = await events(runId);
    const begun = [told((await reader.next())!), told((await reader.next())!), told((await reader.next())!)];
    expect(begun).toMatchObject([
      { number: 0, name: "RunCreated", event: { runId, flowId: expect.stringMatching(/^[0-9a-f]{64}$/), itemCount: 1 } },
      { name: "StepsNeeded", event: { runId, itemIndex: 0, stepIds: ["first", "second"] } },
      { name: "StepStarted", event: { runId, itemIndex: 0, stepIndex: 0, stepId: "first", attempt: 1 } },
    ]);
    await complete(await claim("hold"), { b: 2 });
    const rest = await all(reader);
    expect(rest).toMatchObject([
      { name: "StepCompleted", event: { stepIndex: 0, stepId: "first", status: 2 } },
      { name: "StepStarted", event: { stepIndex: 1, stepId: "second", attempt: 1 } },
      { name: "StepCompleted", event: { stepIndex: 1, stepId: "second", status: 2 } },
      { name: "ItemCompleted", event: { runId, itemIndex: 0 } },
      { name: "RunCompleted", event: { runId, status: 2 } },
    ]);
    expect(rest[0]?.event).not.toHaveProperty("result");
    expectRising([...begun, ...rest]);
    expect(reader.response.headers["content-type"]).toBe("text/event-stream");
  });

  it("[S9-58] are the same after the end, and after a restart", async () => {
    const first = await startStepflow();
    const runId = await first.submit(two, [1, 2, 3]);
    const live = first.events(runId).then(all);
    for (let item = 0; item < 3; item++) await first.complete(await first.claim("hold"), item);
    await first.ended(runId);
    const told = await live;
    expect(names(told).filter((name) => name === "ItemCompleted")).toHaveLength(3);
    expect([names(told)[0], names(told).at(-1)]).toEqual(["RunCreated", "RunCompleted"]);
    expectRising(told);
    expect(await all(await first.events(runId))).toEqual(told);
    const { summary } = (await first.call("GET", `/runs/${runId}`)).body;
    expect([summary.createdAtSeqno, summary.finishedAtSeqno]).toEqual([0, told.at(-1)?.number]);
    await first.close();
    const second = await startStepflow({ data: first.data });
    expect(await all(await second.events(runId))).toEqual(told);
  });

  it("[S9-58] continue where a reader stopped, in the middle of a run and across a restart", async () => {
    const first = await startStepflow();
    const runId = await first.submit(two, [{}]);
    const before = await first.events(runId);
    const seen = [told((await before.next())!), told((await before.next())!), told((await before.next())!)];
    before.close();
    const held = await first.claim("hold");
    await first.crash();
    const second = await startStepflow({ data: first.data });
    // Inclusive, as in the reference.
    const after = await second.events(runId, `?since=${seen.at(-1)?.number}`);
    expect(told((await after.next())!)).toEqual(seen.at(-1));
    await second.complete(held, 1);
    const rest = await all(after);
    expect([...seen, ...rest]).toEqual(await all(await second.events(runId)));
    expect(await all(await second.events(runId, `?since=${(rest.at(-1)?.number as number) + 1}`))).toEqual([]);
  });

  it("and tasks of Longshore's own API name only steps of the flow", async () => {
    const { url, run } = await startStepflow();
    const admin = `${url}/api/longshore/v1`;
    const reader = await EventReader.open(`${admin}/events`);
    const steps = ["yes", "no"].map((id) => ({ id, component: "/builtin/noop", input: id }));
    await run({ steps, output: either({ $input: "$" }, { $step: "yes" }, { $step: "no" }) }, [true]);
    const told = new Set<string>();
    for (let frame = await reader.next(); frame?.event !== "run" || JSON.parse(frame.data).endedAt === null; frame = await reader.next()) {
      if (frame?.event === "task") told.add(JSON.parse(frame.data).step);
    }
    expect([...told]).toEqual(["yes"]);
    const { items } = (await (await fetch(`${admin}/tasks`)).json()) as Body;
    expect(items.map(({ step }: Body) => step)).toEqual(["yes"]);
  });

  it("[S9-58] can be limited to some kinds, and contain results when requested", async () => {
    const { run, events } = await startStepflow();
    const { summary } = await run(oneStep("/builtin/noop", { $input: "$" }), [{ a: [1, null] }]);
    const of = async (query: string) => all(await events(summary.runId, query));
    expect(names(await of("?eventTypes=1&eventTypes=6"))).toEqual(["RunCreated", "RunCompleted"]);
    expect(names(await of("?eventTypes=STATUS_EVENT_TYPE_STEP_STARTED,STEP_COMPLETED"))).toEqual(["StepStarted", "StepCompleted"]);
    const results = await of("?includeResults=true&eventTypes=3,5");
    expect(results).toMatchObject([
      { name: "StepCompleted", event: { status: 2, result: { a: [1, null] } } },
      { name: "ItemCompleted", event: { itemIndex: 0, result: { a: [1, null] } } },
    ]);
    const whole = await of("");
    expect(results.map(({ number }) => number)).toEqual(
      whole.filter(({ name }) => name === "StepCompleted" || name === "ItemCompleted").map(({ number }) => number),
    );
  });

  it("report steps that become needed, attempts, and steps that fail before they begin", async () => {
    const { run, events } = await startStepflow();
    const flow: JsonObject = {
      steps: [
        { id: "yes", component: "/builtin/noop", input: 1 },
        { id: "no", component: "/builtin/noop", input: 2 },
        { id: "bad", component: "/builtin/create_messages", input: {} },
        { id: "after", component: "/builtin/noop", input: { $step: "bad" } },
      ],
      output: [either({ $input: "$" }, { $step: "yes" }, { $step: "no" }), { $step: "after" }],
    };
    const { summary } = await run(flow, [true]);
    const seen = await all(await events(summary.runId));
    expect(seen.filter(({ name }) => name === "StepsNeeded").map(({ event }) => event.stepIds)).toEqual([["bad", "after"], ["yes"]]);
    expect(
      seen
        .filter(({ name }) => name === "StepStarted")
        .map(({ event }) => event.stepId)
        .sort(),
    ).toEqual(["bad", "yes"]);
    const completed = seen.filter(({ name }) => name === "StepCompleted").map(({ event }) => [event.stepId, event.status]);
    expect(completed.sort()).toEqual([
      ["after", 3],
      ["bad", 3],
      ["yes", 2],
    ]);
    expect(seen.at(-1)).toMatchObject({ name: "RunCompleted", event: { status: 3 } });
  });

  it("may include events of the runs that it has started, each between the beginning and the end of its step", async () => {
    const { run, events } = await startStepflow();
    const inner = { steps: [{ id: "n", component: "/builtin/noop", input: { $input: "$" } }], output: { $step: "n" } };
    const { summary } = await run(oneStep("/builtin/map", { workflow: { $literal: inner }, items: [1, 2] }), [{}]);
    const seen = await all(await events(summary.runId, "?includeSubRuns=true"));
    expectRising(seen);
    const created = seen.findIndex(({ name }) => name === "SubRunCreated");
    const subRunId = seen[created]?.event.runId;
    expect(seen[created]?.event).toMatchObject({ parentRunId: summary.runId, itemCount: 2 });
    const own = (name: string, runId: string) => seen.findIndex((each) => each.name === name && each.event.runId === runId);
    const order = [
      own("StepStarted", summary.runId),
      created,
      own("StepStarted", subRunId),
      own("RunCompleted", subRunId),
      own("StepCompleted", summary.runId),
      own("RunCompleted", summary.runId),
    ];
    expect(order).toEqual(order.toSorted((a, b) => a - b));
    expect(seen.filter(({ name, event }) => name === "ItemCompleted" && event.runId === subRunId)).toHaveLength(2);
    expect(names(await all(await events(summary.runId)))).not.toContain("SubRunCreated");
    // The inner run counts from the beginning of the whole.
    const inside = await all(await events(subRunId));
    expect(inside.at(-1)).toMatchObject({ name: "RunCompleted", event: { runId: subRunId } });
  });

  it("are sent live for runs that start while they are followed", async () => {
    const { submit, events, claim, complete } = await startStepflow();
    const inner = { steps: [{ id: "h", component: "/inside", input: { $input: "$" } }], output: { $step: "h" } };
    const flow: JsonObject = {
      steps: [
        { id: "wait", component: "/hold", input: 1 },
        { id: "many", component: "/builtin/map", input: { workflow: { $literal: inner }, items: [{ $step: "wait" }, 2] } },
      ],
      output: { $step: "many" },
    };
    const runId = await submit(flow, [{}]);
    const reader = await events(runId, "?includeSubRuns=true");
    await complete(await claim("hold"), 1);
    for (let item = 0; item < 2; item++) await complete(await claim("inside"), item);
    const seen = await all(reader);
    expect(names(seen)).toContain("SubRunCreated");
    expectRising(seen);
    expect(await all(await events(runId, "?includeSubRuns=true"))).toEqual(seen);
  });

  it("are sent to a limited number of readers at once, and readers that disconnect free their place", async () => {
    const { submit, events, call, claim, complete, ended } = await startStepflow();
    const runId = await submit(oneStep("/hold", {}), [{}]);
    const readers = await Promise.all(Array.from({ length: 500 }, () => events(runId)));
    await Promise.all(readers.map((reader) => reader.next()));
    const refused = await call("GET", `/runs/${runId}/events`);
    expect([refused.status, refused.body.error.status]).toEqual([429, "RESOURCE_EXHAUSTED"]);
    await complete(await claim("hold"), 1);
    await ended(runId);
    await Promise.all(readers.map((reader) => reader.rest()));
    expect((await all(await events(runId))).at(-1)?.name).toBe("RunCompleted");
  });

  it("are sent over gRPC as messages", async () => {
    const { run, channel, events } = await startStepflow();
    const { summary } = await run(oneStep("/builtin/noop", { $input: "$" }), [{}]);
    const seen: number[] = [];
    const types = [StatusEventType.RUN_CREATED, StatusEventType.STEP_COMPLETED, StatusEventType.RUN_COMPLETED];
    for await (const event of channel.serverStream(RunsService.GetRunEvents, { runId: summary.runId, eventTypes: types })) {
      seen.push(event.sequenceNumber);
      expect(event.timestamp).toEqual(expect.any(Number));
      expect(event.runCreated ?? event.stepCompleted ?? event.runCompleted).toMatchObject({ runId: summary.runId });
    }
    expect(seen).toEqual((await all(await events(summary.runId, "?eventTypes=1,3,6"))).map(({ number }) => number));
  });
});
