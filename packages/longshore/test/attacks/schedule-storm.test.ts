// The attacker holds an operator token and creates very many schedules for the same minute. Their runs were started in transactions of 500,
// each of which blocked the event loop for up to 100 ms. After the server was down for a long time, the last time of a rare rule was
// searched for in 40 steps, each of which covers years.

import { expect, it, onTestFinished, vi } from "vitest";
import { LocalRuns } from "../../src/engine/run/local-runs.ts";
import { Times } from "../../src/engine/schedule/times.ts";
import { serve } from "../../src/server/index.ts";
import { TestClock } from "../../src/testing/clock.ts";
import { countTurns } from "../support/turn-count.ts";

const many = 400;
const headers = { "content-type": "application/json" };

it("runs of schedules for the same minute are started a few in a turn of the event loop", async () => {
  const clock = new TestClock();
  const server = await serve({ ephemeral: true, port: 0, clock, logger: { level: "silent" } });
  onTestFinished(() => server.close(0));
  const send = (method: string, path: string, body: object) =>
    fetch(`${server.url}/api/longshore/v1${path}`, { method, headers, body: JSON.stringify(body) });
  await send("POST", "/definitions", { source: { name: "f", function: true } });
  for (let at = 0; at < many; at++) {
    const { status } = await send("PUT", `/schedules/s${at}`, { workflow: "f", input: {}, cron: "0 * * * *" });
    expect(status).toBe(201);
  }
  const turns = countTurns();
  const { startNow } = LocalRuns.prototype;
  let started = 0;
  vi.spyOn(LocalRuns.prototype, "startNow").mockImplementation(function (this: LocalRuns, ...given) {
    turns.add();
    started++;
    return startNow.apply(this, given);
  });
  await clock.advance(3_600_000);
  await vi.waitFor(() => expect(started).toBe(many), { timeout: 20_000 });
  expect(turns.most).toBeLessThanOrEqual(60);
}, 60_000);

it("the last time of a rare rule is found without a search", async () => {
  const times = new Times();
  await times.load();
  const from = Date.UTC(2026, 0, 1);
  const upTo = Date.UTC(2026, 11, 31);
  const calls = vi.spyOn(times, "next");
  const last = (cron: string) => {
    calls.mockClear();
    const first = times.next({ kind: "cron", cron, timezone: "Europe/Berlin" }, from) as number;
    return new Date(times.last({ kind: "cron", cron, timezone: "Europe/Berlin" }, first, upTo)).toISOString();
  };
  expect([last("0 0 1 7 *"), calls.mock.calls.length]).toEqual(["2026-06-30T22:00:00.000Z", 2]);
  expect([last("*/5 * * * *"), calls.mock.calls.length < 32]).toEqual(["2026-12-31T00:00:00.000Z", true]);
});
