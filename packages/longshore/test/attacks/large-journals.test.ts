// The attacker holds a worker token, and gives a durable function results of megabytes; or holds a read token, and reads the journal of such a
// run. A page was cut behind 2 MB, but all 200 commands of it were read before: one page held the event loop for 3.6 s, and eight of them
// for 35 s and 1.2 GB.

import { expect, it, vi } from "vitest";
import type { JournalPage } from "../../src/core/turn.ts";
import { Rows } from "../../src/engine/cached-rows.ts";
import { startFunctions } from "../support/function-world.ts";
import { countTurns } from "../support/turn-count.ts";

const large = "x".repeat(1_500_000);

it("of large results one is read in a turn of the event loop, and none behind the end of the page", async () => {
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
