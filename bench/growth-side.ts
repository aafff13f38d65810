// One embedded measurement of growth, in a process of its own: filling a file, tasks on a file, or the steps of one long run.
import { closedLoop, type LoopResult, Witness } from "./closed-loop.ts";
import { openChain, openRuns } from "./ours.ts";
import { answerApart, ownCpuMicroseconds } from "./processes.ts";
import { median } from "./stats.ts";

// So many callers at once that commits hold large batches: filling is preparation, not measurement.
const FILL_CONCURRENCY = 1_000;
const PADDING = "f".repeat(170);

export interface Span {
  readonly from: number;
  readonly to: number;
}

export interface StepCost {
  readonly milliseconds: number;
  readonly cpu: number;
}

export type GrowthRequest =
  | { readonly kind: "fill"; readonly folder: string; readonly runs: number }
  | {
      readonly kind: "tasks";
      readonly folder: string;
      readonly concurrency: number;
      readonly warmUpSeconds: number;
      readonly seconds: number;
    }
  | {
      readonly kind: "steps";
      readonly folder: string;
      readonly warmUpSteps: number;
      readonly steps: number;
      readonly spans: readonly Span[];
    };

export interface StepsAnswer {
  readonly spans: readonly StepCost[];
  readonly lost: number;
  readonly repeated: number;
}

async function fill(folder: string, runs: number): Promise<{ readonly seconds: number }> {
  const witness = new Witness();
  const side = await openRuns(folder, FILL_CONCURRENCY, witness.handler);
  const before = performance.now();
  let next = 0;
  const caller = async (): Promise<void> => {
    while (next < runs) await side.submit({ sequence: next++, padding: PADDING });
  };
  await Promise.all(Array.from({ length: FILL_CONCURRENCY }, caller));
  await side.close();
  const { lost, repeated } = witness.check(runs);
  if (lost + repeated > 0) throw new Error(`filling the file lost ${lost} runs and repeated ${repeated}`);
  return { seconds: (performance.now() - before) / 1000 };
}

async function tasks(request: GrowthRequest & { kind: "tasks" }): Promise<LoopResult> {
  const witness = new Witness();
  const side = await openRuns(request.folder, request.concurrency, witness.handler);
  const result = await closedLoop(side, witness, request);
  await side.close();
  return result;
}

async function steps(request: GrowthRequest & { kind: "steps" }): Promise<StepsAnswer> {
  const chain = await openChain(request.folder);
  await chain.run(request.warmUpSteps, () => undefined);
  const times: number[] = [];
  const cpu: number[] = [];
  let repeated = 0;
  await chain.run(request.steps, (index) => {
    if (times[index] !== undefined) repeated++;
    times[index] = performance.now();
    cpu[index] = ownCpuMicroseconds();
  });
  await chain.close();
  let lost = 0;
  for (let index = 0; index < request.steps; index++) if (times[index] === undefined) lost++;
  const spans = request.spans.map(({ from, to }) => {
    const each = times.slice(from + 1, to + 1).map((time, index) => time - (times[from + index] as number));
    return { milliseconds: median(each), cpu: ((cpu[to] as number) - (cpu[from] as number)) / (to - from) };
  });
  return { spans, lost, repeated };
}

await answerApart<GrowthRequest, unknown>(async (request) => {
  if (request.kind === "fill") return fill(request.folder, request.runs);
  return request.kind === "tasks" ? tasks(request) : steps(request);
});
