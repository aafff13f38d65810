import { describe, expect, it } from "vitest";
import { startAdminServer } from "../../../../test/support/admin.ts";

const json = { "content-type": "application/json" };

/** Three steps in a row, and one beside them. */
async function setup() {
  const server = await startAdminServer();
  const { api } = server;
  const step = (id: string, after: string[] = []) => ({ id, task: "work", input: null, after });
  const steps = [step("a"), step("b", ["a"]), step("c", ["b"]), step("d")];
  await api("POST", "/definitions", { source: { name: "w", steps, output: null } }, json);
  const start = async (input: unknown = 1) => (await api("POST", "/runs", { workflow: "w", input })).body.id as string;
  const states = async (id: string) =>
    Object.fromEntries((await api("GET", `/runs/${id}/steps`)).body.items.map((one: { id: string; state: string }) => [one.id, one.state]));
  /** Ends the open steps; the named one fails. */
  const work = async (count: number, fails?: string) => {
    for (let n = 0; n < count; n++) {
      const { lease, job } = await server.take({ labels: ["handler:work"] });
      if (job.job_id === fails) await server.fail(lease.lease_id, false, "no");
      else await server.complete(lease.lease_id, {});
    }
  };
  return { ...server, start, states, work };
}

const order = (api: Awaited<ReturnType<typeof setup>>["api"], id: string, verb: string, body: object = {}) =>
  api("POST", `/runs/${id}/${verb}`, body);

describe("a dry order", () => {
  it("to cancel names the open steps, and changes nothing", async () => {
    const { api, start, states } = await setup();
    const id = await start();
    const { status, body } = await order(api, id, "cancel", { dry: true });
    expect(status).toBe(200);
    expect(body).toMatchObject({ dry: true, applies: true, state: "cancelled", cancelled: ["a", "d"], kept: null });
    expect((await api("GET", `/runs/${id}`)).body.state).toBe("running");
    await order(api, id, "cancel", { reason: "why" });
    expect(await states(id)).toMatchObject({ a: "cancelled", d: "cancelled" });
    expect((await order(api, id, "cancel", { dry: true })).body).toMatchObject({ applies: false, state: "cancelled" });
  });

  it("to retry or to begin again at a step names what then happens", async () => {
    const { api, start, work, states } = await setup();
    const id = await start();
    await work(4, "c");
    expect(await states(id)).toEqual({ a: "done", b: "done", c: "failed", d: "done" });
    const retry = (await order(api, id, "retry", { dry: true })).body;
    expect(retry).toMatchObject({ applies: true, state: "running", starts: ["c"], again: ["c"], kept: ["a", "b", "d"] });
    const rerun = (await order(api, id, "rerun", { from: "b", dry: true })).body;
    expect(rerun).toMatchObject({ starts: ["b"], again: ["b", "c"], kept: ["a", "d"] });
    const restart = (await order(api, id, "restart", { dry: true })).body;
    expect(restart).toMatchObject({ starts: ["a", "d"], again: ["a", "b", "c", "d"], kept: [] });
    expect((await api("GET", `/runs/${id}`)).body.state).toBe("failed");
    expect((await order(api, id, "rerun", { from: "b", stepInput: 5 })).status).toBe(202);
    expect(await states(id)).toEqual({ a: "done", b: "queued", c: "waiting", d: "done" });
    expect((await api("GET", `/tasks/${id}.1`)).body.input).toBe(5);
  });
});

describe("orders", () => {
  it("pause and resume a run", async () => {
    const { api, start, work, states } = await setup();
    const id = await start();
    expect((await order(api, id, "pause")).body.state).toBe("paused");
    await work(2);
    expect(await states(id)).toMatchObject({ a: "done", b: "waiting" });
    expect((await order(api, id, "resume", { dry: true })).body).toMatchObject({ applies: true, state: "running" });
    expect((await order(api, id, "resume")).body.state).toBe("running");
    expect(await states(id)).toMatchObject({ b: "queued" });
  });

  it("restart a run that has ended, with another input", async () => {
    const { api, start, work, states } = await setup();
    const id = await start();
    expect((await order(api, id, "restart")).status).toBe(409);
    await work(4);
    expect((await order(api, id, "restart", { input: { other: true }, latest: true })).body).toMatchObject({
      id,
      state: "running",
      input: { other: true },
    });
    expect(await states(id)).toMatchObject({ a: "queued", b: "waiting" });
  });

  it("start a new run like this one, with another input", async () => {
    const { api, start } = await setup();
    const id = await start(1);
    const { status, body } = await order(api, id, "rerun", { input: 2 });
    expect([status, body.input]).toEqual([201, 2]);
    expect(body.id).not.toBe(id);
    expect((await order(api, id, "rerun", { stepInput: 2 })).body.error.field).toBe("from");
  });

  it("skip a step that has not begun", async () => {
    const { api, start, work, states } = await setup();
    const id = await start();
    expect((await order(api, id, "skip", { step: "b", dry: true })).body).toMatchObject({ applies: true });
    expect((await order(api, id, "skip", { step: "b", output: { made: "up" } })).status).toBe(202);
    await work(3);
    expect(await states(id)).toMatchObject({ a: "done", b: "skipped", c: "done" });
    expect((await api("GET", `/runs/${id}`)).body.state).toBe("succeeded");
    const open = await start();
    expect((await order(api, open, "skip", { step: "a" })).status).toBe(409);
    expect((await order(api, open, "skip", { step: "none" })).body.error.field).toBe("step");
    expect((await order(api, open, "skip", { step: "b" })).status).toBe(202);
    expect((await order(api, open, "skip", { step: "b" })).status).toBe(202);
  });

  it("end the delays of a run", async () => {
    const { api, claim, take, fail } = await setup();
    const retry = { failures: 3, backoff: { kind: "fixed", delayMs: 600_000 } };
    const steps = [{ id: "a", task: "late", input: null, retry }];
    const { status } = await api("POST", "/definitions", { source: { name: "late", steps, output: null } }, json);
    expect(status).toBe(201);
    const { id } = (await api("POST", "/runs", { workflow: "late" })).body;
    const { lease } = await take({ labels: ["handler:late"] });
    await fail(lease.lease_id, true, "again");
    expect(await claim({ labels: ["handler:late"] })).toBeNull();
    expect((await order(api, id, "hasten")).status).toBe(202);
    expect(await claim({ labels: ["handler:late"] })).not.toBeNull();
    await order(api, id, "cancel");
    expect((await order(api, id, "hasten")).status).toBe(409);
  });

  it("remove a run that has ended", async () => {
    const { api, start } = await setup();
    const id = await start();
    expect((await api("DELETE", `/runs/${id}`)).status).toBe(409);
    await order(api, id, "cancel");
    expect((await api("DELETE", `/runs/${id}?dry=true`)).status).toBe(204);
    expect((await api("GET", `/runs/${id}`)).status).toBe(200);
    expect((await api("DELETE", `/runs/${id}`)).status).toBe(204);
    expect((await api("GET", `/runs/${id}`)).status).toBe(404);
    expect((await api("DELETE", `/runs/${id}`)).status).toBe(404);
  });

  it.each(["pause", "resume", "retry", "restart", "rerun", "cancel", "hasten"])("%s to an unknown run is not found", async (verb) => {
    const { api } = await startAdminServer();
    expect((await order(api, "none", verb)).status).toBe(404);
  });

  it.each(["pause", "resume"])("%s to a run that has ended is refused", async (verb) => {
    const { api, start } = await setup();
    const id = await start();
    await order(api, id, "cancel");
    expect((await order(api, id, verb)).status).toBe(409);
  });
});
