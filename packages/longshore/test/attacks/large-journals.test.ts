// The attacker holds a worker token and reports results of megabytes to a durable function, or holds a read token and reads the journal of
// such a run. A page was cut after 2 MB, but all its 200 commands were read before. One page blocked the event loop for 3.6 s; eight
// blocked it for 35 s and used 1.2 GB.

import { expect, it, vi } from "vitest";
import type { JournalPage } from "../../src/core/turn.ts";
import { Rows } from "../../src/engine/cached-rows.ts";
import { startFunctions } from "../support/function-world.ts";
import { countTurns } from "../support/turn-count.ts";

const large = "x".repeat(1_500_000);

it("one large result is read in each turn of the event loop, and none after the end of the page", async () => {
  const { api, begin, add, journal } = await startFunctions();
  const { id, lease } = await begin({ given: true });
  for (let node = 1; node <= 6; node++) await add(lease, { commands: [{ node, kind: "local", name: "l", after: 0, output: large }] });
  const turns = countTurns();
  let read = 0;
  const { get } = Rows.prototype;
  vi.spyOn(Rows.prototype, "get").mockImplementation(function (this: Rows<object>, tx, key) {
    const row = get.call(this, tx, key);
    if ((row as { output?: string } | null)?.output?.length === large.length + 2) {
      read++;
      turns.add();
    }
    return row;
  });
  const pages = await Promise.all([
    journal(lease),
    journal(lease),
    api("GET", `/runs/${id}/journal`).then((reply) => reply.json() as Promise<JournalPage>),
  ]);
  expect(pages.map(({ entries, next, input }) => [entries.length, next, input])).toEqual(pages.map(() => [2, 2, { given: true }]));
  expect(read).toBe(2 * pages.length);
  expect(turns.most).toBe(1);
  expect((await journal(lease, 4)).entries.map(({ node }) => node)).toEqual([5, 6]);
});
