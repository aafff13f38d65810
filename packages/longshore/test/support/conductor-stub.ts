// A small Conductor server for tests of the worker half: the endpoints of a worker's life with the real server's statuses and bodies. It
// keeps everything in memory, records every request, and can misbehave on request. It has no timer: an empty poll gets a response at once, or
// waits until there is a task.

import type { IncomingMessage, ServerResponse } from "node:http";
import type { JsonObject } from "../../src/core/json/json.ts";
import type { TaskResult } from "../../src/protocols/conductor/wire/shapes.ts";
import { StubListener } from "./stub-listener.ts";

export interface SeenRequest {
  readonly method: string;
  /** Without the query. */
  readonly path: string;
  readonly query: string;
  readonly headers: IncomingMessage["headers"];
  readonly text: string;
  /** The parsed body; undefined when there was none. */
  readonly body: unknown;
  /** 0 when the connection was cut instead of a response. */
  status: number;
}

export interface StubOptions {
  /** False: `update-v2` gets the response of a server that does not have it. */
  readonly v2?: boolean;
  /** Empty polls wait until a task comes, `releasePolls` is called or the client disconnects. */
  readonly longPolls?: boolean;
  /** Its poll responses report that it takes back tasks of disconnected polls. */
  readonly returns?: boolean;
  readonly port?: number;
}

interface Reply {
  readonly status: number;
  readonly body?: string;
  readonly headers?: { readonly [name: string]: string };
}

/** A reply, a connection cut before the request is looked at or in the middle of the answer, or no answer at all. */
export type Misbehaviour = Reply | "cut" | "half" | "hang";

interface Rule {
  readonly match: RegExp;
  readonly answer: Misbehaviour;
  left: number;
}

export interface StubTask extends JsonObject {
  taskId: string;
  workflowInstanceId: string;
  status: string;
  pollCount: number;
}

export const pollOf = (type: string) => new RegExp(`^GET /api/tasks/poll/batch/${type}$`);
export const anyPoll = /^GET \/api\/tasks\/poll\/batch\//;
export const updateV1 = /^POST \/api\/tasks$/;
export const updateV2 = /^POST \/api\/tasks\/update-v2$/;
export const anyUpdate = /^POST \/api\/tasks(\/update-v2)?$/;

export class ConductorStub {
  readonly requests: SeenRequest[] = [];
  /** Every accepted result, without heartbeats. */
  readonly results: TaskResult[] = [];
  readonly heartbeats: SeenRequest[] = [];
  readonly tasks = new Map<string, StubTask>();
  readonly #options: StubOptions;
  readonly #queues = new Map<string, StubTask[]>();
  readonly #rules = new Set<Rule>();
  readonly #watchers = new Set<{ readonly match: RegExp; left: number; readonly resolve: (request: SeenRequest) => void }>();
  readonly #held = new Set<() => void>();
  readonly #listener = new StubListener((request, response) => void this.#answer(request, response));

  constructor(options: StubOptions = {}) {
    this.#options = options;
  }

  static async start(options: StubOptions = {}): Promise<ConductorStub> {
    const stub = new ConductorStub(options);
    await stub.listen();
    return stub;
  }

  get url(): string {
    return this.#listener.url;
  }

  /** Listens again on the same port after `close`. */
  listen(): Promise<void> {
    return this.#listener.listen();
  }

  close(): Promise<void> {
    return this.#listener.close();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  /** How many connections are open now. */
  connections(): Promise<number> {
    return this.#listener.connections();
  }

  enqueue(type: string, task: JsonObject = {}, domain = ""): StubTask {
    const number = this.tasks.size + 1;
    const queued: StubTask = {
      taskType: type,
      taskDefName: type,
      referenceTaskName: `${type}_ref`,
      inputData: {},
      retryCount: 0,
      responseTimeoutSeconds: 3600,
      callbackAfterSeconds: 0,
      outputData: {},
      workflowInstanceId: `wf-${number}`,
      ...task,
      taskId: typeof task.taskId === "string" ? task.taskId : `task-${number}`,
      status: "SCHEDULED",
      pollCount: typeof task.pollCount === "number" ? task.pollCount : 0,
    };
    this.tasks.set(queued.taskId, queued);
    this.#queue(type, domain).push(queued);
    this.releasePolls();
    return queued;
  }

  /** As when its workflow is terminated. */
  setStatus(taskId: string, status: string): void {
    (this.tasks.get(taskId) as StubTask).status = status;
  }

  /** Returns the polls that wait. */
  releasePolls(): void {
    for (const release of [...this.#held]) release();
  }

  get heldPolls(): number {
    return this.#held.size;
  }

  /** The next `times` requests whose `METHOD path` matches are treated so. The returned function ends it. */
  misbehave(match: RegExp, answer: Misbehaviour, times = Number.POSITIVE_INFINITY): () => void {
    const rule = { match, answer, left: times };
    this.#rules.add(rule);
    return () => this.#rules.delete(rule);
  }

  seen(match: RegExp): SeenRequest[] {
    return this.requests.filter((request) => match.test(`${request.method} ${request.path}`));
  }

  /** Resolves with the `count`th matching request from now on, when it has been answered. */
  next(match: RegExp, count = 1): Promise<SeenRequest> {
    return new Promise((resolve) => this.#watchers.add({ match, left: count, resolve }));
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    let text = "";
    for await (const chunk of request.setEncoding("utf8")) text += chunk;
    const [path = "", query = ""] = (request.url ?? "").split("?");
    const body = text === "" ? undefined : parse(text);
    const seen: SeenRequest = { method: request.method ?? "", path, query, headers: request.headers, text, body, status: 0 };
    this.requests.push(seen);
    const reply = this.#rule(seen) ?? (await this.#reply(seen, response));
    if (reply === "hang") return this.#tell(seen);
    if (reply === "half") response.writeHead(200, { "content-length": "1000" }).write("[{", () => request.socket.destroy());
    else if (reply === "cut") request.socket.destroy();
    else {
      seen.status = reply.status;
      response.writeHead(reply.status, { ...reply.headers }).end(reply.body);
    }
    this.#tell(seen);
  }

  #rule(seen: SeenRequest): Misbehaviour | undefined {
    for (const rule of this.#rules) {
      if (rule.left === 0 || !rule.match.test(`${seen.method} ${seen.path}`)) continue;
      rule.left--;
      return rule.answer;
    }
    return undefined;
  }

  #tell(seen: SeenRequest): void {
    for (const watcher of [...this.#watchers]) {
      if (!watcher.match.test(`${seen.method} ${seen.path}`) || --watcher.left > 0) continue;
      this.#watchers.delete(watcher);
      watcher.resolve(seen);
    }
  }

  #reply(seen: SeenRequest, response: ServerResponse): Reply | Promise<Reply> {
    const { method, path } = seen;
    const poll = /^\/api\/tasks\/poll\/batch\/([^/]+)$/.exec(path);
    if (method === "GET" && poll !== null) return this.#poll(decodeURIComponent(poll[1] as string), seen, response);
    if (method === "POST" && path === "/api/tasks") return this.#update(seen.body as TaskResult, seen);
    if (method === "POST" && path === "/api/tasks/update-v2") return this.#updateV2(seen);
    const task = /^\/api\/tasks\/([^/]+)$/.exec(path);
    if (method === "GET" && task !== null) return this.#task(decodeURIComponent(task[1] as string));
    if (path.startsWith("/api/metadata/taskdefs")) return method === "GET" ? noSuch(`taskType found by name: ${path}`) : { status: 200 };
    return noSuch(`static resource ${path.slice(1)}.`, "No ");
  }

  async #poll(type: string, { query }: SeenRequest, response: ServerResponse): Promise<Reply> {
    const values = new URLSearchParams(query);
    const queue = this.#queue(type, values.get("domain") ?? "");
    if (queue.length === 0 && this.#options.longPolls && Number(values.get("timeout")) > 0) await this.#hold(response);
    const tasks = response.destroyed ? [] : queue.splice(0, Number(values.get("count") ?? 1));
    for (const task of tasks) {
      task.status = "IN_PROGRESS";
      task.pollCount++;
    }
    const answer = json(200, tasks);
    return this.#options.returns ? { ...answer, headers: { ...answer.headers, "longshore-poll-returns": "1" } } : answer;
  }

  #hold(response: ServerResponse): Promise<void> {
    return new Promise((resolve) => {
      const release = () => {
        this.#held.delete(release);
        response.off("close", release);
        resolve();
      };
      this.#held.add(release);
      response.on("close", release);
    });
  }

  #update(result: TaskResult, seen: SeenRequest): Reply {
    const task = this.tasks.get(result.taskId);
    if (task === undefined) return noSuch(`task found by id: ${result.taskId}`);
    if (result.extendLease === true) this.heartbeats.push(seen);
    else {
      this.results.push(result);
      task.status = result.status === "IN_PROGRESS" ? "SCHEDULED" : result.status;
      task.outputData = (result.outputData ?? {}) as JsonObject;
    }
    return { status: 200, body: result.taskId, headers: { "content-type": "text/plain;charset=UTF-8" } };
  }

  #updateV2(seen: SeenRequest): Reply {
    if (this.#options.v2 === false) return noSuch("static resource api/tasks/update-v2.", "No ");
    const result = seen.body as TaskResult;
    const reply = this.#update(result, seen);
    if (reply.status !== 200 || result.status === "IN_PROGRESS") return reply.status === 200 ? { status: 204 } : reply;
    const task = this.tasks.get(result.taskId) as StubTask;
    const next = this.#queue(String(task.taskDefName), "").shift();
    if (next === undefined) return { status: 204 };
    next.status = "IN_PROGRESS";
    next.pollCount++;
    return json(200, next);
  }

  #task(taskId: string): Reply {
    const task = this.tasks.get(taskId);
    return task === undefined ? noSuch(`task found by id: ${taskId}`) : json(200, task);
  }

  #queue(type: string, domain: string): StubTask[] {
    const key = `${domain}:${type}`;
    const queue = this.#queues.get(key) ?? [];
    this.#queues.set(key, queue);
    return queue;
  }
}

/** A refusal in Conductor's own shape. */
export function refusal(status: number, message: string): Reply {
  return json(status, { status, message, instance: "stub", retryable: false });
}

function noSuch(what: string, no = "No such "): Reply {
  return refusal(404, no + what);
}

export function json(status: number, value: unknown): Reply {
  return { status, body: JSON.stringify(value), headers: { "content-type": "application/json" } };
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    // Tests of what was sent look at the text.
    return undefined;
  }
}
