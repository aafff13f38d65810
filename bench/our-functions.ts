// The durable functions of the benchmark, on our own engine: in one process, and on a worker for a server elsewhere.
import { task, work, workflow } from "longshore";
import { serve } from "longshore/server";
import { workflowGraph } from "longshore/workflow-graph";
import type { Input, Output, Side } from "./closed-loop.ts";
import { type Point, perform, type StepInput } from "./functions-shapes.ts";

type Handler = (input: StepInput) => Output;

/** More slots than this are of no use on a few cores. */
const SLOTS_MAX = 100;

function code({ shape, form }: Pick<Point, "shape" | "form">, handler: Handler) {
  const step = task("tally", async (input: StepInput) => handler(input));
  const run = workflow(shape, async (w, input: Input) =>
    perform(
      shape,
      input,
      (given) => (form === "local" ? w.local("tally", () => handler(given)) : w.step(step, given)),
      (steps) => Promise.all(steps),
    ),
  );
  return { step, run };
}

/** Server, worker and callers in one process. */
export async function openFunctions(folder: string, point: Point, handler: Handler): Promise<Side & { close(): Promise<void> }> {
  const server = await serve({ data: folder, port: null });
  const { step, run } = code(point, handler);
  await server.define(run);
  const worker = await work({ tasks: [step], workflows: [run], on: server, slots: slotsFor(point) });
  return {
    submit: (input) => server.execute<Output>(run.name, input),
    close: async () => {
      await worker.stop();
      await server.close();
    },
  };
}

export async function workOn(url: string, point: Point, handler: Handler): ReturnType<typeof work> {
  const { step, run } = code(point, handler);
  return work({ tasks: [step], workflows: [run], on: workflowGraph(url), slots: slotsFor(point) });
}

/** The same code as a client defines it. */
export const definitionOf = (point: Point) => code(point, ({ sequence, padding }) => ({ sequence, padding })).run;

const slotsFor = ({ concurrency }: Point): number => Math.min(SLOTS_MAX, Math.max(10, concurrency));
