import { describe, expect, it } from "vitest";
import { type AdminServer, startAdminServer } from "../../../../test/support/admin.ts";
import { EventReader } from "../../../../test/support/event-reader.ts";
import { job } from "../../../../test/support/workflow-graph.ts";

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
