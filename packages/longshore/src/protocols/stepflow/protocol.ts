// Stepflow's entry in the registry. Its workers get tasks in two ways: from a queue, or over HTTP when the orchestrator calls them.

import { resolve } from "node:path";
import type { Transport } from "../../runner/transport.ts";
import type { Protocol } from "../protocol.ts";
import { notServing, type WorkerProtocol } from "../worker-half.ts";
import type { StepflowServing } from "./server/options.ts";
import { telemetryVariables, transportIn } from "./worker/environment.ts";

const ofComponents = {
  shell: "its workers run components, not shell commands",
  labels: "its orchestrator finds components by their paths",
  logFlush: "its orchestrator takes no log lines",
  cwd: "its workers run no shell commands",
};

const queueWorker: WorkerProtocol = {
  name: "stepflow",
  title: "Stepflow",
  perTask: false,
  isolate: "process",
  ownsOutput: false,
  structuredLog: true,
  telemetry: telemetryVariables,
  isCalled: false,
  without: {
    ...notServing,
    ...ofComponents,
    leaseTtl: "its orchestrator sets the lease duration",
    heartbeat: "its orchestrator sets the interval",
    poll: "tasks are pushed to the worker",
    cancelPoll: "heartbeats report a cancel",
  },
  chosen: {
    byEnvironment(env) {
      const transport = transportIn(env);
      if (transport === undefined || transport === "http") return undefined;
      return { on: `Stepflow's ${transport === "grpc" ? "gRPC" : "NATS"} queue` };
    },
  },
  help: {
    examples: [["STEPFLOW_TASKS_URL=localhost:7837 longshore work tasks.ts", "for the queue of a Stepflow orchestrator"]],
  },
  async transport({ workerId, token }) {
    const { stepflowFromEnvironment } = await import("./worker/index.ts");
    // The environment chose this protocol, so it names a transport.
    return stepflowFromEnvironment(process.env, { workerId, token }) as Transport;
  },
};

const httpWorker: WorkerProtocol = {
  name: "stepflow-http",
  title: "Stepflow over HTTP",
  perTask: false,
  isolate: "thread",
  ownsOutput: true,
  structuredLog: true,
  telemetry: telemetryVariables,
  isCalled: true,
  without: {
    ...ofComponents,
    token: "its protocol has no authentication",
    workerId: "each worker makes the id that load balancers get",
    leaseTtl: "a task lasts as long as the request for it",
    heartbeat: "a task lasts as long as the request for it",
    poll: "its orchestrator calls, and the worker listens",
    cancelPoll: "a cancel is the end of a request",
  },
  chosen: {
    byFlag: {
      flags: [
        {
          flag: "--port <number>",
          description: "listen on this port for calls of a Stepflow orchestrator; 0 takes any free port, which is printed",
          isPort: true,
        },
        {
          flag: "--host <address>",
          description: "with --port: listen on this address instead of 127.0.0.1, such as 0.0.0.0 in a container",
        },
        {
          flag: "--no-handshake",
          description: "with --port: accept work before initialize, for several workers behind a load balancer",
        },
      ],
      server: () => "Stepflow",
    },
    byEnvironment: (env) => (transportIn(env) === "http" ? { on: "Stepflow" } : undefined),
  },
  help: {
    examples: [["longshore work tasks.ts --port 8080", "for a Stepflow orchestrator that calls its workers"]],
    notes:
      'For a Stepflow orchestrator that starts its workers itself, configure: command: longshore, args: [work, tasks.ts, --port, "0"].',
  },
  async transport({ port, host, handshake }, _tasks, print) {
    const { stepflowHttp } = await import("./worker/index.ts");
    return stepflowHttp({ port, host, handshake, announce: print });
  },
};

export const stepflowProtocol: Protocol<StepflowServing> = {
  name: "stepflow",
  reserved: [{ names: /^stepflow[:-]/, dialects: ["stepflow", "stepflow-items"] }],
  prepare: async ({ stepflow = {} }, around) => (await import("./server/prepare.ts")).prepare(stepflow, around),
  secretPaths: ({ stepflow }) => (stepflow?.config === undefined ? [] : [stepflow.config]),
  format: {
    title: "A flow of Stepflow",
    schema: { type: "object", properties: { steps: { type: "array" } }, required: ["steps"] },
    load: async () => (await import("./dialect/format.ts")).format,
  },
  flags: {
    list: [
      { flag: "--stepflow-config <file>", description: "plugins and routes for Stepflow flows; may start their workers" },
      { flag: "--stepflow-files <folder>", description: "folder that Stepflow flows may read with load_file (default: none)" },
      {
        flag: "--stepflow-env <names>",
        description: "environment variables that flows may read with env_var (default: none)",
        isList: true,
      },
    ],
    options({ stepflowConfig, stepflowFiles, stepflowEnv }) {
      return {
        stepflow: {
          ...(typeof stepflowConfig === "string" ? { config: resolve(stepflowConfig) } : {}),
          ...(typeof stepflowFiles === "string" ? { files: resolve(stepflowFiles) } : {}),
          ...(Array.isArray(stepflowEnv) ? { variables: stepflowEnv } : {}),
        },
      };
    },
  },
  workers: [httpWorker, queueWorker],
  hints: async (options) => (await import("./hints.ts")).hints(options),
};
