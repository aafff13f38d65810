// The protocols in which `longshore work` can ask for tasks. Each is loaded only when it is used.

import { join } from "node:path";
import type { Transport } from "../runner/transport.ts";
import type { WorkerSettings } from "./worker.ts";

export type ProtocolName = "workflow-graph" | "conductor";

export interface WorkerProtocol {
  readonly title: string;
  /** Whether a worker asks for one task by its name, so that each task is a worker of its own; else all tasks together are one worker. */
  readonly perTask: boolean;
  /** Options that would do nothing, and why; saying one of them is a mistake. */
  readonly without: { readonly [Option in keyof WorkerSettings]?: string };
  /** The tasks are those of one worker. */
  transport(settings: WorkerSettings, tasks: readonly string[]): Promise<Transport>;
}

export const workerProtocols: Readonly<Record<ProtocolName, WorkerProtocol>> = {
  "workflow-graph": {
    title: "workflow-graph",
    perTask: false,
    without: {},
    async transport({ on, token, shell, labels, workerId, leaseTtl, heartbeat, poll, cancelPoll, logFlush, cwd }) {
      const { workflowGraph } = await import("../protocol/workflow-graph/index.ts");
      return workflowGraph(on, { token, shell, labels, workerId, leaseTtl, heartbeat, poll, cancelPoll, logFlush, cwd });
    },
  },
  conductor: {
    title: "Conductor",
    perTask: true,
    without: {
      token: "a worker logs in with CONDUCTOR_AUTH_KEY and CONDUCTOR_AUTH_SECRET",
      shell: "its workers run tasks, not shell commands",
      labels: "its workers ask for tasks by their names",
      leaseTtl: "responseTimeoutSeconds in a task's definition says how long it is a worker's",
      heartbeat: "it follows from responseTimeoutSeconds in a task's definition",
      logFlush: "log lines travel with the result",
      cwd: "its workers run no shell commands",
    },
    async transport({ on, workerId, poll, cancelPoll }, tasks) {
      const { conductor } = await import("../protocol/conductor/index.ts");
      // Each process keeps what it could not deliver in a place of its own, where its successor finds it.
      const outbox = join(
        ".longshore",
        "outbox",
        tasks
          .join("+")
          .replace(/[^\w.+-]/g, "_")
          .slice(0, 100),
      );
      return conductor(on, { workerId, pollInterval: poll, cancelPoll, outbox });
    },
  },
};
