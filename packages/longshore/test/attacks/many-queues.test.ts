// The attacker holds a worker token and has named very many queues. Conductor's lists of all queues sorted and wrote them in one piece: 100,000
// queues took 160 to 180 ms of CPU in one turn of the event loop.

import { expect, it } from "vitest";
import { wholeRow } from "../../src/core/slices/slices.ts";
import type { Reader } from "../../src/engine/run/reader.ts";
import { Queues } from "../../src/protocols/conductor/server/queues.ts";

const many = 5_000;

it("lists of all queues are sorted and written in several turns", async () => {
  const names = Array.from({ length: many }, (_, at) => `queue-${at}`);
  const turns: number[] = [];
  const reader: Pick<Reader, "queued" | "laneNames" | "turn"> = {
    queued: async () => new Map([["queue-7", 3]]),
    laneNames: async () => new Set(names),
    turn: async (rows) => void turns.push(rows * wholeRow),
  };
  const queues = new Queues({ reader: reader as Reader });
  const all = JSON.parse(String((await queues.all()).body)) as { [name: string]: number };
  expect([Object.keys(all), all["queue-7"], all["queue-8"]]).toEqual([[...names].sort(), 3, 0]);
  const verbose = JSON.parse(String((await queues.verbose()).body)) as { [name: string]: object };
  expect([Object.keys(verbose).length, verbose["queue-7"]]).toEqual([many, { a: { size: 3, uacked: 0 } }]);
  expect(Math.max(...turns)).toBeLessThanOrEqual(1_000);
  // Both lists are sorted and written.
  expect(turns.reduce((sum, rows) => sum + rows)).toBeGreaterThanOrEqual(4 * many);
});
