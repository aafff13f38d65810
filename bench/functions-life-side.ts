// One measurement of long lives, in a process of its own: the steps of one long run, or a file full of sleeping runs.
import { task, work, workflow } from "longshore";
import { serve } from "longshore/server";
import type { Span, StepCost } from "./growth-side.ts";
import { answerApart, ownCpuMicroseconds, residentBytes } from "./processes.ts";
import { median } from "./stats.ts";

export type LifeRequest =
  | {
      readonly kind: "steps";
      readonly folder: string;
      readonly warmUpSteps: number;
      readonly steps: number;
      readonly spans: readonly Span[];
    }
  | { readonly kind: "sleepers"; readonly folder: string; readonly runs: number };

export interface StepsAnswer {
  readonly spans: readonly StepCost[];
  readonly lost: number;
  readonly repeated: number;
}

export interface SleepersAnswer {
  readonly asleep: number;
  readonly seconds: number;
  readonly residentMib: number;
  readonly cpuPerRun: number;
}

// So many callers at once that commits hold large batches: filling is preparation, not measurement.
const FILL_CONCURRENCY = 500;

async function steps({ folder, warmUpSteps, steps: count, spans }: LifeRequest & { kind: "steps" }): Promise<StepsAnswer> {
  let entered: (index: number) => void = () => undefined;
  const link = task("link", async (index: number) => {
    entered(index);
    return index + 1;
  });
  const chain = workflow("chain", async (w, length: number) => {
    let at = 0;
    while (at < length) at = await w.step(link, at);
    return at;
  });
  await using server = await serve({ data: folder, port: null });
  await using _worker = await work({ tasks: [link], workflows: [chain], on: server, slots: 2 });
  await (await server.start(chain, warmUpSteps)).result();
  const times: number[] = [];
  const cpu: number[] = [];
  let repeated = 0;
  entered = (index) => {
    if (times[index] !== undefined) repeated++;
    times[index] = performance.now();
    cpu[index] = ownCpuMicroseconds();
  };
  await (await server.start(chain, count)).result();
  let lost = 0;
  for (let index = 0; index < count; index++) if (times[index] === undefined) lost++;
  const costs = spans.map(({ from, to }) => {
    const each = times.slice(from + 1, to + 1).map((time, index) => time - (times[from + index] as number));
    return { milliseconds: median(each), cpu: ((cpu[to] as number) - (cpu[from] as number)) / (to - from) };
  });
  return { spans: costs, lost, repeated };
}

async function sleepers({ folder, runs }: LifeRequest & { kind: "sleepers" }): Promise<SleepersAnswer> {
  let asleep = 0;
  const nap = workflow("nap", async (w, index: number) => {
    asleep++;
    await w.sleep("30d");
    return index;
  });
  await using server = await serve({ data: folder, port: null });
  await using worker = await work({ tasks: [], workflows: [nap], on: server, slots: 50 });
  await server.define(nap);
  const before = { at: performance.now(), cpu: ownCpuMicroseconds() };
  let next = 0;
  const caller = async () => {
    while (next < runs) await server.start("nap", next++);
  };
  await Promise.all(Array.from({ length: FILL_CONCURRENCY }, caller));
  while (asleep < runs) await new Promise((resolve) => setTimeout(resolve, 10));
  // The last turns are reported before the worker stops.
  await worker.stop();
  const cpuPerRun = (ownCpuMicroseconds() - before.cpu) / runs;
  return { asleep, seconds: (performance.now() - before.at) / 1000, residentMib: residentBytes(process.pid) / 2 ** 20, cpuPerRun };
}

await answerApart<LifeRequest, unknown>((request) => (request.kind === "steps" ? steps(request) : sleepers(request)));
