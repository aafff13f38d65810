import { describe, expect, it } from "vitest";
import { type AdminServer, startAdminServer } from "../../../../test/support/admin.ts";
import { EventReader } from "../../../../test/support/event-reader.ts";
import { type Body, double, refuse, setup } from "../../../../test/support/functions.ts";
import { job } from "../../../../test/support/workflow-graph.ts";
import { task } from "../../../core/task.ts";
import { work } from "../../../work.ts";
import { workflow } from "../../../workflow.ts";

async function startRun({ api, create }: AdminServer, ...jobs: ReturnType<typeof job>[]): Promise<string> {
  const workflow = await create(...jobs);
  return (await api("POST", "/runs", { workflow })).body.id;
}

type Taken = Awaited<ReturnType<AdminServer["take"]>>;

const pushed = ({ push }: AdminServer, { lease }: Taken, sequence: number, data: string) =>
  push(lease.lease_id, { workflow_id: lease.workflow_id, job_id: lease.job_id, sequence, data });

describe("the logs of a run", () => {
  it("are listed in order of arrival, over all steps, in pages", async () => {
    const server = await startAdminServer();
    const { api, take } = server;
    const id = await startRun(server, job("a"), job("b"));
    const [a, b] = [await take(), await take()];
    await pushed(server, a, 0, "a0\n");
    await pushed(server, b, 0, "b0\n");
    await pushed(server, a, 1, "a1\n");
    const first = (await api("GET", `/runs/${id}/logs?limit=2`)).body;
    const second = (await api("GET", `/runs/${id}/logs?limit=2&after=${first.next}`)).body;
    const listed = [...first.items, ...second.items];
    expect(listed.map(({ step, data }) => `${step} ${data}`)).toEqual(["a a0\n", "b b0\n", "a a1\n"]);
    expect(listed[0]).toMatchObject({ taskId: `${id}.0`, attempt: 1, stream: "stdout", sequence: 0, at: 1 });
    expect(second.next).toBeNull();
    expect((await api("GET", `/runs/${id}/logs?step=b`)).body.items).toMatchObject([{ data: "b0\n" }]);
  });

  it("of a step that does not exist are 404", async () => {
    const server = await startAdminServer();
    const id = await startRun(server, job("a"));
    const { status, body } = await server.api("GET", `/runs/${id}/logs?step=nope`);
    expect([status, body.error.field]).toEqual([404, "query.step"]);
  });

  it("are replayed, then followed, and end with the run", async () => {
    const server = await startAdminServer();
    const id = await startRun(server, job("a"), job("b", { depends_on: ["a"] }));
    const a = await server.take();
    await pushed(server, a, 0, "stored\n");
    const reader = await EventReader.open(`${server.url}/api/longshore/v1/runs/${id}/logs/stream`);
    expect(reader.response.headers["content-type"]).toBe("text/event-stream");
    const replayed = await reader.next();
    expect(replayed).toMatchObject({ event: "log", id: expect.stringMatching(/^\d+$/) });
    expect(JSON.parse(replayed?.data ?? "")).toMatchObject({ step: "a", data: "stored\n" });
    await pushed(server, a, 1, "live\n");
    expect(JSON.parse((await reader.next())?.data ?? "")).toMatchObject({ data: "live\n" });
    await server.complete(a.lease.lease_id);
    const b = await server.take();
    await pushed(server, b, 0, "next step\n");
    expect(JSON.parse((await reader.next())?.data ?? "")).toMatchObject({ step: "b" });
    await server.complete(b.lease.lease_id);
    expect(await reader.rest()).toEqual([{ event: "end", id: undefined, data: '{"state":"succeeded"}' }]);
  });

  it("are resumed after the last event, without repetition", async () => {
    const server = await startAdminServer();
    const id = await startRun(server, job("a"));
    const a = await server.take();
    for (let at = 0; at < 3; at++) await pushed(server, a, at, `line ${at}\n`);
    await server.complete(a.lease.lease_id);
    const url = `${server.url}/api/longshore/v1/runs/${id}/logs/stream`;
    const whole = await (await EventReader.open(url)).rest();
    expect(whole.map(({ event }) => event)).toEqual(["log", "log", "log", "end"]);
    const resumed = await (await EventReader.open(url, { "last-event-id": whole[1]?.id ?? "" })).rest();
    expect(resumed).toEqual(whole.slice(2));
    const { status, body } = await server.api("GET", `/runs/${id}/logs/stream`, undefined, { "last-event-id": "x" });
    expect([status, body.error.field]).toEqual([400, "last-event-id"]);
  });

  it("of a cancelled run continue until its workers have stopped", async () => {
    const server = await startAdminServer();
    const id = await startRun(server, job("a"));
    const a = await server.take();
    const reader = await EventReader.open(`${server.url}/api/longshore/v1/runs/${id}/logs/stream`);
    await server.api("POST", `/runs/${id}/cancel`);
    await pushed(server, a, 0, "last words\n");
    expect(JSON.parse((await reader.next())?.data ?? "")).toMatchObject({ data: "last words\n" });
    await server.fail(a.lease.lease_id);
    expect(await reader.rest()).toMatchObject([{ event: "end", data: '{"state":"cancelled"}' }]);
  });

  it("of one step end with that step", async () => {
    const server = await startAdminServer();
    const id = await startRun(server, job("a"), job("b"));
    const a = await server.take();
    const reader = await EventReader.open(`${server.url}/api/longshore/v1/runs/${id}/logs/stream?step=a`);
    await pushed(server, a, 0, "x\n");
    await server.complete(a.lease.lease_id);
    expect((await reader.rest()).map(({ event }) => event)).toEqual(["log", "end"]);
  });
});

describe("the log from its end", () => {
  async function withLog(lines: readonly string[]) {
    const server = await startAdminServer();
    const id = await startRun(server, job("a"));
    const a = await server.take();
    for (const [sequence, line] of lines.entries()) await pushed(server, a, sequence, line);
    const read = async (query: string) => (await server.api("GET", `/runs/${id}/logs?order=newest${query}`)).body;
    return { ...server, id, read };
  }
  const texts = ({ items }: { items: { data: string }[] }) => items.map(({ data }) => data.trim());

  it("has the newest page first, and each page in order of arrival", async () => {
    const { read } = await withLog(Array.from({ length: 5 }, (_none, at) => `line ${at}\n`));
    const first = await read("&limit=2");
    const second = await read(`&limit=2&before=${first.next}`);
    const third = await read(`&limit=2&before=${second.next}`);
    expect([first, second, third].map(texts)).toEqual([["line 3", "line 4"], ["line 1", "line 2"], ["line 0"]]);
    expect(third.next).toBeNull();
    expect((await read("&limit=5")).next).toBeNull();
    const beyond = await read(`&limit=2&before=${third.items[0].position}`);
    expect([beyond.items, beyond.next]).toEqual([[], null]);
    expect(first.looked).toBe("line 3\nline 4\n".length);
  });

  it("is searched by text, line by line, also inside of a large chunk", async () => {
    const { read } = await withLog(["one\nTWO\nthree two\n", "four\n", "two again\n"]);
    const found = await read("&text=Two");
    expect(found.items.map(({ data }: { data: string }) => data)).toEqual(["TWO\nthree two\n", "two again\n"]);
    expect([found.next, (await read("&text=nothing")).items]).toEqual([null, []]);
  });

  it("has only the lines of a stream or an attempt", async () => {
    const { api, id, read } = await withLog(["out\n"]);
    expect((await read("&stream=stderr")).items).toEqual([]);
    expect(texts(await read("&stream=stdout&attempt=1"))).toEqual(["out"]);
    expect((await read("&attempt=2")).items).toEqual([]);
    for (const [query, field] of [
      ["order=newest&after=1", "query.after"],
      ["text=x", "query.text"],
      ["before=7", "query.before"],
    ]) {
      const { status, body } = await api("GET", `/runs/${id}/logs?${query}`);
      expect([status, body.error.field]).toEqual([400, field]);
    }
  });

  it("is visited a part at a time, so that a search of a large log shows its progress", async () => {
    const { read } = await withLog(Array.from({ length: 9 }, (_none, at) => `${`${at} `.repeat(400_000)}\n`));
    const counts: number[] = [];
    const found: string[] = [];
    for (let next: string | null = null; ; ) {
      const page: { items: { data: string }[]; next: string | null; looked: number } = await read(
        `&text=0 0${next === null ? "" : `&before=${next}`}`.replace(" ", "%20"),
      );
      counts.push(page.looked);
      found.push(...texts(page));
      next = page.next;
      if (next === null) break;
    }
    expect(counts.length).toBeGreaterThan(1);
    expect(counts.reduce((sum, count) => sum + count, 0)).toBe(9 * 800_001);
    // The server cuts a long line into chunks.
    expect(found.join(" ").replaceAll(" ", "")).toMatch(/^0{400000}$/);
  });
});

describe("the logs of a durable function", () => {
  it("have the stacks of errors that its steps and it throw, and none of a step that failed it", async () => {
    const { api, run } = await setup();
    const logOf = async (body: Body) => {
      const { id, worker, result } = await run(body);
      await result();
      await worker.stop();
      return (await api("GET", `/runs/${id}/logs`)).body.items as { step: string; stream: string; data: string }[];
    };
    const frame = "\n {4}at .*test/support/functions.ts:";
    const ofStep = await logOf(async (w) => w.step(refuse, undefined as never));
    expect(ofStep).toMatchObject([{ step: "refuse", stream: "stderr", data: expect.stringMatching(`^Error: not today${frame}`) }]);
    const ofFunction = await logOf(async (w) => (await w.step(double, 1)).toFixed.call("x"));
    expect(ofFunction).toMatchObject([
      { step: "it", stream: "stderr", data: expect.stringMatching(/^TypeError: .*\n {4}at .*logs\.test\.ts:/s) },
    ]);
  });

  it("name the steps that it has given, also live, and are listed by these names", async () => {
    const told = task("told", async (text: string, { log }) => log(text));
    const { api, server, clock, url } = await setup();
    const made = workflow("talk", async (w) => {
      await w.step(told, "first");
      w.log("between");
      await w.step(told, "second");
      await w.step(told, "third", { id: "last words" });
    });
    await server.define(made);
    const { id } = await server.start(made, null);
    const reader = await EventReader.open(`${url}/api/longshore/v1/runs/${id}/logs/stream`);
    const worker = await work({ tasks: [told], workflows: [made], on: server, clock, logger: false, signals: false });
    await server.result(id);
    const lines = (chunks: { step: string; data: string }[]) => chunks.map(({ step, data }) => `${step}: ${data.trim()}`);
    const live = (await reader.rest()).filter(({ event }) => event === "log").map(({ data }) => JSON.parse(data));
    expect(lines(live)).toEqual(["told: first", "talk: between", "told-2: second", "last words: third"]);
    expect((await api("GET", `/runs/${id}/logs`)).body.items).toEqual(live);
    const ofStep = async (step: string) => (await api("GET", `/runs/${id}/logs?step=${encodeURIComponent(step)}`)).body;
    expect(lines((await ofStep("told-2")).items)).toEqual(["told-2: second"]);
    expect(lines((await ofStep("last words")).items)).toEqual(["last words: third"]);
    expect((await ofStep("told-3")).error.field).toBe("query.step");
    expect((await api("GET", `/runs/${id}/steps/told-2/parts`)).body).toEqual({ items: [], next: null, ended: "done" });
    await worker.stop();
  });
});
