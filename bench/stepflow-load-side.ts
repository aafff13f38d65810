// The caller of the Stepflow benchmark: c connections. Each starts a run of one step, waits for its result, checks it, and starts the next.
import { type HttpConnection, openConnection } from "./http-connection.ts";
import { answerApart, cpuMicroseconds } from "./processes.ts";
import { quantile } from "./stats.ts";

export interface LoadRequest {
  readonly url: string;
  readonly serverPid: number;
  readonly workerPid: number;
  readonly concurrency: number;
  readonly warmUp: WarmUp;
  readonly seconds: number;
}

/** Ends when it was long enough and enough was run: at few runs a second, code would still be cold after a fixed time. */
export interface WarmUp {
  readonly seconds: number;
  readonly runs: number;
  readonly secondsMax: number;
}

export interface LoadAnswer {
  readonly runs: number;
  readonly perSecond: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
  readonly serverCpu: number;
  readonly workerCpu: number;
  readonly lost: number;
  readonly repeated: number;
  readonly wrong: number;
}

/** About 200 bytes, an ordinary small task. */
const PADDING = "i".repeat(170);

async function post<T>(connection: HttpConnection, path: string, body: unknown): Promise<T> {
  const answer = await connection.request("POST", `/api/v1${path}`, JSON.stringify(body));
  if (answer.status !== 200) throw new Error(`POST ${path} was answered with ${answer.status}: ${answer.body.slice(0, 500)}`);
  return JSON.parse(answer.body) as T;
}

async function store(connection: HttpConnection, component: string): Promise<string> {
  const steps = [{ id: "s1", component: `/python/${component}`, input: { $input: "$" } }];
  const flow = { name: component, description: "one step", steps, output: { $step: "s1" } };
  return (await post<{ flowId: string }>(connection, "/flows", { flow })).flowId;
}

interface RunAnswer<Output> {
  /** The first form is 0.11's. */
  readonly results: readonly { readonly result?: { readonly result: Output }; readonly output?: Output }[];
}

async function run<Output>(connection: HttpConnection, flowId: string, input: unknown): Promise<Output | undefined> {
  const { results } = await post<RunAnswer<Output>>(connection, "/runs", { flowId, input: [input], wait: true });
  return results[0]?.output ?? results[0]?.result?.result;
}

await answerApart<LoadRequest, LoadAnswer>(async ({ url, serverPid, workerPid, concurrency, warmUp, seconds }) => {
  const connections = await Promise.all(Array.from({ length: concurrency }, () => openConnection(url, "undici")));
  const [first] = connections as [HttpConnection];
  const flowId = await store(first, "tally");
  let n = 0;
  let wrong = 0;
  let latencies: number[] = [];
  const load = async (isOver: (seconds: number) => boolean): Promise<void> => {
    const from = performance.now();
    const caller = async (connection: HttpConnection): Promise<void> => {
      while (!isOver((performance.now() - from) / 1000)) {
        const input = { n: n++, padding: PADDING };
        const before = performance.now();
        const output = await run<{ n: number }>(connection, flowId, input);
        latencies.push(performance.now() - before);
        if (output?.n !== input.n) wrong++;
      }
    };
    await Promise.all(connections.map(caller));
  };

  await load((spent) => spent >= warmUp.secondsMax || (spent >= warmUp.seconds && n >= warmUp.runs));
  const before = { n, at: performance.now(), server: cpuMicroseconds(serverPid), worker: cpuMicroseconds(workerPid) };
  latencies = [];
  await load((spent) => spent >= seconds);
  const elapsed = (performance.now() - before.at) / 1000;
  const runs = n - before.n;
  const serverCpu = (cpuMicroseconds(serverPid) - before.server) / runs;
  const workerCpu = (cpuMicroseconds(workerPid) - before.worker) / runs;
  const counted = await run<{ distinct: number; extra: number }>(first, await store(first, "report"), {});
  for (const connection of connections) connection.close();
  return {
    runs,
    perSecond: runs / elapsed,
    p50Ms: quantile(latencies, 0.5),
    p99Ms: quantile(latencies, 0.99),
    serverCpu,
    workerCpu,
    lost: n - (counted?.distinct ?? 0),
    repeated: counted?.extra ?? 0,
    wrong,
  };
});
