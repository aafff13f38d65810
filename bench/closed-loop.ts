// The one load of every in-process side: c callers, each of which submits a task, waits for its result and submits the next.
import { ownCpuMicroseconds } from "./processes.ts";
import { quantile } from "./stats.ts";

// The payload sizes are those of an ordinary small task: about 200 bytes in and 80 bytes out.
const PADDING_IN = "i".repeat(170);
const PADDING_OUT = "o".repeat(50);

export interface Input {
  readonly sequence: number;
  readonly padding: string;
}

export interface Output {
  readonly sequence: number;
  readonly padding: string;
}

/** Counts every execution of every task, so that a lost or repeated one is seen. */
export class Witness {
  readonly #executions: number[] = [];

  readonly handler = (input: Input): Output => {
    this.#executions[input.sequence] = (this.#executions[input.sequence] ?? 0) + 1;
    return { sequence: input.sequence, padding: PADDING_OUT };
  };

  check(submitted: number): { readonly lost: number; readonly repeated: number } {
    let lost = 0;
    let repeated = 0;
    for (let sequence = 0; sequence < submitted; sequence++) {
      const executions = this.#executions[sequence] ?? 0;
      if (executions === 0) lost++;
      if (executions > 1) repeated++;
    }
    return { lost, repeated: repeated + Math.max(0, this.#executions.length - submitted) };
  }
}

export interface Side {
  /** Settles with the task's output once the side has made the result durable. */
  submit(input: Input): Promise<Output>;
  /** CPU microseconds so far of the processes outside this one that do part of the side's work. */
  storeCpu?(): number;
}

export interface LoopResult {
  readonly tasks: number;
  readonly perSecond: number;
  readonly cpuPerTask: number;
  readonly ownCpuPerTask: number;
  readonly storeCpuPerTask: number;
  readonly p50: number;
  readonly p99: number;
  readonly lost: number;
  readonly repeated: number;
  readonly wrong: number;
}

export interface LoopOptions {
  readonly concurrency: number;
  readonly warmUpSeconds: number;
  readonly seconds: number;
  /** Called between warm-up and measurement. */
  warm?(): void;
}

export async function closedLoop(side: Side, witness: Pick<Witness, "check">, options: LoopOptions): Promise<LoopResult> {
  let sequence = 0;
  let wrong = 0;
  let latencies: number[] = [];
  const call = async (): Promise<void> => {
    const input = { sequence: sequence++, padding: PADDING_IN };
    const before = performance.now();
    const output = await side.submit(input);
    latencies.push(performance.now() - before);
    if (output?.sequence !== input.sequence) wrong++;
  };
  const load = async (seconds: number): Promise<void> => {
    const until = performance.now() + seconds * 1000;
    const caller = async (): Promise<void> => {
      while (performance.now() < until) await call();
    };
    await Promise.all(Array.from({ length: options.concurrency }, caller));
  };

  await load(options.warmUpSeconds);
  options.warm?.();
  const tasksBefore = sequence;
  latencies = [];
  const ownBefore = ownCpuMicroseconds();
  const storeBefore = side.storeCpu?.() ?? 0;
  const before = performance.now();
  await load(options.seconds);
  const elapsed = (performance.now() - before) / 1000;
  const tasks = sequence - tasksBefore;
  const own = (ownCpuMicroseconds() - ownBefore) / tasks;
  const store = ((side.storeCpu?.() ?? 0) - storeBefore) / tasks;
  return {
    tasks,
    perSecond: tasks / elapsed,
    cpuPerTask: own + store,
    ownCpuPerTask: own,
    storeCpuPerTask: store,
    p50: quantile(latencies, 0.5),
    p99: quantile(latencies, 0.99),
    ...witness.check(sequence),
    wrong,
  };
}
