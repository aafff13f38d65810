// One side of the functions benchmark. Embedded: everything in this process. Otherwise this is the process of the callers, and the server
// and the worker are others.
import { type Client, connect } from "longshore/client";
import { closedLoop, type Input, type LoopResult, type Output, type Side } from "./closed-loop.ts";
import { withFolder } from "./environment.ts";
import { type Form, type ShapeName, StepWitness } from "./functions-shapes.ts";
import { openFunctions } from "./our-functions.ts";
import { answerApart, cpuMicroseconds } from "./processes.ts";

export interface FunctionsRequest {
  readonly side: "embedded" | "http" | "restate";
  readonly form: Form;
  readonly shape: ShapeName;
  readonly concurrency: number;
  readonly warmUpSeconds: number;
  readonly seconds: number;
  /** Where the server is, and the processes that do part of the work. */
  readonly url: string;
  readonly pids: readonly number[];
}

export interface FunctionsAnswer extends LoopResult {
  /** All runs, those of the warm-up included. */
  readonly runs: number;
  /** What a worker in this process has counted. */
  readonly counted?: { readonly executed: number; readonly repeated: number };
}

/** Steps are counted where they are executed; here only the runs. */
class RunCount {
  runs = 0;

  check(submitted: number) {
    this.runs = submitted;
    return { lost: 0, repeated: 0 };
  }
}

async function embedded(request: FunctionsRequest): Promise<FunctionsAnswer> {
  return withFolder(async (folder) => {
    const witness = new StepWitness(request.shape);
    const side = await openFunctions(folder, request, witness.handler);
    const count = new RunCount();
    const result = await closedLoop(side, count, request);
    await side.close();
    return { ...result, runs: count.runs, counted: { executed: witness.executed, repeated: witness.repeated } };
  });
}

async function remote(request: FunctionsRequest): Promise<FunctionsAnswer> {
  const { url, shape, side, form, pids } = request;
  const storeCpu = () => pids.reduce((sum, pid) => sum + cpuMicroseconds(pid), 0);
  const submit = side === "http" ? submitTo(connect(url), shape) : submitBy(`${url}/${form}/${shape}`);
  const count = new RunCount();
  const result = await closedLoop({ storeCpu, submit }, count, request);
  return { ...result, runs: count.runs };
}

const submitTo =
  (client: Client, shape: ShapeName): Side["submit"] =>
  async (input) =>
    client.execute<Output>(shape, input);

/** Restate runs a handler by one request, whose response is its result. Its own client sends it by `fetch`, as ours does. */
function submitBy(address: string): Side["submit"] {
  return async (input: Input) => {
    const headers = { "content-type": "application/json" };
    const response = await fetch(address, { method: "POST", headers, body: JSON.stringify(input) });
    if (response.status !== 200) throw new Error(`Restate answered with ${response.status}: ${(await response.text()).slice(0, 500)}`);
    return (await response.json()) as Output;
  };
}

await answerApart<FunctionsRequest, FunctionsAnswer>((request) => (request.side === "embedded" ? embedded(request) : remote(request)));
