// Conductor's entry in the registry.

import { join } from "node:path";
import type { Environment } from "../../core/environment.ts";
import { numbered } from "../../core/recording.ts";
import type { Protocol } from "../protocol.ts";
import { notServing, type WorkerProtocol } from "../worker-half.ts";

const serverVariable = "CONDUCTOR_SERVER_URL";
const serverDefault = "http://localhost:8080";
/** Maximum length of a folder name that is built from task names. */
const folderCharsMax = 100;

const worker: WorkerProtocol = {
  name: "conductor",
  title: "Conductor",
  perTask: true,
  isolate: "process",
  ownsOutput: false,
  structuredLog: false,
  isCalled: false,
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
  chosen: {
    byFlag: {
      flags: [
        {
          flag: "--conductor [url]",
          description: "take tasks from a Conductor server (default: CONDUCTOR_SERVER_URL, which also works without this option)",
        },
      ],
      server: (value, env) => (typeof value === "string" ? value : (env[serverVariable] ?? serverDefault)),
    },
    byEnvironment: (env: Environment) => (env[serverVariable] === undefined ? undefined : { on: env[serverVariable], weak: true }),
  },
  help: {
    examples: [["longshore work 'workers/**/*.ts' --conductor http://localhost:8080", "for a Conductor server"]],
    notes: `For Conductor every task is a worker; its settings are read from the environment (CONDUCTOR_SERVER_URL, CONDUCTOR_AUTH_KEY,
CONDUCTOR_WORKER_ALL_THREAD_COUNT and the like). Defaults for Conductor: --slots 1 for each task, --poll 100ms, --cancel-poll 10s.`,
  },
  async transport({ on, workerId, poll, cancelPoll }, tasks) {
    const { conductor } = await import("./worker/index.ts");
    // Each process stores undelivered results in a separate folder. The next process with the same tasks finds them there.
    const folder = tasks
      .join("+")
      .replace(/[^\w.+-]/g, "_")
      .slice(0, folderCharsMax);
    return conductor(on, { workerId, pollInterval: poll, cancelPoll, outbox: join(".longshore", "outbox", folder) });
  },
};

export const conductorProtocol: Protocol = {
  name: "conductor",
  // Tasks that the server itself works on.
  reserved: [{ names: /^\$conductor\./, dialects: ["conductor"] }],
  prepare: async (_options, around) => (await import("./server/prepare.ts")).prepare(around),
  format: {
    title: "A workflow definition of Conductor",
    schema: {
      type: "object",
      properties: { name: { type: "string" }, tasks: { type: "array" } },
      required: ["name", "tasks"],
    },
    load: async () => (await import("./dialect/format.ts")).format,
  },
  workers: [worker],
  recordedAddress({ taskId }) {
    // <task>.<attempt>
    const found = numbered(taskId, ".");
    return found === undefined ? undefined : { taskId: found.before, attempt: found.number };
  },
  hints: async (options) => (await import("./hints.ts")).hints(options),
};
