// workflow-graph's entry in the registry.

import type { Protocol } from "../protocol.ts";
import { notServing, type WorkerProtocol } from "../worker-half.ts";

const worker: WorkerProtocol = {
  name: "workflow-graph",
  title: "workflow-graph",
  perTask: false,
  isolate: "process",
  ownsOutput: false,
  structuredLog: false,
  isCalled: false,
  without: notServing,
  chosen: { byAddress: true },
  help: {
    examples: [
      ["longshore work tasks.mjs", "the tasks of a file, for a server on this machine"],
      ["longshore work --shell --on http://build:4500 --labels linux", "runs shell commands; no file needed"],
    ],
  },
  async transport({ on, token, shell, labels, workerId, leaseTtl, heartbeat, poll, cancelPoll, logFlush, cwd }) {
    const { workflowGraph } = await import("./worker/index.ts");
    return workflowGraph(on, { token, shell, labels, workerId, leaseTtl, heartbeat, poll, cancelPoll, logFlush, cwd });
  },
};

export const workflowGraphProtocol: Protocol = {
  name: "workflow-graph",
  reserved: [{ names: /^\$command$/, dialects: ["workflow-graph"] }],
  prepare: async () => (await import("./server/prepare.ts")).prepared,
  format: {
    title: "A workflow-graph definition file",
    schema: { type: "object", properties: { name: { type: "string" }, jobs: { type: "object" } }, required: ["name", "jobs"] },
    load: async () => (await import("./dialect/format.ts")).format,
  },
  workers: [worker],
  hints: async (options) => (await import("./hints.ts")).hints(options),
};
