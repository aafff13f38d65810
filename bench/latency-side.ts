// One side of the latency comparison, in a process of its own: the producer and the worker. The server is another process.
import { withFolder } from "./environment.ts";
import { answerApart } from "./processes.ts";
import { quantile } from "./stats.ts";

// Long enough for every worker to wait in its long poll again before the next start.
const IDLE_MS = 5;

export interface LatencyRequest {
  readonly side: "ours" | "embedded" | "bullmq";
  readonly warmUpSamples: number;
  readonly samples: number;
}

export interface LatencyAnswer {
  readonly samples: number;
  readonly p50: number;
  readonly p99: number;
  readonly lost: number;
  readonly repeated: number;
}

/** Starts one task; settles when the side has its result, so that the next start finds everything idle. */
type StartAndFinish = (sequence: number) => Promise<unknown>;

class Entries {
  readonly times = new Map<number, number>();
  repeated = 0;

  readonly handler = <T extends { readonly sequence: number }>(input: T): T => {
    const now = performance.now();
    if (this.times.has(input.sequence)) this.repeated++;
    this.times.set(input.sequence, now);
    return input;
  };
}

async function sample(entries: Entries, startAndFinish: StartAndFinish, request: LatencyRequest): Promise<LatencyAnswer> {
  const latencies: number[] = [];
  let lost = 0;
  for (let sequence = 0; sequence < request.warmUpSamples + request.samples; sequence++) {
    await new Promise((resolve) => setTimeout(resolve, IDLE_MS));
    const before = performance.now();
    await startAndFinish(sequence);
    const entered = entries.times.get(sequence);
    if (entered === undefined) lost++;
    else if (sequence >= request.warmUpSamples) latencies.push(entered - before);
  }
  return { samples: latencies.length, p50: quantile(latencies, 0.5), p99: quantile(latencies, 0.99), lost, repeated: entries.repeated };
}

await answerApart<LatencyRequest, LatencyAnswer>((request) =>
  withFolder(async (folder) => {
    const entries = new Entries();
    if (request.side === "ours") {
      const { openRemote } = await import("./ours.ts");
      const remote = await openRemote(folder, entries.handler);
      const answer = await sample(entries, remote.startAndFinish, request);
      await remote.close();
      return answer;
    }
    const open = request.side === "embedded" ? (await import("./ours.ts")).openTasks : (await import("./bullmq.ts")).openBullmq;
    const side = await open(folder, 1, entries.handler);
    const answer = await sample(entries, (sequence) => side.submit({ sequence, padding: "" }), request);
    await side.close();
    return answer;
  }),
);
