import { describe, expect, it } from "vitest";
import { startAdminServer } from "../../../../test/support/admin.ts";

const minuteMs = 60_000;

/** A server with the workflow `w` of one step. */
async function world() {
  const server = await startAdminServer();
  const source = { name: "w", steps: [{ id: "a", task: "a", input: null }], output: null };
  expect((await server.api("POST", "/definitions", { source }, { "content-type": "application/json" })).status).toBe(201);
  return server;
}

describe("putting a schedule", () => {
  it("answers 201 with its rules and next ten times, then 200", async () => {
    const { api, clock } = await world();
    const rules = { workflow: "w", cron: "0 3 * * *", timezone: "Europe/Berlin", input: { n: 1 } };
    const { status, body, headers } = await api("PUT", "/schedules/night%20job", rules);
    expect([status, headers.location]).toEqual([201, "/api/longshore/v1/schedules/night%20job"]);
    expect(body).toMatchObject({
      name: "night job",
      ...rules,
      overlap: "skip",
      catchUp: "last",
      catchUpWindow: 86_400_000,
      jitter: 0,
      paused: null,
    });
    expect(body.upcoming.length).toBe(10);
    expect(body.nextAt).toBe(clock.now() + 2 * 60 * minuteMs);
    const again = await api("PUT", "/schedules/night%20job", rules);
    expect([again.status, again.body]).toEqual([200, body]);
    expect((await api("GET", "/schedules/night%20job")).body).toEqual(body);
  });

  it("takes back what it shows", async () => {
    const { api } = await world();
    for (const [name, times] of Object.entries({
      c: { cron: "@daily" },
      e: { every: "90s", anchor: "2020-01-01T00:00:30Z" },
      a: { at: 2e12 },
    })) {
      const rules = {
        workflow: "w",
        input: {},
        ...times,
        tickField: "t",
        overlap: "queue",
        queueMax: 3,
        catchUp: "all",
        catchUpWindow: "1h",
        jitter: "5s",
      };
      const { body } = await api("PUT", `/schedules/${name}`, rules);
      const { workflow, input, cron, timezone, every, anchor, at, tickField, overlap, queueMax, catchUp, catchUpWindow, jitter } = body;
      const shown = { workflow, input, cron, timezone, every, anchor, at, tickField, overlap, queueMax, catchUp, catchUpWindow, jitter };
      const again = await api("PUT", `/schedules/${name}`, shown);
      expect([again.status, again.body]).toEqual([200, body]);
    }
  });

  it.each([
    [{ every: "1m", cron: "* * * * *" }, "every", "one of cron, every and at"],
    [{}, "cron", "none of them"],
    [{ cron: "0 25 * * *" }, "cron", "Invalid value for hour: 25"],
    [{ cron: "0 3 * * *", timezone: "Mars/Olympus" }, "timezone", "the name of a time zone"],
    [{ every: "10ms" }, "every", "from 1000 ms"],
    [{ every: "soon" }, "every", "a duration"],
    [{ every: "1m", timezone: "UTC" }, "timezone", "only cron"],
    [{ at: "2026-03-29T03:00" }, "at", "a time with its offset"],
    [{ cron: "@daily", anchor: 0 }, "anchor", "only every"],
    [{ every: "1m", overlap: "maybe" }, "overlap", "one of skip, queue"],
    [{ every: "1m", catchUp: "none" }, "catchUp", "one of last, all"],
    [{ every: "1m", queueMax: 0 }, "queueMax", "from 1 to 100"],
    [{ every: "1m", catchUpWindow: "1s" }, "catchUpWindow", "from 10000 ms"],
    [{ every: "1m", jitter: "2d" }, "jitter", "to 86400000 ms"],
    [{ every: "1m", tickField: "t" }, "tickField", "an object as the input"],
    [{ every: "1m", input: "x".repeat(70_000) }, "input", "at most 65536"],
  ])("with %j is refused at %s: %s", async (rules, field, message) => {
    const { api } = await world();
    const { status, body } = await api("PUT", "/schedules/s", { workflow: "w", ...rules });
    expect([status, body.error.field]).toEqual([400, field]);
    expect(body.error.message).toContain(message);
  });

  it("is 404 for an unknown workflow", async () => {
    const { api } = await world();
    const { status, body } = await api("PUT", "/schedules/s", { workflow: "nothing", every: "1m" });
    expect([status, body.error.code, body.error.field]).toEqual([404, "LONGSHORE_NOT_FOUND", "workflow"]);
  });

  it("keeps the digits of numbers in the input", async () => {
    const { send, api } = await world();
    const body = '{"workflow":"w","every":"1m","input":{"n":12345678901234567890}}';
    await send("PUT", "/api/longshore/v1/schedules/s", { body, headers: { "content-type": "application/json" } });
    const { body: run } = await api("POST", "/schedules/s/run");
    expect((await send("GET", `/api/longshore/v1/runs/${run.id}`)).text).toContain('"input":{"n":12345678901234567890}');
  });
});

describe("a schedule over HTTP", () => {
  it("starts runs, which its history names", async () => {
    const { api, clock } = await world();
    await api("PUT", "/schedules/s", { workflow: "w", every: "1m" });
    await clock.advance(minuteMs);
    const { body } = await api("GET", "/schedules/s");
    expect(body.history).toEqual([
      { at: clock.now(), decidedAt: clock.now(), outcome: "started", runId: expect.any(String), reason: null },
    ]);
    expect((await api("GET", `/runs/${body.history[0].runId}`)).body).toMatchObject({ workflow: "w", state: "running" });
  });

  it("is listed in pages, by name and by workflow", async () => {
    const { api } = await world();
    for (const name of ["b", "a", "c"]) await api("PUT", `/schedules/${name}`, { workflow: "w", every: "1h" });
    const page = (await api("GET", "/schedules?limit=2")).body;
    expect([page.items.map(({ name }: { name: string }) => name), page.next]).toEqual([["a", "b"], "b"]);
    const rest = (await api("GET", "/schedules?limit=2&after=b&workflow=w")).body;
    expect([rest.items.map(({ name }: { name: string }) => name), rest.next]).toEqual([["c"], null]);
    expect((await api("GET", "/schedules?workflow=v")).body.items).toEqual([]);
  });

  it("is paused with a reason and resumed", async () => {
    const { api, clock } = await world();
    await api("PUT", "/schedules/s", { workflow: "w", every: "1m" });
    expect((await api("POST", "/schedules/s/pause")).status).toBe(400);
    const paused = await api("POST", "/schedules/s/pause", { reason: "the bank is closed" });
    expect(paused.body).toMatchObject({ paused: "the bank is closed", upcoming: [], dueAt: null });
    await clock.advance(5 * minuteMs);
    const resumed = await api("POST", "/schedules/s/resume");
    expect(resumed.body).toMatchObject({ paused: null, history: [], nextAt: clock.now() + minuteMs });
  });

  it("is run by hand: 201, and 409 while a run is open", async () => {
    const { api } = await world();
    await api("PUT", "/schedules/s", { workflow: "w", every: "1h" });
    const first = await api("POST", "/schedules/s/run");
    expect([first.status, first.headers.location]).toEqual([201, `/api/longshore/v1/runs/${first.body.id}`]);
    const second = await api("POST", "/schedules/s/run");
    expect([second.status, second.body.error.code]).toEqual([409, "LONGSHORE_CONFLICT"]);
    expect(second.body.error.message).toContain(first.body.id);
    expect((await api("POST", "/schedules/s/run", { overlap: "allow" })).status).toBe(201);
  });

  it("is backfilled over a range, once at a time", async () => {
    const { api, clock } = await world();
    await api("PUT", "/schedules/s", { workflow: "w", every: "1m" });
    const range = { from: new Date(clock.now() - 5 * minuteMs).toISOString(), to: clock.now() - minuteMs };
    const { status, body } = await api("POST", "/schedules/s/backfill", range);
    expect(status).toBe(202);
    expect(body.backfill).toEqual({ nextAt: clock.now() - 5 * minuteMs, to: range.to, overlap: "queue", started: 0, total: 5 });
    await clock.advance(0);
    expect((await api("GET", "/schedules/s")).body.backfill).toMatchObject({ started: 1, nextAt: clock.now() - 4 * minuteMs });
    expect((await api("POST", "/schedules/s/backfill", range)).status).toBe(409);
    expect((await api("DELETE", "/schedules/s/backfill")).body.backfill).toBeNull();
    const tooLong = await api("POST", "/schedules/s/backfill", { from: 0, to: clock.now() });
    expect([tooLong.status, tooLong.body.error.code]).toEqual([429, "LONGSHORE_LIMIT"]);
  });

  it("is removed: 204, then 404 for everything", async () => {
    const { api } = await world();
    await api("PUT", "/schedules/s", { workflow: "w", every: "1m" });
    expect((await api("DELETE", "/schedules/s")).status).toBe(204);
    for (const [method, path] of [
      ["DELETE", ""],
      ["GET", ""],
      ["POST", "/resume"],
      ["POST", "/run"],
      ["DELETE", "/backfill"],
    ] as const)
      expect((await api(method, `/schedules/s${path}`)).status).toBe(404);
    expect((await api("POST", "/schedules/s/pause", { reason: "x" })).status).toBe(404);
  });

  it("is previewed without being stored", async () => {
    const { api } = await world();
    const query = new URLSearchParams({ cron: "30 2 * * *", timezone: "Europe/Berlin", after: "2026-03-28T00:00:00Z", limit: "3" });
    const { body } = await api("GET", `/schedule-times?${query}`);
    expect(body.times.map((at: number) => new Date(at).toISOString())).toEqual([
      "2026-03-28T01:30:00.000Z",
      "2026-03-29T01:00:00.000Z",
      "2026-03-30T00:30:00.000Z",
    ]);
    expect((await api("GET", "/schedule-times?every=5m&anchor=60000&after=0&limit=2")).body.times).toEqual([60_000, 360_000]);
    expect((await api("GET", "/schedule-times?every=1500&after=1970-01-01T00:00:01Z&limit=1")).body.times).toEqual([1_500]);
    expect((await api("GET", "/schedule-times?cron=x")).status).toBe(400);
    expect((await api("GET", "/schedules")).body.items).toEqual([]);
  });
});
