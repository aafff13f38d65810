// Plugins on their own board, without flows: a test posts a step's task and checks how it ended.

import { onTestFinished } from "vitest";
import { type Clock, systemClock } from "../../src/core/clock.ts";
import { LongshoreError } from "../../src/core/errors.ts";
import { uuidOf } from "../../src/core/ids.ts";
import type { Json } from "../../src/core/json/json.ts";
import type { TaskRow } from "../../src/engine/board/task.ts";
import type { FlowError } from "../../src/protocols/stepflow/dialect/result.ts";
import type { StepflowConfig } from "../../src/protocols/stepflow/server/config/config.ts";
import { parseConfig } from "../../src/protocols/stepflow/server/config/parse.ts";
import type { GetRequest, RuntimeCalls, SubmitRequest } from "../../src/protocols/stepflow/server/http/runtime/requests.ts";
import { startPlugins } from "../../src/protocols/stepflow/server/plugins/plugins.ts";
import { blobIdIn, blobIdOfJson } from "../../src/protocols/stepflow/wire/blob-id.ts";
import { openEngineWithStore } from "./engine.ts";

export interface PluginWorld {
  readonly engine: Awaited<ReturnType<typeof openEngineWithStore>>;
  readonly config: StepflowConfig;
  /** Everything that was logged: `level message`. */
  readonly lines: string[];
  /** Resolves with the first matching line, also one that was logged before. */
  logged(pattern: RegExp): Promise<string>;
  /** Puts a step on the plugin's lane. */
  post(id: string, component: string, input: Json, options?: { lane?: string; lost?: number }): Promise<void>;
  /** The task's output, or its failure. */
  outcome(id: string): Promise<{ output: Json } | { error: FlowError; task: TaskRow }>;
  /** Both at once. */
  run(
    component: string,
    input?: Json,
    options?: { lane?: string; lost?: number },
  ): Promise<{ output: Json } | { error: FlowError; task: TaskRow }>;
  readonly submitted: SubmitRequest[];
  readonly asked: GetRequest[];
  readonly blobs: Map<string, { data: Json; type: string }>;
  close(graceMs?: number): Promise<void>;
}

export interface WorldOptions {
  readonly directory?: string;
  readonly clock?: Clock;
  readonly environment?: NodeJS.ProcessEnv;
  readonly url?: string | null;
  readonly calls?: Partial<RuntimeCalls>;
}

/** The lane of the plugin `p`, which is called over HTTP. */
const httpLane = "stepflow-http:p";

export async function pluginWorld(configText: string, options: WorldOptions = {}): Promise<PluginWorld> {
  const { clock = systemClock, directory = process.cwd(), environment = process.env, url = "http://127.0.0.1:4500" } = options;
  const { config } = parseConfig(configText, { file: `${directory}/stepflow-config.yml`, environment });
  const engine = await openEngineWithStore({ directory: null, clock });
  const lines: string[] = [];
  const watchers = new Set<(line: string) => void>();
  const say = (level: string) => (message: string) => {
    const line = `${level} ${message}`;
    lines.push(line);
    for (const watcher of [...watchers]) watcher(line);
  };
  const blobs = new Map<string, { data: Json; type: string }>();
  const submitted: SubmitRequest[] = [];
  const asked: GetRequest[] = [];
  const calls: RuntimeCalls = {
    async putBlob(data, type) {
      const id = blobIdOfJson(data);
      blobs.set(id, { data, type });
      return id;
    },
    async getBlob(id) {
      const found = blobs.get(blobIdIn(id) ?? "");
      if (found === undefined) throw new LongshoreError("LONGSHORE_NOT_FOUND", `blob '${id}' not found`);
      return found;
    },
    async submitRun(request) {
      submitted.push(request);
      return { runId: "run-1", flowId: request.flowId, status: "completed" };
    },
    async getRun(request) {
      asked.push(request);
      return { runId: request.runId, flowId: "f", status: "running" };
    },
    ...options.calls,
  };
  const plugins = await startPlugins(config, {
    ...engine,
    url,
    environment,
    calls,
    log: { debug: say("debug"), info: say("info"), warn: say("warn"), error: say("error") },
    makeId: () => uuidOf(engine.makeId(clock.now())) as string,
    observability: async (task) => ({ runId: "run-of-it", flowId: "flow-of-it", stepId: task.step }),
  });
  const close = async (graceMs = 0) => {
    await plugins.close(graceMs);
    await engine.close();
  };
  onTestFinished(() => close());
  const post: PluginWorld["post"] = (id, component, input, { lane = httpLane, lost = 0 } = {}) =>
    engine.store.board.post([
      {
        id,
        step: id,
        lanes: [{ name: lane, labels: [] }],
        input: JSON.stringify({ component, input }),
        policy: JSON.stringify({ failures: 0, lost, backoff: { kind: "fixed", delayMs: 0 } }),
      },
    ]);
  const outcome: PluginWorld["outcome"] = async (id) => {
    const task = (await engine.board.result(id)) as TaskRow;
    const output = JSON.parse(task.output ?? "null") as Json;
    return task.state === "done" ? { output } : { error: (output as unknown as { error: FlowError }).error, task };
  };
  let ids = 0;
  return {
    engine,
    config,
    lines,
    submitted,
    asked,
    blobs,
    post,
    outcome,
    async run(component, input = {}, runOptions) {
      const id = `task-${ids++}`;
      await post(id, component, input, runOptions);
      return outcome(id);
    },
    logged: (pattern) =>
      new Promise((resolve) => {
        const known = lines.find((line) => pattern.test(line));
        if (known !== undefined) return resolve(known);
        const watcher = (line: string) => {
          if (!pattern.test(line)) return;
          watchers.delete(watcher);
          resolve(line);
        };
        watchers.add(watcher);
      }),
    close,
  };
}
