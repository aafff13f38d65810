// What every side of the functions benchmark runs: three shapes of a durable function, and the one step that they consist of.
import type { Input, Output } from "./closed-loop.ts";

/** The number of steps of one run, and whether they run side by side. */
export const SHAPES = {
  step: { label: "one step", steps: 1, parallel: false },
  ten: { label: "ten steps in turn", steps: 10, parallel: false },
  fan: { label: "fan-out of 100", steps: 100, parallel: true },
} as const;

export type ShapeName = keyof typeof SHAPES;

/**
 * What a step is. `local`: a side effect that the process of the function runs itself and keeps in the journal: `w.local` of ours, `ctx.run`
 * of Restate. `task`: durable work that any process may do: `w.step` of ours, a call of another service of Restate.
 */
export type Form = "local" | "task";
export const FORMS = ["local", "task"] as const;

export interface Point {
  readonly shape: ShapeName;
  readonly form: Form;
  readonly concurrency: number;
}

/** The input of one step: its run and its number. */
export interface StepInput extends Input {
  readonly index: number;
}

const PADDING_OUT = "o".repeat(50);

/** Counts every execution of every step, so that a lost or repeated one is seen. */
export class StepWitness {
  readonly #steps: number;
  readonly #executions: Uint8Array[] = [];
  /** Executions of different steps, and executions of a step that had been executed before. */
  executed = 0;
  repeated = 0;

  constructor(shape: ShapeName) {
    this.#steps = SHAPES[shape].steps;
  }

  readonly handler = ({ sequence, index }: StepInput): Output => {
    this.#executions[sequence] ??= new Uint8Array(this.#steps);
    const own = this.#executions[sequence] as Uint8Array;
    if (own[index] === 0) this.executed++;
    else this.repeated++;
    own[index] = 1;
    return { sequence, padding: PADDING_OUT };
  };
}

/** The shape, with the step of this side. */
export async function perform(
  shape: ShapeName,
  { sequence, padding }: Input,
  step: (input: StepInput) => Promise<Output>,
  all: (steps: Promise<Output>[]) => Promise<Output[]>,
): Promise<Output> {
  const { steps, parallel } = SHAPES[shape];
  const input = (index: number): StepInput => ({ sequence, index, padding });
  if (parallel) {
    const outputs = await all(Array.from({ length: steps }, (_, index) => step(input(index))));
    return outputs.at(-1) as Output;
  }
  let last = await step(input(0));
  for (let index = 1; index < steps; index++) last = await step(input(index));
  return last;
}
