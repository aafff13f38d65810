// Our own workers, unchanged, on our own server over each of Stepflow's transports, while both are killed, ended and stopped. A worker's
// running work continues when the server dies. When a worker dies, another worker does its work.
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, it } from "vitest";
import { idOfUuid } from "../../src/core/ids.ts";
import { natsMissing, TestNats } from "../support/nats.ts";
import { freePort } from "../support/port.ts";
import { type Arena, faultSeed, inArena, type Wire } from "./arena.ts";
import { type FaultCounts, killAgainAndAgain, planFaults, playFaults } from "./chaos.ts";
import { NO_FAULTS } from "./round.ts";
import { chain, diamond, fanOutAndIn } from "./shapes.ts";
import { STEPFLOW_TERM_MS, wireOf } from "./stepflow-wire.ts";

const RUNS = 60;
const DURATION_MS = 30_000;
const END_MS_MAX = 120_000;
const TASKS = fileURLToPath(new URL("./own-tasks.mjs", import.meta.url));
/** In the worker's own process, so that a kill also ends it. */
const INLINE = [TASKS, "--isolate", "inline", "--slots", "4"];
const ON_SERVER = { "kill-server": 5, "end-server": 2, "stop-server": 1 };
const ON_WORKERS = { "kill-worker": 6, "stop-worker": 3 };

interface Round {
  wire: Wire;
  workers: number;
  start(arena: Arena, worker: number, marks: string): Promise<void>;
  counts: Partial<FaultCounts>;
  beside?: (over: AbortSignal) => Promise<void>;
}

async function play({ wire, workers, start, counts, beside }: Round): Promise<void> {
  const seed = faultSeed();
  await inArena(
    async (arena) => {
      const marks = join(arena.directory, "marks");
      for (let worker = 0; worker < workers; worker++) await start(arena, worker, marks);
      const flows: string[] = [];
      for (const jobs of [chain(4), diamond(), fanOutAndIn(4)]) flows.push(await arena.client.create("own", jobs));
      const runIds: string[] = [];
      const startAll = async (): Promise<void> => {
        for (let run = 0; run < RUNS; run++) runIds.push(await arena.client.start(flows[run % flows.length] ?? ""));
      };
      const all = { ...NO_FAULTS, ...counts };
      const faults = planFaults({ seed, durationMs: DURATION_MS, workers, links: 0, termMs: STEPFLOW_TERM_MS, counts: all });
      const over = new AbortController();
      const trouble = beside?.(over.signal);
      const played = playFaults(faults, seed, { ...arena, cancelOne: async () => {}, note: () => {} });
      await Promise.all([startAll(), played]).finally(() => over.abort());
      await trouble;
      await arena.client.untilEnded(runIds, END_MS_MAX);

      const { final } = await arena.judge(runIds);
      expect(final.runs.filter((run) => run.state !== "succeeded")).toEqual([]);
      // All work that a worker completed was reported, also after a long time without a response: no failure was invented.
      expect(final.tasks.filter((task) => task.failures !== 0)).toEqual([]);
      const executions = executionsIn(marks);
      const wrong = final.tasks.filter(({ runId, step, lost = 0 }) => {
        const times = executions.get(`${runId} ${step}`) ?? 0;
        return times < 1 || times > lost + 1;
      });
      expect(wrong).toEqual([]);
      const lost = final.tasks.reduce((sum, task) => sum + (task.lost ?? 0), 0);
      process.stdout.write(`faults: ${final.tasks.length} steps, ${lost} holds lost, none executed without a reason\n`);
    },
    { wire },
  );
}

/** How often each step was begun. */
function executionsIn(marks: string): Map<string, number> {
  const times = new Map<string, number>();
  for (const line of readFileSync(marks, "utf8").split("\n").slice(0, -1)) {
    const [runId = "", stepId = ""] = line.split(" ");
    const step = `${idOfUuid(runId) ?? runId} ${stepId}`;
    times.set(step, (times.get(step) ?? 0) + 1);
  }
  return times;
}

it("our own workers that pull over gRPC lose nothing while they and the server are killed, ended and stopped", async () => {
  await play({
    wire: wireOf({ type: "grpc", queueName: "python" }),
    workers: 3,
    counts: { ...ON_SERVER, ...ON_WORKERS },
    start({ addOwnWorker, url }, _worker, marks) {
      const address = new URL(url).host;
      const env = { STEPFLOW_TRANSPORT: "grpc", STEPFLOW_TASKS_URL: address, STEPFLOW_BLOB_URL: address, STEPFLOW_QUEUE_NAME: "python" };
      return addOwnWorker(INLINE, { ...env, MARKS_FILE: marks }).start();
    },
  });
});

it("our own workers that are reached by NATS lose nothing while they, the server and NATS are killed, ended and stopped", async (context) => {
  if (natsMissing) return context.skip(`needs ${natsMissing}`);
  const nats = await TestNats.start();
  await play({
    wire: wireOf({ type: "nats", url: nats.url, stream: "STEPFLOW_TASKS" }),
    workers: 3,
    counts: { ...ON_SERVER, ...ON_WORKERS },
    beside: killAgainAndAgain("NATS", nats, 1, [2_000, 6_000]),
    start({ addOwnWorker, url }, _worker, marks) {
      const env = { STEPFLOW_TRANSPORT: "nats", STEPFLOW_NATS_URL: nats.url, STEPFLOW_BLOB_URL: new URL(url).host };
      return addOwnWorker(INLINE, { ...env, MARKS_FILE: marks }).start();
    },
  });
});

it("our own worker, called over HTTP, loses nothing while it and the server are killed, ended and stopped", async () => {
  const port = await freePort();
  await play({
    wire: wireOf({ type: "stepflow", url: `http://127.0.0.1:${port}/` }),
    workers: 1,
    counts: { ...ON_SERVER, ...ON_WORKERS },
    start: ({ addOwnWorker }, _worker, marks) => addOwnWorker([...INLINE, "--port", String(port)], { MARKS_FILE: marks }).start(),
  });
});
