import { describe, expect, it } from "vitest";
import { startAdminServer } from "../../../../test/support/admin.ts";
import { job } from "../../../../test/support/workflow-graph.ts";
import { uuidOf } from "../../../core/ids.ts";
import { keptSignalsMax } from "../../../engine/signal/signal.ts";

/** A run of a Conductor workflow that waits for a person, then works. */
async function waitingRun() {
  const world = await startAdminServer();
  const task = (type: string, name: string) => ({ name, taskReferenceName: name, type });
  const definition = { name: "ask", version: 1, schemaVersion: 2, ownerEmail: "a@example.org", timeoutSeconds: 0 };
  const tasks = [task("HUMAN", "approve"), task("SIMPLE", "ship")];
  expect((await world.post("/api/metadata/workflow", { ...definition, tasks })).status).toBe(200);
  const { text: id } = await world.post("/api/workflow/ask", {});
  return { ...world, id, signals: `/runs/${id}/signals` };
}

describe("sending a signal", () => {
  it("answers 202 with the step that has taken it", async () => {
    const { api, id, signals, clock } = await waitingRun();
    const steps = await api("GET", `/runs/${id}/steps`);
    expect(steps.body.items[0].waiting).toEqual({ reason: "signal", text: 'waiting for signal "approve"', signal: "approve" });
    expect(steps.body.items[0].state).toBe("awaiting");
    const { status, body } = await api("POST", signals, { name: "approve", value: { by: "Ann" }, key: "k" });
    expect(status).toBe(202);
    const sent = { runId: id, number: 1, name: "approve", key: "k", state: "taken", value: null, sentAt: clock.now() };
    expect(body).toEqual({ ...sent, takenAt: clock.now(), taskId: `${id}.0`, attempt: 1 });
    expect((await api("GET", `/tasks/${id}.0`)).body).toMatchObject({ state: "done", output: { by: "Ann" } });
    expect((await api("GET", `/runs/${id}`)).body.signals).toEqual({ sent: 1, kept: 0 });
    expect((await api("POST", signals, { name: "approve", value: 2, key: "k" })).body).toEqual(body);
  });

  it("answers with the kept signal when no step waits for it, and lists both kinds in pages", async () => {
    const { api, id, signals } = await waitingRun();
    await api("POST", signals, { name: "approve" });
    const { body } = await api("POST", signals, { name: "later", value: [1] });
    expect(body).toMatchObject({ number: 2, state: "kept", value: [1], takenAt: null, taskId: null, attempt: null });
    const numbers = async (query: string) => {
      const page = (await api("GET", `${signals}?${query}`)).body;
      return [page.items.map(({ number }: { number: number }) => number), page.next];
    };
    expect(await numbers("")).toEqual([[1, 2], null]);
    expect(await numbers("state=kept")).toEqual([[2], null]);
    expect(await numbers("state=taken")).toEqual([[1], null]);
    expect(await numbers("limit=1")).toEqual([[1], "1"]);
    expect(await numbers("limit=1&after=1")).toEqual([[2], null]);
    expect((await api("GET", `/runs/${uuidOf(id)}/signals`)).body).toEqual((await api("GET", signals)).body);
    expect((await api("POST", `/runs/${uuidOf(id)}/signals`, { name: "third" })).body).toMatchObject({ runId: id, number: 3 });
  });

  it("keeps the digits of numbers", async () => {
    const { send, api, signals, id } = await waitingRun();
    const body = '{"name":"approve","value":{"n":12345678901234567890.10}}';
    await send("POST", `/api/longshore/v1${signals}`, { body, headers: { "content-type": "application/json" } });
    const { text } = await send("GET", `/api/longshore/v1/tasks/${id}.0`);
    expect(text).toContain("12345678901234567890.10");
    expect((await api("GET", `/runs/${id}`)).status).toBe(200);
  });

  it("is 409 for a run that has ended, 404 for an unknown one", async () => {
    const { api, id, signals } = await waitingRun();
    await api("POST", `/runs/${id}/cancel`);
    const { status, body } = await api("POST", signals, { name: "approve" });
    expect([status, body.error.code]).toEqual([409, "LONGSHORE_CONFLICT"]);
    expect(body.error.message).toBe(`Run ${id} has ended as cancelled: it takes no more signals.`);
    expect((await api("POST", "/runs/none/signals", { name: "approve" })).status).toBe(404);
    expect((await api("GET", "/runs/none/signals")).status).toBe(404);
  });

  it.each([
    ["no name", {}, "name"],
    ["an empty name", { name: "" }, "name"],
    ["a name that is too long", { name: "n".repeat(201) }, "name"],
    ["a name with a NUL", { name: "a\u0000" }, "name"],
    ["an empty key", { name: "a", key: "" }, "key"],
    ["a key that is too long", { name: "a", key: "k".repeat(501) }, "key"],
    ["a field that does not exist", { name: "a", values: 1 }, "values"],
  ])("with %s is 400 and names it", async (_, request, field) => {
    const { api, signals } = await waitingRun();
    const { status, body } = await api("POST", signals, request);
    expect(status).toBe(400);
    expect(body.error).toMatchObject({ code: "LONGSHORE_BAD_INPUT", field });
  });

  it("is refused when the run keeps too many", async () => {
    const { api, server, create } = await startAdminServer();
    const { body } = await api("POST", "/runs", { workflow: await create(job("a")) });
    for (let at = 0; at < keptSignalsMax; at++) await server.signal(body.id, "go", at);
    const refused = await api("POST", `/runs/${body.id}/signals`, { name: "go" });
    expect(refused.status).toBe(429);
    expect(refused.body.error).toMatchObject({ code: "LONGSHORE_LIMIT", field: "signals" });
    await expect(server.signal(body.id, "go")).rejects.toMatchObject({ code: "LONGSHORE_LIMIT" });
  });

  it("needs a token of an operator; its list one that may read", async () => {
    const tokens = ["worker", "read", "operator"].map((scope) => `${scope}:${scope}-secret-0123456789`);
    const { send } = await startAdminServer({ tokens });
    const status = async (method: string, token: string) => {
      const headers = { authorization: `Bearer ${token}-secret-0123456789`, "content-type": "application/json" };
      return (
        await send(method, "/api/longshore/v1/runs/none/signals", { headers, ...(method === "POST" ? { body: '{"name":"a"}' } : {}) })
      ).status;
    };
    expect([await status("POST", "worker"), await status("POST", "read")]).toEqual([403, 403]);
    expect(await status("POST", "operator")).toBe(404);
    expect([await status("GET", "worker"), await status("GET", "read")]).toEqual([403, 404]);
  });
});

it("a program sends signals to the server that it runs", async () => {
  const { server, id } = await waitingRun();
  const kept = { number: 1, name: "later", state: "kept", awaited: ["approve"] };
  expect(await server.signal(id, "later", { a: 1 }, { key: "k" })).toEqual(kept);
  expect(await server.signal(id, "later", 2, { key: "k" })).toEqual(kept);
  expect(await server.signal(id, "approve")).toEqual({ number: 2, name: "approve", state: "taken" });
  await expect(server.signal("none", "approve")).rejects.toMatchObject({ code: "LONGSHORE_NOT_FOUND" });
});
