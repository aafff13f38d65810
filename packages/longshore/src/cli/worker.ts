// A worker on a server that is reached by its URL, as `longshore work` and the children of `dev` and `demo` run it.

import type { Duration } from "../duration.ts";
import { workflowGraph } from "../protocol/workflow-graph/index.ts";
import type { Task } from "../task.ts";
import { type WorkHandle, work } from "../work.ts";

export interface WorkerSettings {
  readonly on: string;
  readonly token?: string;
  readonly shell?: boolean;
  readonly labels?: readonly string[];
  readonly slots?: number;
  readonly workerId?: string;
  readonly leaseTtl?: Duration;
  readonly heartbeat?: Duration;
  readonly poll?: Duration;
  readonly cancelPoll?: Duration;
  readonly logFlush?: Duration;
  readonly drain?: Duration;
  readonly cwd?: string;
}

export async function startWorker(tasks: readonly Task[], settings: WorkerSettings): Promise<WorkHandle> {
  const { on, slots, drain, token, shell, labels, workerId, leaseTtl, heartbeat, poll, cancelPoll, logFlush, cwd } = settings;
  const transport = workflowGraph(on, { token, shell, labels, workerId, leaseTtl, heartbeat, poll, cancelPoll, logFlush, cwd });
  const worker = await work({ tasks, on: transport, slots, drain });
  const able = [...tasks.map((task) => task.name), ...(shell ? ["shell commands"] : [])];
  // Not before: a server that is not there or does not let this worker in is told as a failure.
  worker.on("connected", () => process.stderr.write(`longshore info: working for ${on}: ${able.join(", ")}\n`));
  return worker;
}
