// Durable functions, signals, schedules and single tasks through a node that does not own the data. The owner is killed, then the node of the
// clients and workers is restarted: no client gets an error, and everything happens once.

import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { connect as connectCli } from "../../src/cli/client.ts";
import { liveSource } from "../../src/cli/verify-live.ts";
import type { Client } from "../../src/client/client.ts";
import { connect } from "../../src/client/connect.ts";
import { task } from "../../src/core/task.ts";
import { workflowGraph } from "../../src/protocols/workflow-graph/worker/index.ts";
import { type Schedule, schedule } from "../../src/schedule.ts";
import { verify } from "../../src/verify/verify.ts";
import { work } from "../../src/work.ts";
import { workflow } from "../../src/workflow.ts";
import type { NodeProcess } from "../support/cluster.ts";
import { postgresMissing, startMsMax, TestPostgres } from "../support/postgres.ts";
import { untilElsewhere } from "../support/until.ts";
import { inCluster } from "./cluster-load.ts";

/** Rounds that run at the same time. */
const CALLERS = 4;
/** The number of rounds that end between two faults. */
const ROUNDS = 6;
/** Schedules with this interval, at different times. */
const EVERY_MS = 1_000;
const SCHEDULES = 4;

/** How often each task was performed. */
const performed = new Map<string, number>();
const double = task("double", async (n: number, { ids }) => {
  performed.set(ids.taskId, (performed.get(ids.taskId) ?? 0) + 1);
  return 2 * n;
});
const half = workflow("half", async (w, n: number) => (await w.step(double, n)) / 4);
const order = workflow(
  "order",
  async (w, n: number) => {
    const doubled = await w.step(double, n);
    const word = await w.signal("go");
    await w.sleep(20);
    const [one, other] = await Promise.all([w.run(half, n), w.step(double, doubled)]);
    return [word, one, other, w.uuid()];
  },
  { uses: [half] },
);
const tick = workflow("tick", async (_w, { at }: { at: string }) => at);

/** One run with a signal that is sent twice, its events, its result, and a task without a run. */
async function round(client: Client, n: number): Promise<void> {
  const run = await client.start(order, n, n % 2 === 0 ? { delay: 30, priority: n % 3 } : {});
  const states: string[] = [];
  const following = (async () => {
    for await (const event of run.events()) if (event.kind === "run") states.push(event.state);
  })();
  const signals = await Promise.all([run.signal("go", `go ${n}`, { key: "k" }), run.signal("go", `go ${n}`, { key: "k" })]);
  const [result, called] = await Promise.all([run.result(), client.call(double, n, { delay: 10 }), following]);
  expect(signals.map(({ number }) => number)).toEqual([1, 1]);
  expect(result.slice(0, 3)).toEqual([`go ${n}`, n / 2, 4 * n]);
  expect(called).toBe(2 * n);
  expect(states.at(-1)).toBe("succeeded");
  expect((await run.status()).signals).toEqual({ sent: 1, kept: 0 });
}

async function put({ url }: NodeProcess, { name, rules }: Schedule): Promise<void> {
  const body = JSON.stringify({ ...rules, input: {} });
  const headers = { "content-type": "application/json" };
  const answer = await fetch(`${url}/api/longshore/v1/schedules/${name}`, { method: "PUT", headers, body });
  expect([answer.status, await answer.text()]).toEqual([201, expect.any(String)]);
}

/** Each schedule has one run for each of its times from the first to the last, whichever node owned the data at that time. */
async function checkTicks(client: Client): Promise<number> {
  const times: number[] = [];
  for await (const { input } of client.runs({ workflow: tick.name })) times.unshift(Date.parse((input as { at: string }).at));
  for (let index = 0; index < SCHEDULES; index++) {
    const own = times.filter((at) => at % EVERY_MS === (index * EVERY_MS) / SCHEDULES);
    expect(own.length).toBeGreaterThan(1);
    expect(own).toEqual(own.map((_, place) => (own[0] as number) + place * EVERY_MS));
  }
  return times.length;
}

if (postgresMissing !== undefined) it("functions survive the end of an owner", (context) => context.skip(`needs ${postgresMissing}`));
else
  describe("a cluster with durable functions", () => {
    let postgres: TestPostgres;
    beforeAll(async () => {
      postgres = await TestPostgres.start();
    }, startMsMax);
    afterAll(() => postgres.remove(), startMsMax);

    it("performs each turn, task, signal and tick once when its nodes end, and no client gets an error", { timeout: 120_000 }, async () => {
      await inCluster({ postgres, nodes: 2, flags: ["--lease", "1s"] }, async ({ cluster }) => {
        const [owner, other] = cluster.nodes as [NodeProcess, NodeProcess];
        const client = connect(other.url);
        // Longer than a restart of its node, so that no task is handed out again while it runs. A task whose hand-out was lost is handed out
        // again after this time.
        const on = workflowGraph(other.url, { leaseTtl: "20s" });
        const worker = await work({ tasks: [double], workflows: [order, half, tick], on, slots: 8, logger: false, signals: false });
        try {
          await client.define(tick);
          for (let index = 0; index < SCHEDULES; index++) {
            const rules = {
              every: EVERY_MS,
              anchor: (index * EVERY_MS) / SCHEDULES,
              overlap: "allow",
              catchUp: "all",
              catchUpWindow: "10m",
            } as const;
            await put(other, schedule(`tick-${index}`, { workflow: "tick", tickField: "at", ...rules }));
          }
          let [begun, ended] = [0, 0];
          const stopped = new AbortController();
          const calling = Promise.all(
            Array.from({ length: CALLERS }, async () => {
              for (; !stopped.signal.aborted; ended++) await round(client, begun++);
            }),
          );
          const failed = calling.then(() => false);
          const more = async () => {
            const wanted = ended + ROUNDS;
            await Promise.race([untilElsewhere(() => ended >= wanted), failed]);
          };
          await more();
          await owner.kill();
          await more();
          await owner.start();
          await more();
          await other.end();
          await other.start();
          await more();
          expect(await cluster.owner()).toBe(owner);
          stopped.abort();
          await calling;
          const ticks = await checkTicks(client);
          expect(performed.size).toBe(4 * ended);
          expect([...new Set(performed.values())]).toEqual([1]);
          const { findings } = await verify(liveSource(connectCli({ on: other.url })), { recorded: [], now: 0 });
          expect(findings).toEqual([]);
          process.stdout.write(`faults: functions in a cluster: ${ended} runs, ${performed.size} tasks, ${ticks} ticks, each once\n`);
        } finally {
          await worker.stop({ force: true });
        }
      });
    });
  });
