import { describe, expect, it } from "vitest";
import { startAdminServer } from "../../../../test/support/admin.ts";
import { EventReader, type Frame } from "../../../../test/support/event-reader.ts";
import { until } from "../../../../test/support/until.ts";
import { eventually, job } from "../../../../test/support/workflow-graph.ts";
import { everyone } from "../../../core/actions.ts";
import { Slices } from "../../../core/slices/slices.ts";
import type { Run } from "../../../engine/run/run.ts";
import type { Totals } from "../../../engine/stats/statistics.ts";
import type { HttpRequest, ServerSentEvent } from "../../../net/http/http.ts";
import { TestClock } from "../../../testing/clock.ts";
import { Changes } from "./changes.ts";
import { eventOperations } from "./events.ts";
import { Ticks } from "./ticks.ts";

/** A reader whose sink takes nothing while it is full. */
function slowReader() {
  const gone = new AbortController();
  const frames: ServerSentEvent[] = [];
  const waiting: (() => void)[] = [];
  const reader = {
    frames,
    isFull: false,
    isWaiting: () => waiting.length > 0,
    drain() {
      reader.isFull = false;
      for (const resolve of waiting.splice(0)) resolve();
    },
    leave: () => gone.abort(),
    sink: {
      send(frame: ServerSentEvent) {
        if (!reader.isFull) frames.push(frame);
        return !reader.isFull;
      },
      get full() {
        return reader.isFull;
      },
      drained: () => new Promise<void>((resolve) => waiting.push(resolve)),
      end() {},
      gone: gone.signal,
    },
  };
  return reader;
}

const ticksOf = () => new Ticks({ clock: new TestClock(), statistics: { totals: () => ({}) as Totals }, listen: () => () => {} });
const dataOf = (frame: Frame | undefined) => JSON.parse(frame?.data ?? "null");

async function nextOf(reader: EventReader, event: string): Promise<Frame> {
  for (let frame = await reader.next(); frame !== undefined; frame = await reader.next()) if (frame.event === event) return frame;
  throw new Error(`The stream ended without ${event}.`);
}

describe("live changes", () => {
  it("report tasks and runs as commits leave them", async () => {
    const { api, create, url, take, complete } = await startAdminServer();
    const workflow = await create(job("a"));
    const reader = await EventReader.open(`${url}/api/longshore/v1/events`);
    expect(await reader.next()).toMatchObject({ event: "ready", id: expect.any(String) });
    const { id } = (await api("POST", "/runs", { workflow })).body;
    expect(dataOf(await nextOf(reader, "task"))).toMatchObject({ runId: id, workflow, step: "a", state: "queued", attempt: 1 });
    expect(dataOf(await nextOf(reader, "run"))).toMatchObject({ id, workflow, state: "running" });
    const { lease } = await take();
    expect(dataOf(await nextOf(reader, "task"))).toMatchObject({ state: "held", holder: "w1" });
    await complete(lease.lease_id, { secret: "not told" });
    const done = await nextOf(reader, "task");
    expect(dataOf(done)).toMatchObject({ state: "done" });
    expect(done.data).not.toContain("not told");
    expect(dataOf(await nextOf(reader, "run"))).toMatchObject({ id, state: "succeeded" });
  });

  it("keep to one run, or to the runs of one workflow", async () => {
    const { api, create, url } = await startAdminServer();
    const [one, two] = [await create(job("a")), await create(job("a"))];
    const byWorkflow = await EventReader.open(`${url}/api/longshore/v1/events?workflow=${two}`);
    await byWorkflow.next();
    await api("POST", "/runs", { workflow: one });
    const { id } = (await api("POST", "/runs", { workflow: two })).body;
    expect(dataOf(await byWorkflow.next())).toMatchObject({ workflow: two });
    const byRun = await EventReader.open(`${url}/api/longshore/v1/events?run=${id}`);
    await byRun.next();
    await api("POST", "/runs", { workflow: two });
    await api("POST", `/runs/${id}/cancel`);
    expect(dataOf(await nextOf(byRun, "task"))).toMatchObject({ runId: id, state: "cancelled" });
  });

  it("keep to some runs, and to one kind of change", async () => {
    const { api, create, url } = await startAdminServer();
    const workflow = await create(job("a"));
    const ids = [(await api("POST", "/runs", { workflow })).body.id, (await api("POST", "/runs", { workflow })).body.id];
    const reader = await EventReader.open(`${url}/api/longshore/v1/events?kinds=run&runs=${ids.join(",")}`);
    await reader.next();
    await api("POST", "/runs", { workflow });
    for (const id of ids) await api("POST", `/runs/${id}/cancel`);
    expect([await reader.next(), await reader.next()].map((frame) => [frame?.event, dataOf(frame).id])).toEqual([
      ["run", ids[0]],
      ["run", ids[1]],
    ]);
  });

  it("are resumed after the last one that was seen", async () => {
    const { api, create, url } = await startAdminServer();
    const workflow = await create(job("a"));
    const first = await EventReader.open(`${url}/api/longshore/v1/events`);
    await first.next();
    await api("POST", "/runs", { workflow });
    const seen = await nextOf(first, "run");
    first.close();
    const { id } = (await api("POST", "/runs", { workflow })).body;
    const second = await EventReader.open(`${url}/api/longshore/v1/events`, { "last-event-id": seen.id ?? "" });
    expect(await second.next()).toMatchObject({ event: "ready", id: seen.id });
    expect(dataOf(await nextOf(second, "run"))).toMatchObject({ id });
  });

  it("report when they cannot be resumed", async () => {
    const before = await startAdminServer();
    const old = await EventReader.open(`${before.url}/api/longshore/v1/events`);
    const { id = "" } = (await old.next()) ?? {};
    await before.close();
    const { url } = await startAdminServer({}, before);
    const reader = await EventReader.open(`${url}/api/longshore/v1/events`, { "last-event-id": id });
    expect([(await reader.next())?.event, await reader.next()]).toMatchObject([
      "ready",
      { event: "lagged", id: undefined, data: '{"missed":null}' },
    ]);
  });

  it("report to a slow reader how much it missed, and continue", async () => {
    const changes = new Changes({ clock: new TestClock(), epoch: "e", originOf: () => ({ workflow: null, isHidden: false }), keptMax: 10 });
    const change = (...ids: string[]) => ids.map((id) => changes.run({ id, workflow: "w", error: null } as Run));
    const reader = slowReader();
    const [operation] = eventOperations({ changes, ticks: ticksOf(), slices: new Slices() });
    const reply = await operation?.handle({
      params: {},
      query: new URLSearchParams(),
      headers: {},
      caller: everyone,
    } as unknown as HttpRequest);
    reply?.events?.(reader.sink);
    await until(() => reader.frames.length === 1);
    reader.isFull = true;
    change("r1", "r2");
    await until(() => reader.isWaiting());
    change(...Array.from({ length: 30 }, (_, at) => `x${at}`), "last");
    reader.drain();
    await until(() => reader.frames.some(({ data }) => data.includes('"last"')));
    const told = reader.frames.map(({ event, data }) => (event === "run" ? dataOf({ event, id: "", data }).id : `${event} ${data}`));
    // What it was being given is given; then the ring has moved past it.
    expect(told).toEqual(["ready {}", "r1", "r2", 'lagged {"missed":21}', ...Array.from({ length: 9 }, (_, at) => `x${at + 21}`), "last"]);
    reader.leave();
    await until(() => changes.readers === 0);
  });

  it("are refused to the five hundred and first reader, naming the limit", async () => {
    const changes = new Changes({ clock: new TestClock(), epoch: "e", originOf: () => ({ workflow: null, isHidden: false }) });
    const [operation] = eventOperations({ changes, ticks: ticksOf(), slices: new Slices() });
    const asked = { params: {}, query: new URLSearchParams(), headers: {}, caller: everyone } as unknown as HttpRequest;
    for (let at = 0; at < 500; at++) (await operation?.handle(asked))?.events?.(slowReader().sink);
    await expect(operation?.handle(asked)).rejects.toMatchObject({ code: "LONGSHORE_LIMIT", message: expect.stringContaining("500") });
  });

  it("end when the server closes", async () => {
    const { server, url, api } = await startAdminServer();
    const reader = await EventReader.open(`${url}/api/longshore/v1/events`);
    await reader.next();
    await eventually(async () => (await api("GET", "/workers")).status === 200);
    await server.close();
    expect(await reader.rest()).toEqual([]);
  });
});
