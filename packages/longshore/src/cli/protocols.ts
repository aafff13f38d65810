// The protocols in which `longshore work` can take tasks. Each is loaded only when it is used.

import { join } from "node:path";
import { durationMs } from "../duration.ts";
import type { Transport } from "../runner/transport.ts";
import type { WorkerSettings } from "./worker.ts";

export type ProtocolName = "workflow-graph" | "conductor" | "stepflow" | "stepflow-http" | "flowkit";

export interface WorkerProtocol {
  readonly title: string;
  /** Whether a worker polls for one task by its name, so that each task is a worker of its own; else all tasks together are one worker. */
  readonly perTask: boolean;
  /** Where its workers run by default: in supervised processes, or in this one when its parent supervises. */
  readonly isolate: "process" | "thread";
  /** True when standard output belongs to the parent of the worker. */
  readonly ownsOutput: boolean;
  /** True when its workers log in JSON by default. */
  readonly structuredLog: boolean;
  /** Options that would do nothing, and why; saying one of them is a mistake. */
  readonly without: { readonly [Option in keyof WorkerSettings]?: string };
  /** The tasks are those of one worker. */
  transport(settings: WorkerSettings, tasks: readonly string[], print: (text: string) => void): Promise<Transport>;
}

/** Protocols whose workers poll have no address to listen at. */
const notServing = {
  port: "its workers poll for tasks, and are not called",
  host: "its workers poll for tasks, and are not called",
  handshake: "its workers poll for tasks, and are not called",
} as const;

export const workerProtocols: Readonly<Record<ProtocolName, WorkerProtocol>> = {
  "workflow-graph": {
    title: "workflow-graph",
    perTask: false,
    isolate: "process",
    ownsOutput: false,
    structuredLog: false,
    without: notServing,
    async transport({ on, token, shell, labels, workerId, leaseTtl, heartbeat, poll, cancelPoll, logFlush, cwd }) {
      const { workflowGraph } = await import("../protocols/workflow-graph/worker/index.ts");
      return workflowGraph(on, { token, shell, labels, workerId, leaseTtl, heartbeat, poll, cancelPoll, logFlush, cwd });
    },
  },
  conductor: {
    title: "Conductor",
    perTask: true,
    isolate: "process",
    ownsOutput: false,
    structuredLog: false,
    without: {
      ...notServing,
      token: "a worker logs in with CONDUCTOR_AUTH_KEY and CONDUCTOR_AUTH_SECRET",
      shell: "its workers run tasks, not shell commands",
      labels: "its workers poll for tasks by their names",
      leaseTtl: "responseTimeoutSeconds in a task's definition is the lease duration",
      heartbeat: "it follows from responseTimeoutSeconds in a task's definition",
      logFlush: "log lines travel with the result",
      cwd: "its workers run no shell commands",
    },
    async transport({ on, workerId, poll, cancelPoll }, tasks) {
      const { conductor } = await import("../protocols/conductor/worker/index.ts");
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
  stepflow: {
    title: "Stepflow",
    perTask: false,
    isolate: "process",
    ownsOutput: false,
    structuredLog: true,
    without: {
      ...notServing,
      shell: "its workers run components, not shell commands",
      labels: "its orchestrator finds components by their paths",
      leaseTtl: "its orchestrator sets the lease duration",
      heartbeat: "its orchestrator sets the interval",
      poll: "tasks are pushed to the worker",
      cancelPoll: "heartbeats report a cancel",
      logFlush: "its orchestrator takes no log lines",
      cwd: "its workers run no shell commands",
    },
    async transport({ workerId, token }) {
      const { stepflowFromEnvironment } = await import("../protocols/stepflow/worker/index.ts");
      // The target was found by the same variables.
      return stepflowFromEnvironment(process.env, { workerId, token }) as Transport;
    },
  },
  flowkit: {
    title: "FlowKit",
    perTask: false,
    isolate: "process",
    ownsOutput: false,
    structuredLog: false,
    without: {
      ...notServing,
      shell: "its workers run tasks, not shell commands",
      labels: "its workers take commands by the names of their tasks",
      poll: "commands are pushed to the worker",
      logFlush: "its coordinator takes no log lines",
      cwd: "its workers run no shell commands",
    },
    async transport({ workerId, token, leaseTtl, heartbeat, cancelPoll }) {
      const { flowkit } = await import("../protocols/flowkit/worker/index.ts");
      // The target was found by the same variables.
      return flowkit({
        ...(workerId === undefined ? {} : { workerId }),
        ...(token === undefined ? {} : { token }),
        ...(leaseTtl === undefined ? {} : { leaseTtlSec: durationMs(leaseTtl, "leaseTtl") / 1_000 }),
        ...(heartbeat === undefined ? {} : { hbIntervalSec: durationMs(heartbeat, "heartbeat") / 1_000 }),
        ...(cancelPoll === undefined ? {} : { dbCancelPollMs: durationMs(cancelPoll, "cancelPoll") }),
      });
    },
  },
  "stepflow-http": {
    title: "Stepflow over HTTP",
    perTask: false,
    isolate: "thread",
    ownsOutput: true,
    structuredLog: true,
    without: {
      token: "its protocol has no authentication",
      shell: "its workers run components, not shell commands",
      labels: "its orchestrator finds components by their paths",
      workerId: "it names itself to balancers",
      leaseTtl: "a task lasts as long as the request for it",
      heartbeat: "a task lasts as long as the request for it",
      poll: "its orchestrator calls, and the worker listens",
      cancelPoll: "a cancel is the end of a request",
      logFlush: "its orchestrator takes no log lines",
      cwd: "its workers run no shell commands",
    },
    async transport({ port, host, handshake }, _tasks, print) {
      const { stepflowHttp } = await import("../protocols/stepflow/worker/index.ts");
      return stepflowHttp({ port, host, handshake, announce: print });
    },
  },
};
