// The attacker holds an operator token, or is a durable function with thousands of commands. Its run is retried or continues as another
// pass. Each of these once read every record of the run in one transaction, also those of earlier lives. With 20,000 commands, every other
// request waited for up to half a second. The test counts records that are read in one turn of the event loop, not time.

import { expect, it, onTestFinished, vi } from "vitest";
import { atOnce } from "../../src/core/slices/slice-work.ts";
import { functionLane, type Turn } from "../../src/core/turn.ts";
import type { TaskRow } from "../../src/engine/board/task.ts";
import { nextJournal } from "../../src/engine/run/driven-journal.ts";
import type { Run } from "../../src/engine/run/run.ts";
import { openEnginePort } from "../support/engine-port.ts";
import { temporaryFolder } from "../support/parts.ts";
import { countingRows, lookedAt } from "./counting-rows.ts";

const many = 2_500;
/** A slice reads and writes a few rows for each of its records; two slices may fall into one turn. */
const rowsMax = 1_500;

async function started() {
  const counted = countingRows();
  const { engine, send, close } = await openEnginePort({ directory: temporaryFolder(), open: counted.open });
  onTestFinished(close);
  const looked = lookedAt(engine.store.board.tasks);
  const settled = () =>
    vi.waitFor(
      async () => {
        await engine.store.commit.quiet();
        expect(await engine.store.runs.messages()).toEqual([]);
      },
      { timeout: 30_000, interval: 20 },
    );
  return {
    send,
    /** The most rows, and the most records, of one turn of the event loop. */
    async fullest(act: () => Promise<{ status: number }>) {
      counted.longest = 0;
      looked.longest = 0;
      expect((await act()).status).toBeLessThan(300);
      await settled();
      return Math.max(counted.longest, looked.longest);
    },
    async take(): Promise<{ lease: string; turn: Turn }> {
      const labels = [`handler:${functionLane("f")}`, `handler:${functionLane("f", "w")}`];
      const claimed = await send("POST", "/jobs/claim", { worker_id: "w", labels, ttl_secs: 600, wait_secs: 20 });
      const { job, lease } = JSON.parse(claimed.text) as { job: { command: string }; lease: { lease_id: string } };
      return { lease: lease.lease_id, turn: (JSON.parse(job.command) as { input: Turn }).input };
    },
  };
}

it("no operator command for a function with thousands of records reads more of them in one turn than a slice has", async () => {
  const { send, take, fullest } = await started();
  await send("POST", "/longshore/v1/definitions", { source: { name: "f", function: true } });
  const { id } = JSON.parse((await send("POST", "/longshore/v1/runs", { workflow: "f" })).text) as { id: string };
  const order = (verb: string) => () => send("POST", `/longshore/v1/runs/${id}/${verb}`);
  let { lease } = await take();
  const complete = (end: object) => () => send("POST", `/jobs/${lease}/complete`, { output: { by: "w-1", commands: [], end } });
  for (let node = 1; node <= many; node += 100) {
    const commands = Array.from({ length: 100 }, (_, at) => ({
      node: node + at,
      kind: at % 2 === 0 ? "local" : "signal",
      name: "s",
      after: 0,
    }));
    expect((await send("POST", `/jobs/${lease}/commands`, { by: "w-1", commands })).status).toBe(200);
  }
  const few = (rows: number) => (rows > rowsMax ? rows : "few rows");
  expect(few(await fullest(complete({ kind: "failed", error: "x" })))).toBe("few rows");
  expect(few(await fullest(order("retry")))).toBe("few rows");
  const again = await take();
  // The last command, which waits for a signal that never came, is given again.
  expect(again.turn).toMatchObject({ life: 1, after: many / 2, upTo: many / 2, commands: many });
  lease = again.lease;
  expect(few(await fullest(complete({ kind: "continued", input: 1 })))).toBe("few rows");
  expect((await take()).turn).toMatchObject({ life: 2, commands: 0, pass: 1 });
  expect(few(await fullest(order("cancel")))).toBe("few rows");
  // The run now has one record, besides those of its earlier lives.
  expect(few(await fullest(order("retry")))).toBe("few rows");
  expect((await take()).turn).toMatchObject({ life: 3, commands: 0 });
}, 120_000);

it("the journal of another life is computed in slices", () => {
  let [now, longest] = [0, 0];
  const record = (node: number) => ({ node, state: "done", ordinal: node, attempt: 0, command: "0 local s", signal: null }) as TaskRow;
  class Counting extends Map<number, TaskRow> {
    override *[Symbol.iterator](): MapIterator<[number, TaskRow]> {
      for (const entry of this.entries()) {
        longest = Math.max(longest, ++now);
        yield entry;
      }
    }
  }
  const records = new Counting(Array.from({ length: 20_000 }, (_, at) => [at + 1, record(at + 1)]));
  const run = { recorded: 20_000, backlog: null } as Run;
  for (const change of [{ kind: "keep", from: undefined } as const, { kind: "empty", sent: 0 } as const]) {
    const work = nextJournal(records, run, change);
    for (now = 0; !work.next().done; now = 0);
    expect([longest > 0, longest > 2_000 ? longest : "few"]).toEqual([true, "few"]);
  }
  expect(atOnce(nextJournal(records, run, { kind: "keep", from: 5 }))).toMatchObject({ recorded: 20_000, void: [[5, 0]] });
});
