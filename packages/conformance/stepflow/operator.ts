// An operator of an orchestrator, real or ours: stores flows, starts runs and reads them over REST. Releases return responses in three
// shapes; this class returns the same for all.
import { type Answer, exchange } from "../src/exchange.ts";
import { until } from "../src/until.ts";
import type { Release } from "./fetch.ts";

export type Status = "running" | "completed" | "failed" | "cancelled" | "paused";

/** How one item of a run ended: with an output, or with an error. */
export interface Item {
  status: Status;
  output?: unknown;
  /** As the release writes it: a number of TaskErrorCode, a JSON-RPC code, or an HTTP status. */
  code?: number;
  message?: string;
  /** The complete error, for details that some releases report only there. */
  details?: string;
}

export interface Outcome {
  runId: string;
  status: Status;
  items: Item[];
}

export interface Flow {
  name?: string;
  description?: string;
  steps: Record<string, unknown>[];
  output: unknown;
  [key: string]: unknown;
}

export interface Operator {
  readonly url: string;
  readonly release: Release;
  /** Stores a flow and returns its id. */
  store(flow: Flow): Promise<string>;
  /** Runs a flow for each of these inputs, and waits for the end. */
  run(flow: Flow | string, inputs: readonly unknown[], more?: Record<string, unknown>): Promise<Outcome>;
  /** Starts a run and does not wait. Not for 0.9, which always waits. */
  start(flow: Flow | string, inputs: readonly unknown[], more?: Record<string, unknown>): Promise<string>;
  read(runId: string): Promise<Outcome>;
  /** Waits until the run has ended, also across a restart of the orchestrator. */
  ended(runId: string): Promise<Outcome>;
  cancel(runId: string): Promise<void>;
  /** The names of the known components. Only this request makes 0.12 look for them. */
  components(): Promise<string[]>;
  /** Waits until a component is known: the only sign that a worker that pulls is ready. */
  knows(component: string): Promise<void>;
}

/** A flow of one step that passes its whole input to a component. The flow's output is the component's output. */
export function flowOf(component: string, more: Record<string, unknown> = {}): Flow {
  const step = { id: "s1", component, input: { $input: "$" }, ...more };
  return { name: component.split("/").at(-1) ?? "", description: "one step", steps: [step], output: { $step: "s1" } };
}

const WAIT_SECONDS = 120;

export function operatorOf(url: string, release: Release): Operator {
  const call = async <T>(method: string, path: string, body?: unknown): Promise<T> => {
    const json = body === undefined ? {} : { headers: { "content-type": "application/json" }, body: JSON.stringify(body) };
    const answer = expectGood(await exchange(url, { method, path: `/api/v1${path}`, ...json }), `${method} ${path}`);
    return JSON.parse(answer.body) as T;
  };
  const store = async (flow: Flow): Promise<string> => {
    const { flowId, stored, diagnostics } = await call<{ flowId: string; stored: boolean; diagnostics: unknown }>("POST", "/flows", {
      flow,
    });
    if (!stored) throw new Error(`the flow was refused: ${JSON.stringify(diagnostics)}`);
    return flowId;
  };
  const create = async (flow: Flow | string, input: readonly unknown[], more: Record<string, unknown>): Promise<RunAnswer> => {
    const flowId = typeof flow === "string" ? flow : await store(flow);
    return call<RunAnswer>("POST", "/runs", { flowId, input, ...more });
  };
  const read = async (runId: string): Promise<Outcome> => {
    const run = await call<RunAnswer>("GET", `/runs/${runId}`);
    const { results, items } = await call<{ results?: ItemAnswer[]; items?: ItemAnswer[] }>("GET", `/runs/${runId}/items`);
    return outcomeOf({ ...run, results: results ?? items ?? [] });
  };
  const components = async (): Promise<string[]> => {
    const { components: found } = await call<{ components: ComponentAnswer[] }>("GET", "/components");
    return found.map(({ componentId, component }) => (componentId ?? component ?? "").replace(/^\//, ""));
  };

  return {
    url,
    release,
    store,
    read,
    components,
    async run(flow, inputs, more = {}) {
      const outcome = outcomeOf(await create(flow, inputs, { wait: true, timeoutSecs: WAIT_SECONDS, ...more }));
      // 0.9 returns only the result of a single item.
      return outcome.items.length === inputs.length ? outcome : read(outcome.runId);
    },
    async start(flow, inputs, more = {}) {
      if (release === "0.9") throw new Error("0.9 answers only when a run has ended");
      return outcomeOf(await create(flow, inputs, more)).runId;
    },
    async ended(runId) {
      let seen: unknown;
      const ask = async (): Promise<Outcome | undefined> => {
        // A server that was killed refuses connections until it runs again.
        const outcome = await read(runId).catch(String);
        seen = outcome;
        return typeof outcome !== "string" && outcome.status !== "running" ? outcome : undefined;
      };
      return until(`run ${runId} to end`, ask, () => seen);
    },
    cancel: async (runId) => void (await call("POST", `/runs/${runId}/cancel`)),
    async knows(component) {
      let seen: string[] = [];
      const ask = async (): Promise<true | undefined> => {
        seen = await components();
        return seen.includes(component) ? true : undefined;
      };
      await until(`${component} to be known`, ask, () => seen);
    },
  };
}

interface ItemAnswer {
  status: number | Status;
  /** Since 0.12. */
  output?: unknown;
  errorCode?: number;
  errorMessage?: string;
  /** Before. */
  result?: ResultAnswer;
}

interface ResultAnswer {
  outcome: "success" | "failed";
  result?: unknown;
  error?: { code: number; message: string; data?: unknown };
}

interface RunAnswer {
  runId?: string;
  status?: number | Status;
  /** 0.9 has the result of its only item here. */
  result?: ResultAnswer;
  summary?: { runId: string; status: number };
  results?: ItemAnswer[];
}

interface ComponentAnswer {
  /** Since 0.13. */
  componentId?: string;
  /** Before. */
  component?: string;
}

/** By the numbers of ExecutionStatus. */
const STATUSES = ["running", "running", "completed", "failed", "cancelled", "paused", "failed"] as const;

const statusOf = (status: number | Status | undefined): Status =>
  typeof status === "string" ? status : (STATUSES[status ?? 0] ?? "running");

function outcomeOf(answer: RunAnswer): Outcome {
  const { runId = "", status } = answer.summary ?? answer;
  const alone = answer.result === undefined ? [] : [{ status: statusOf(status), result: answer.result }];
  return { runId, status: statusOf(status), items: (answer.results ?? alone).map(itemOf) };
}

function itemOf({ status, output, errorCode, errorMessage, result }: ItemAnswer): Item {
  const error = result?.error;
  if (error) return { status: statusOf(status), code: error.code, message: error.message, details: JSON.stringify(error) };
  if (errorMessage !== undefined) return { status: statusOf(status), code: errorCode ?? 0, message: errorMessage, details: errorMessage };
  return { status: statusOf(status), output: result ? result.result : output };
}

function expectGood(answer: Answer, what: string): Answer {
  if (answer.status >= 300) throw new Error(`${what} answered ${answer.status}: ${answer.body.slice(0, 1_000)}`);
  return answer;
}
