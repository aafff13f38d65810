// A whole server with a data file, a free loopback port and a test clock. Operators and workers send it literal Conductor requests.

import { Agent } from "node:http";
import { onTestFinished } from "vitest";
import type { Json, JsonObject } from "../../src/core/json/json.ts";
import { type ServeOptions, type Server, serve } from "../../src/server/index.ts";
import { TestClock } from "../../src/testing/clock.ts";
import { temporaryFolder } from "./parts.ts";
import { type Answer, conversation } from "./workflow-graph.ts";

/** A task as the wire shows it, as far as tests look at it. */
export interface RestTask {
  taskId: string;
  taskType: string;
  taskDefName: string;
  status: string;
  referenceTaskName: string;
  workflowInstanceId: string;
  inputData: JsonObject;
  outputData: JsonObject;
  retryCount: number;
  seq: number;
  pollCount: number;
  scheduledTime: number;
  startTime: number;
  endTime: number;
  updateTime: number;
  callbackAfterSeconds: number;
  startDelayInSeconds: number;
  responseTimeoutSeconds: number;
  retried: boolean;
  retriedTaskId?: string;
  reasonForIncompletion?: string;
  workerId?: string;
  domain?: string;
  subWorkflowId?: string;
  runtimeMetadata?: { [name: string]: string };
}

export interface RestRun {
  workflowId: string;
  status: string;
  tasks: RestTask[];
  input: JsonObject;
  output: JsonObject;
  variables: JsonObject;
  reasonForIncompletion?: string;
  correlationId?: string;
  parentWorkflowId?: string;
  parentWorkflowTaskId?: string;
  failedReferenceTaskNames: string[];
  failedTaskNames: string[];
  createTime: number;
  endTime: number;
  lastRetriedTime: number;
  workflowVersion: number;
  workflowDefinition: { tasks: { taskReferenceName: string }[] };
}

/** What a worker reports. */
export interface Outcome {
  status?: "COMPLETED" | "FAILED" | "FAILED_WITH_TERMINAL_ERROR" | "IN_PROGRESS" | "CANCELED";
  output?: JsonObject;
  reason?: string;
  callback?: number;
  extendLease?: boolean;
  worker?: string;
}

/** More rounds than any run of these tests has, so that one without an end fails its test. */
const workOffRoundsMax = 10;

export interface PollOptions {
  worker?: string;
  domain?: string;
}

export type ConductorServer = Awaited<ReturnType<typeof startConductor>>;

/** Closed at the end of the test. With `before`, on the same file and clock. */
export async function startConductor(options: ServeOptions = {}, before?: { clock: TestClock; data: string }) {
  const clock = before?.clock ?? new TestClock();
  const data = before?.data ?? temporaryFolder();
  const server: Server = await serve({ data, port: 0, clock, logger: { write: () => {} }, ...options });
  const agent = new Agent({ keepAlive: true });
  let closed: Promise<void> | undefined;
  const close = () => {
    agent.destroy();
    closed ??= server.close();
    return closed;
  };
  onTestFinished(close);
  const url = server.url as string;
  return { clock, server, url, data, close, ...conductorConversation(url, agent, () => settle(clock)) };
}

/** Messages between runs are processed in separate turns. */
async function settle(clock: TestClock): Promise<void> {
  for (let round = 0; round < 30; round++) await clock.advance(0);
}

/** The requests alone, for a server that runs elsewhere. `settle` waits until all effects of a request have ended. */
export function conductorConversation(url: string, agent: Agent | undefined, settle: () => Promise<void>) {
  const { send: exchange } = conversation(url, agent);
  const send = async (method: string, path: string, body?: unknown): Promise<Answer> => {
    const text = body === undefined || typeof body === "string" ? body : JSON.stringify(body);
    const headers: Record<string, string> = text === undefined ? {} : { "content-type": "application/json" };
    return exchange(method, `/api${path}`, { headers, ...(text === undefined ? {} : { body: text }) });
  };
  /** Fails the test when the response is not 2xx. */
  const ask = async (method: string, path: string, body?: unknown): Promise<string> => {
    const answer = await send(method, path, body);
    if (answer.status < 200 || answer.status > 299) throw new Error(`${method} ${path} was answered ${answer.status}: ${answer.text}`);
    return answer.text;
  };
  const read = async <T>(path: string): Promise<T> => JSON.parse(await ask("GET", path)) as T;
  const run = (id: string) => read<RestRun>(`/workflow/${id}`);
  const pollMany = async (type: string, count: number, { worker = "w1", domain }: PollOptions = {}): Promise<RestTask[]> => {
    const query = new URLSearchParams({
      workerid: worker,
      count: String(count),
      timeout: "0",
      ...(domain === undefined ? {} : { domain }),
    });
    return read<RestTask[]>(`/tasks/poll/batch/${encodeURIComponent(type)}?${query}`);
  };
  const poll = async (type: string, options?: PollOptions): Promise<RestTask | undefined> => (await pollMany(type, 1, options))[0];
  const resultOf = (task: Pick<RestTask, "taskId" | "workflowInstanceId">, outcome: Outcome = {}) => ({
    workflowInstanceId: task.workflowInstanceId,
    taskId: task.taskId,
    status: outcome.status ?? "COMPLETED",
    outputData: outcome.output ?? {},
    workerId: outcome.worker ?? "w1",
    ...(outcome.reason === undefined ? {} : { reasonForIncompletion: outcome.reason }),
    ...(outcome.callback === undefined ? {} : { callbackAfterSeconds: outcome.callback }),
    ...(outcome.extendLease === undefined ? {} : { extendLease: outcome.extendLease }),
  });
  const update = async (task: Pick<RestTask, "taskId" | "workflowInstanceId">, outcome?: Outcome): Promise<void> => {
    await ask("POST", "/tasks", resultOf(task, outcome));
    await settle();
  };
  const take = async (type: string, options?: PollOptions): Promise<RestTask> => {
    const task = await poll(type, options);
    if (task === undefined) throw new Error(`There is nothing to poll of ${type}.`);
    return task;
  };
  const start = async (name: string, body: object = {}): Promise<string> => {
    const id = await ask("POST", "/workflow", { name, ...body });
    await settle();
    return id;
  };
  const workflow = (definition: object) => ask("POST", "/metadata/workflow?overwrite=true", definition);
  const record = async (id: string, reference: string): Promise<RestTask> => {
    const found = (await run(id)).tasks.findLast((task) => task.referenceTaskName === reference);
    if (found === undefined) throw new Error(`There is no record of ${reference}.`);
    return found;
  };
  return {
    send,
    ask,
    read,
    run,
    poll,
    pollMany,
    take,
    resultOf,
    update,
    start,
    workflow,
    record,
    settle,
    /** Sends a command for a run, such as `POST retry`. */
    async order(method: string, id: string, rest: string, body?: unknown): Promise<Answer> {
      const answer = await send(method, `/workflow/${id}${rest}`, body);
      await settle();
      return answer;
    },
    taskDef: (...definitions: object[]) => ask("POST", "/metadata/taskdefs", definitions),
    /** Registers a workflow of these tasks, called `w` by default, and starts it. */
    async begin(tasks: object[], parts: { start?: object } & { [field: string]: unknown } = {}): Promise<string> {
      const { start: request = {}, ...fields } = parts;
      const definition = { name: "w", tasks, ...fields };
      await workflow(definition);
      return start(definition.name, request);
    },
    /** Completes every open task of these types, and returns the types in order. Tasks that were open at the same time share an entry. */
    async workOff(types: readonly string[]): Promise<string[]> {
      const order: string[] = [];
      for (let rounds = 0; rounds < workOffRoundsMax; rounds++) {
        await settle();
        const found = (await Promise.all(types.map((type) => poll(type)))).filter((task) => task !== undefined);
        if (found.length === 0) return order;
        order.push(found.map((task) => task.taskDefName).join("+"));
        for (const task of found) await update(task);
      }
      throw new Error(`The run does not come to its end: ${order.join(", ")}`);
    },
    /** Polls one task and reports on it. */
    async work(type: string, outcome?: Outcome): Promise<RestTask> {
      const task = await take(type);
      await update(task, outcome);
      return task;
    },
    /** `ref:STATUS` of each record, in order. */
    async statuses(id: string): Promise<string[]> {
      return (await run(id)).tasks.map((task) => `${task.referenceTaskName}:${task.status}`);
    },
    async status(id: string): Promise<string> {
      return (await run(id)).status;
    },
    /** Reports on a step by its name. */
    async signal(id: string, reference: string, output: { [key: string]: Json } = {}, status = "COMPLETED"): Promise<string> {
      const answer = await ask("POST", `/tasks/${id}/${reference}/${status}`, output);
      await settle();
      return answer;
    },
    /** The newest child run of a step. */
    async child(id: string, reference: string): Promise<string> {
      return (await record(id, reference)).subWorkflowId as string;
    },
  };
}
