// The attacker holds a read token and sends many requests at once, each for a thousand times of a cron expression in a time zone, or of one
// that matches once in decades. A rare time takes 0.2 ms to compute. All of them were computed in one piece, which blocked the event loop.

import { expect, it, onTestFinished, vi } from "vitest";
import { Times } from "../../src/engine/schedule/times.ts";
import { serve } from "../../src/server/index.ts";
import { countTurns } from "../support/turn-count.ts";

async function start() {
  const server = await serve({ ephemeral: true, port: 0, logger: { level: "silent" } });
  onTestFinished(() => server.close(0));
  return async (cron: string, limit: number) => {
    const query = new URLSearchParams({ cron, limit: String(limit), timezone: "Europe/Berlin" });
    const reply = await fetch(`${server.url}/api/longshore/v1/schedule-times?${query}`);
    return ((await reply.json()) as { times: number[] }).times;
  };
}

it("a few times are computed in a turn of the event loop, for all callers together", async () => {
  const times = await start();
  const turns = countTurns();
  const { next } = Times.prototype;
  vi.spyOn(Times.prototype, "next").mockImplementation(function (this: Times, ...given) {
    turns.add();
    return next.apply(this, given);
  });
  const found = await Promise.all(Array.from({ length: 4 }, () => times("0 0 1 1 *", 100)));
  expect(found.map(({ length }) => length)).toEqual([100, 100, 100, 100]);
  expect(turns.most).toBeLessThanOrEqual(20);
});
