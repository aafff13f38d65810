import { expect, it } from "vitest";
import { startAdminServer } from "../../../../test/support/admin.ts";
import { EventReader } from "../../../../test/support/event-reader.ts";
import { job } from "../../../../test/support/workflow-graph.ts";
import type { TaskRow } from "../../../engine/board/task.ts";
import type { Run } from "../../../engine/run/run.ts";
import type { Totals } from "../../../engine/stats/statistics.ts";
import type { EventSink, ServerSentEvent } from "../../../net/http/http.ts";
import { TestClock } from "../../../testing/clock.ts";
import type { ChangeListener } from "../../server-half.ts";
import { Ticks } from "./ticks.ts";

function setup() {
  const clock = new TestClock();
  const listeners = new Set<ChangeListener>();
  const ticks = new Ticks({
    clock,
    statistics: { totals: () => ({ started: 1 }) as Totals },
    listen(listener) {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
  });
  const reader = () => {
    const gone = new AbortController();
    const frames: ServerSentEvent[] = [];
    const state = { frames, full: false, leave: () => gone.abort() };
    const sink = {
      send: (frame: ServerSentEvent) => frames.push(frame) > 0,
      get full() {
        return state.full;
      },
      drained: async () => {},
      end() {},
      gone: gone.signal,
    } satisfies EventSink;
    return Object.assign(state, { sink });
  };
  const change = (...ids: string[]) => {
    for (const listener of listeners) for (const id of ids) listener.run?.({ id } as Run);
  };
  const changeTask = () => {
    for (const listener of listeners) listener.task?.({} as TaskRow);
  };
  return { clock, ticks, listeners, reader, change, changeTask };
}

const told = ({ frames }: { frames: ServerSentEvent[] }) => frames.map(({ event, data }) => (event === "tick" ? JSON.parse(data) : event));

it("a reader gets the changed runs once in each period, and nothing while nothing changes", async () => {
  const { clock, ticks, reader, change, changeTask, listeners } = setup();
  const [each, fifth] = [reader(), reader()];
  ticks.follow(1_000, each.sink);
  ticks.follow(5_000, fifth.sink);
  change("a", "b", "a");
  changeTask();
  await clock.advance(1_000);
  change("c");
  await clock.advance(4_000);
  const totals = { started: 1 };
  expect(told(each)).toEqual([
    "ready",
    { at: expect.any(Number), runs: ["a", "b"], tasks: 1, totals },
    { at: expect.any(Number), runs: ["c"], tasks: 0, totals },
  ]);
  expect(told(fifth)).toEqual(["ready", { at: clock.now(), runs: ["a", "b", "c"], tasks: 1, totals }]);
  each.leave();
  fifth.leave();
  expect([ticks.readers, listeners.size]).toEqual([0, 0]);
});

it("more than 200 runs are not named", async () => {
  const { clock, ticks, reader, change } = setup();
  const one = reader();
  ticks.follow(1_000, one.sink);
  change(...Array.from({ length: 201 }, (_, at) => `r${at}`));
  await clock.advance(1_000);
  change("x");
  await clock.advance(1_000);
  expect(told(one)).toMatchObject(["ready", { runs: null }, { runs: ["x"] }]);
});

it("a slow reader is notified that it has missed changes", async () => {
  const { clock, ticks, reader, change } = setup();
  const one = reader();
  ticks.follow(1_000, one.sink);
  one.full = true;
  change("a");
  await clock.advance(1_000);
  one.full = false;
  change("b");
  await clock.advance(1_000);
  expect(told(one)).toMatchObject(["ready", "lagged", { runs: ["b"] }]);
});

it("the stream of changes sends ticks on request, and only alone", async () => {
  const { api, create, url, clock } = await startAdminServer();
  const workflow = await create(job("a"));
  const reader = await EventReader.open(`${url}/api/longshore/v1/events?tick=1000`);
  expect(await reader.next()).toMatchObject({ event: "ready" });
  const { id } = (await api("POST", "/runs", { workflow })).body;
  await clock.advance(1_000);
  const frame = await reader.next();
  expect(JSON.parse(frame?.data ?? "")).toMatchObject({ runs: [id], totals: { started: 1, openRuns: 1 } });
  for (const query of ["tick=1000&run=a", "tick=17", "kinds=all"]) expect((await api("GET", `/events?${query}`)).status).toBe(400);
});
