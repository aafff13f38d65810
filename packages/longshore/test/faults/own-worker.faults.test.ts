// Our own worker, unchanged, while its server is killed again and again: running work continues each time.
import { expect, it } from "vitest";
import { readLog } from "./api.ts";
import { faultSeed, inArena } from "./arena.ts";
import { planFaults, playFaults } from "./chaos.ts";
import { NO_FAULTS } from "./round.ts";
import { chain, diamond, fanOutAndIn } from "./shapes.ts";

const RUNS = 40;
const WORKERS = 2;
const DURATION_MS = 15_000;
const TTL_SECS = 3;
const END_MS_MAX = 120_000;

it("our own workers lose no running job while the server is killed, ended and stopped", async () => {
  const seed = faultSeed();
  await inArena(async (arena) => {
    for (let worker = 0; worker < WORKERS; worker++) await arena.addShellWorker("--slots", "4", "--lease-ttl", `${TTL_SECS}s`).start();
    const workflows: string[] = [];
    for (const jobs of [chain(4), diamond(), fanOutAndIn(4)]) workflows.push(await arena.client.create("own", jobs));
    const runIds: string[] = [];
    const startAll = async (): Promise<void> => {
      for (let run = 0; run < RUNS; run++) runIds.push(await arena.client.start(workflows[run % workflows.length] ?? ""));
    };
    const counts = { ...NO_FAULTS, "kill-server": 5, "end-server": 2 };
    const faults = planFaults({ seed, durationMs: DURATION_MS, workers: WORKERS, links: 0, termMs: TTL_SECS * 1000, counts });
    await Promise.all([startAll(), playFaults(faults, seed, { ...arena, cancelOne: async () => {}, note: () => {} })]);
    await arena.client.untilEnded(runIds, END_MS_MAX);

    const { final } = await arena.judge(runIds);
    expect(final.runs.filter((run) => run.state !== "succeeded")).toEqual([]);
    // Every command that ended was reported, also after a long time without a response.
    expect(final.tasks.filter((task) => task.failures !== 0)).toEqual([]);
    let missing = 0;
    for (const runId of runIds) {
      const lines = await readLog(arena.client.connection, runId);
      for (const { step } of final.tasks.filter((task) => task.runId === runId && task.lost === 0)) {
        const times = lines.filter((line) => line === `${step}\n`).length;
        // A log never delays a result, so a line may be dropped when the server dies twice in a row. But no line is stored twice.
        expect(times).toBeLessThan(2);
        missing += 1 - times;
      }
    }
    process.stdout.write(`faults: ${final.tasks.length} commands, ${missing} log lines given up\n`);
  });
});
