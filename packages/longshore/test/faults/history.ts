// The history of every process of a fault test: one JSON object on each line, one file for each process (`worker-2.0.jsonl` is the first
// life of worker-2).
//
// A line is handed to the kernel with one synchronous write before the writer continues, so `kill -9` loses nothing. `at` is wall-clock
// time, to be compared with times of the server. `tick` is the machine's monotonic clock in microseconds, the same for all its processes.
// It puts lines of different files in order.
import { closeSync, openSync, readdirSync, readFileSync, writeSync } from "node:fs";
import { basename, join } from "node:path";

export type ReportVerb = "complete" | "fail";

export type Happening =
  | { kind: "workflow-created"; workflow: string; steps: Record<string, string[]> }
  | { kind: "run-start-sent"; request: number; workflow: string }
  | { kind: "run-start-acknowledged"; request: number; workflow: string; runId: string }
  | { kind: "run-start-unanswered"; request: number; why: string }
  | { kind: "cancel-sent"; runId: string }
  | { kind: "cancel-acknowledged"; runId: string; status: number; state?: string | undefined }
  | { kind: "cancel-refused"; runId: string; status: number }
  | { kind: "cancel-unanswered"; runId: string; why: string }
  /** An ended run is restarted. `family` has the runs whose end may end it. */
  | { kind: "restart-sent"; runId: string; family: string[] }
  | { kind: "restart-acknowledged"; runId: string }
  | { kind: "claim-sent"; claim: number }
  | ({ kind: "claim-got"; claim: number } & Claim)
  | { kind: "claim-empty"; claim: number }
  | { kind: "claim-unanswered"; claim: number; why: string }
  | { kind: "handler-started"; leaseId: string }
  | { kind: "heartbeat-sent"; leaseId: string; beat: number }
  | {
      kind: "heartbeat-got";
      leaseId: string;
      beat: number;
      status: number;
      cancelled?: boolean | undefined;
      expiresAt?: number | undefined;
    }
  | { kind: "log-sent"; leaseId: string; runId: string; line: string }
  | { kind: "log-got"; leaseId: string; runId: string; line: string; status: number }
  | { kind: "report-sent"; leaseId: string; verb: ReportVerb; token?: string | undefined }
  | { kind: "report-got"; leaseId: string; verb: ReportVerb; status: number }
  | { kind: "report-unanswered"; leaseId: string; verb: ReportVerb; why: string }
  | { kind: "process-started" | "process-killed" | "process-ended" | "process-stopped" | "process-resumed"; name: string }
  | { kind: "graph-acknowledged"; task: string; shape: string }
  | { kind: "node-begun"; task: string; node: string; epoch: number }
  | { kind: "batch-processed"; task: string; node: string; epoch: number; uid: string; token: string }
  | { kind: "disk-full" | "disk-free" }
  | { kind: "link-silent" | "link-restored" | "link-cut"; name: string };

/** One answered claim. `token` values in `upstream` are what the completions of the direct dependencies said. */
export interface Claim {
  leaseId: string;
  runId: string;
  step: string;
  attempt: number;
  ttlMs: number;
  grantedAt: number;
  expiresAt: number;
  upstream: Record<string, string | undefined>;
  /** The number of the hand-out, when the worker knows it. */
  grant?: number;
  /** It is only an offer, which the first heartbeat or report accepts. It lasts at most this long, and promises nothing before. */
  offerMs?: number;
  /** It came from a stream of messages, which may have stored it for a while, and may deliver it again. */
  stored?: boolean;
}

/** An event with its time and place; `where` is `file:line`. */
export type Entry<Kind extends Happening["kind"] = Happening["kind"]> = Extract<Happening, { kind: Kind }> & {
  at: number;
  tick: number;
  where: string;
};

export interface HistoryWriter {
  write(happening: Happening): void;
  close(): void;
}

export function openHistory(path: string): HistoryWriter {
  const file = openSync(path, "a");
  let open = true;
  return {
    write(happening) {
      const tick = Number(process.hrtime.bigint() / 1000n);
      writeSync(file, `${JSON.stringify({ at: Date.now(), tick, ...happening })}\n`);
    },
    close() {
      if (open) closeSync(file);
      open = false;
    },
  };
}

/** Every line of every file of a directory, in the machine's order. */
export function readHistory(directory: string): Entry[] {
  const entries: Entry[] = [];
  for (const name of readdirSync(directory).sort()) {
    if (name.endsWith(".jsonl")) entries.push(...readHistoryFile(join(directory, name)));
  }
  // The sort is stable, so lines of one file written in the same microsecond keep their order.
  return entries.sort((a, b) => a.tick - b.tick);
}

function readHistoryFile(path: string): Entry[] {
  const lines = readFileSync(path, "utf8").split("\n");
  // After the last newline there is nothing, or a line that the death of its writer has cut: nothing depends on it.
  lines.pop();
  return lines.map((line, index) => ({ ...(JSON.parse(line) as Entry), where: `${basename(path)}:${index + 1}` }));
}
