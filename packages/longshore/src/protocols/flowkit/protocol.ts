// FlowKit's entry in the registry.

import { durationMs } from "../../core/duration.ts";
import { variable } from "../../core/environment.ts";
import type { Protocol } from "../protocol.ts";
import { notServing, type WorkerProtocol } from "../worker-half.ts";
import { flags } from "./flags.ts";
import type { FlowkitServing, FlowkitSide } from "./server/options.ts";
import { flowkitIn } from "./worker/environment.ts";

const worker: WorkerProtocol = {
  name: "flowkit",
  title: "FlowKit",
  perTask: false,
  isolate: "process",
  ownsOutput: false,
  structuredLog: false,
  isCalled: false,
  defaults: { leaseTtl: "60s" },
  without: {
    ...notServing,
    shell: "its workers run tasks, not shell commands",
    labels: "its workers take commands by the names of their tasks",
    poll: "commands are pushed to the worker",
    logFlush: "its coordinator takes no log lines",
    cwd: "its workers run no shell commands",
  },
  chosen: {
    byEnvironment(env) {
      const on = flowkitIn(env);
      if (on !== undefined) return { on };
      // FlowKit is configured only in part. In this case the user does not want the server of another protocol.
      if (variable(env, "FLOWKIT_MONGO_URL") === undefined) return undefined;
      return {
        refused:
          "FLOWKIT_MONGO_URL names FlowKit's database, but its brokers are not set. Set KAFKA_BOOTSTRAP_SERVERS too, or FLOWKIT_URL for a Longshore server, which has its own bus.",
      };
    },
  },
  help: {
    examples: [["FLOWKIT_URL=http://localhost:4500 longshore work tasks.ts", "for nodes of FlowKit's graphs, with streams"]],
    notes:
      "For FlowKit set FLOWKIT_URL to a Longshore server, or KAFKA_BOOTSTRAP_SERVERS to the brokers and FLOWKIT_MONGO_URL to the database.",
  },
  async transport({ workerId, token, leaseTtl, heartbeat, cancelPoll }) {
    const { flowkit } = await import("./worker/index.ts");
    // The environment selected this protocol, so it also has the address of the tasks.
    return flowkit({
      ...(workerId === undefined ? {} : { workerId }),
      ...(token === undefined ? {} : { token }),
      ...(leaseTtl === undefined ? {} : { leaseTtlSec: durationMs(leaseTtl, "leaseTtl") / 1_000 }),
      ...(heartbeat === undefined ? {} : { hbIntervalSec: durationMs(heartbeat, "heartbeat") / 1_000 }),
      ...(cancelPoll === undefined ? {} : { dbCancelPollMs: durationMs(cancelPoll, "cancelPoll") }),
    });
  },
};

export const flowkitProtocol: Protocol<FlowkitServing, FlowkitSide> = {
  name: "flowkit",
  reserved: [{ names: /^flowkit-fn$/, dialects: ["flowkit"] }],
  prepare: async ({ flowkit }, around) => (await import("./server/prepare.ts")).prepare(flowkit, around),
  secretPaths: ({ flowkit }) => (typeof flowkit?.config === "string" ? [flowkit.config] : []),
  flags,
  workers: [worker],
  hints: async (options) => (await import("./hints.ts")).hints(options),
};
