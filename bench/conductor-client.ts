// The caller's side of a Conductor server over keep-alive connections: defines, starts, polls and updates, nothing else.
import { type HttpConnection, openConnection } from "./http-connection.ts";

/** Enough for a server to be busy, few enough for the reference's database. */
const CONNECTIONS = 8;
export const TASK = "bench_noop";
/** About 200 bytes, an ordinary small task. */
const PADDING = "i".repeat(170);

export interface PolledTask {
  readonly taskId: string;
  readonly workflowInstanceId: string;
  readonly referenceTaskName: string;
  readonly inputData: { readonly n: number };
}

export interface ConductorClient {
  define(): Promise<void>;
  /** Starts the runs with these numbers, some at a time. Returns their ids in this order. */
  startAll(from: number, to: number): Promise<string[]>;
  start(n: number): Promise<string>;
  startFork(): Promise<string>;
  get<T>(path: string): Promise<T>;
  post(path: string, body?: unknown): Promise<string>;
  poll(count: number, timeoutMs: number): Promise<PolledTask[]>;
  update(task: PolledTask): Promise<void>;
  close(): void;
}

export async function openConductorClient(url: string, connections = CONNECTIONS): Promise<ConductorClient> {
  const idle = await Promise.all(Array.from({ length: connections }, () => openConnection(url, "undici")));
  const waiting: ((connection: HttpConnection) => void)[] = [];

  const ask = async (method: "GET" | "POST", path: string, body?: unknown): Promise<string> => {
    const connection = idle.pop() ?? (await new Promise<HttpConnection>((resolve) => waiting.push(resolve)));
    try {
      const answer = await connection.request(method, `/api${path}`, body === undefined ? "" : JSON.stringify(body));
      if (answer.status >= 300) throw new Error(`${method} ${path} was answered with ${answer.status}: ${answer.body.slice(0, 500)}`);
      return answer.body;
    } finally {
      const next = waiting.shift();
      if (next) next(connection);
      else idle.push(connection);
    }
  };
  const start = (n: number): Promise<string> =>
    ask("POST", "/workflow", { name: "bench_single", version: 1, input: { n, padding: PADDING } });

  return {
    define: () => define((path, body) => ask("POST", path, body)),
    start,
    startFork: () => ask("POST", "/workflow", { name: "bench_fork", version: 1, input: {} }),
    async startAll(from, to) {
      const ids: string[] = [];
      let next = from;
      const starter = async (): Promise<void> => {
        for (let n = next++; n < to; n = next++) ids[n - from] = await start(n);
      };
      await Promise.all(Array.from({ length: connections }, starter));
      return ids;
    },
    get: async <T>(path: string): Promise<T> => JSON.parse(await ask("GET", path)) as T,
    post: (path, body) => ask("POST", path, body),
    poll: async (count, timeoutMs) =>
      JSON.parse(await ask("GET", `/tasks/poll/batch/${TASK}?workerid=bench&count=${count}&timeout=${timeoutMs}`)) as PolledTask[],
    async update({ taskId, workflowInstanceId, inputData }) {
      await ask("POST", "/tasks", { taskId, workflowInstanceId, workerId: "bench", status: "COMPLETED", outputData: { n: inputData.n } });
    },
    close() {
      for (const connection of idle) connection.close();
    },
  };
}

async function define(post: (path: string, body: unknown) => Promise<string>): Promise<void> {
  const step = (ref: string, inputParameters: Record<string, unknown> = {}) => ({
    name: TASK,
    taskReferenceName: ref,
    type: "SIMPLE",
    inputParameters,
  });
  await post("/metadata/taskdefs", [{ name: TASK, retryCount: 0, responseTimeoutSeconds: 600 }]);
  const whole = { n: "${workflow.input.n}", padding: "${workflow.input.padding}" };
  await post("/metadata/workflow?overwrite=true", { name: "bench_single", version: 1, schemaVersion: 2, tasks: [step("one", whole)] });
  await post("/metadata/workflow?overwrite=true", {
    name: "bench_fork",
    version: 1,
    schemaVersion: 2,
    tasks: [
      { name: "fork", taskReferenceName: "fork", type: "FORK_JOIN", forkTasks: [[step("a")], [step("b")], [step("c")]] },
      { name: "join", taskReferenceName: "join", type: "JOIN", joinOn: ["a", "b", "c"] },
      step("after"),
    ],
  });
}
