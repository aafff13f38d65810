// An operator of a Conductor server, real or ours: defines, starts and reads workflows over its HTTP API.
import { type Answer, exchange } from "../src/exchange.ts";
import { until } from "../src/until.ts";

export interface TaskView {
  taskId: string;
  taskType: string;
  referenceTaskName: string;
  status: string;
  retryCount: number;
  pollCount: number;
  workerId?: string;
  reasonForIncompletion?: string;
  inputData: Record<string, unknown>;
  outputData: Record<string, unknown>;
}

export interface RunView {
  workflowId: string;
  status: string;
  output: Record<string, unknown>;
  reasonForIncompletion?: string;
  tasks: TaskView[];
}

export interface Operator {
  readonly url: string;
  /** Defines a task whose retries start at once. */
  defineTask(name: string, more?: Record<string, unknown>): Promise<void>;
  /** Defines a workflow. Replaces one with the same name. */
  defineWorkflow(name: string, tasks: unknown[], more?: Record<string, unknown>): Promise<void>;
  /** Defines a task, and a workflow of the same name with only this task. The workflow's input is the task's input. */
  defineAlone(name: string, more?: Record<string, unknown>): Promise<void>;
  start(name: string, input?: Record<string, unknown>, more?: Record<string, unknown>): Promise<string>;
  run(id: string): Promise<RunView>;
  status(id: string): Promise<string>;
  /** Waits until the run has ended, and returns it. */
  ended(id: string): Promise<RunView>;
  /** Waits until a run has the expected state. */
  shows(id: string, what: string, seen: (run: RunView) => boolean): Promise<RunView>;
  terminate(id: string, reason?: string): Promise<void>;
  logs(taskId: string): Promise<string[]>;
  /** How many runs of a workflow have a status, according to the server's own search. */
  count(name: string, status: string): Promise<number>;
  /** Any other call. Throws when the status is not 2xx. */
  call(method: string, path: string, body?: unknown): Promise<string>;
}

const terminal = new Set(["COMPLETED", "FAILED", "TIMED_OUT", "TERMINATED"]);

export function operatorOf(url: string): Operator {
  const call = async (method: string, path: string, body?: unknown): Promise<string> => {
    const json = body === undefined ? {} : { headers: { "content-type": "application/json" }, body: JSON.stringify(body) };
    return expectGood(await exchange(url, { method, path: `/api${path}`, ...json }), `${method} ${path}`).body;
  };
  const run = async (id: string): Promise<RunView> => JSON.parse(await call("GET", `/workflow/${id}`)) as RunView;
  const defineTask = async (name: string, more: Record<string, unknown> = {}): Promise<void> => {
    const quick = { name, retryCount: 0, retryDelaySeconds: 0, responseTimeoutSeconds: 60, ...more };
    await call("POST", "/metadata/taskdefs", [quick]);
  };
  const defineWorkflow = async (name: string, tasks: unknown[], more: Record<string, unknown> = {}): Promise<void> => {
    await call("PUT", "/metadata/workflow", [{ name, version: 1, schemaVersion: 2, tasks, ...more }]);
  };
  const shows = async (id: string, what: string, wanted: (run: RunView) => boolean): Promise<RunView> => {
    let seen: RunView | undefined;
    const ask = async (): Promise<RunView | undefined> => {
      seen = await run(id);
      return wanted(seen) ? seen : undefined;
    };
    return until(`run ${id} to show ${what}`, ask, () => seen);
  };

  return {
    url,
    call,
    run,
    defineTask,
    defineWorkflow,
    shows,
    async defineAlone(name, more) {
      await defineTask(name, more);
      const whole = { input: "${workflow.input}" };
      await defineWorkflow(name, [{ name, taskReferenceName: "one", type: "SIMPLE", inputParameters: whole }]);
    },
    start: (name, input = {}, more = {}) => call("POST", "/workflow", { name, version: 1, input, ...more }),
    status: async (id) => (JSON.parse(await call("GET", `/workflow/${id}/status`)) as { status: string }).status,
    ended: (id) => shows(id, "its end", ({ status }) => terminal.has(status)),
    terminate: async (id, reason = "enough") => void (await call("DELETE", `/workflow/${id}?reason=${encodeURIComponent(reason)}`)),
    async logs(taskId) {
      const text = await call("GET", `/tasks/${taskId}/log`);
      return text === "" ? [] : (JSON.parse(text) as { log: string }[]).map(({ log }) => log);
    },
    async count(name, status) {
      const query = encodeURIComponent(`workflowType=${name} AND status=${status}`);
      return (JSON.parse(await call("GET", `/workflow/search?size=1&query=${query}`)) as { totalHits: number }).totalHits;
    },
  };
}

function expectGood(answer: Answer, what: string): Answer {
  if (answer.status >= 300) throw new Error(`${what} answered ${answer.status}: ${answer.body.slice(0, 1_000)}`);
  return answer;
}
