// An operator of our coordinator: submits graphs, reads their state and cancels them.
import { startOurServer } from "../src/longshore.ts";
import type { Stage } from "../src/stage.ts";
import { until } from "../src/until.ts";
import type { Place } from "./place.ts";
import type { GraphNode } from "./python.ts";

export interface Operator {
  readonly url: string;
  submit(nodes: readonly GraphNode[]): Promise<string>;
  read(id: string): Promise<TaskDocument>;
  /** Waits until every node of the task has ended or can no longer begin. Continues to wait when the server restarts. */
  ended(id: string): Promise<TaskDocument>;
  /** Waits until a node is running. */
  begun(id: string, node: string): Promise<NodeDocument>;
  cancel(id: string): Promise<void>;
  artifacts(id: string, node: string): Promise<Artifact[]>;
}

export interface NodeDocument {
  node_id: string;
  status: string;
  attempt_epoch: number;
  last_error?: string;
  lease?: { worker_id: string };
}

export interface TaskDocument {
  id: string;
  status: string;
  state: string;
  error: string | null;
  graph: { nodes: NodeDocument[] };
}

export interface Artifact {
  batch_uid: string;
  attempt_epoch: number;
  meta: { count: number; skus: string[]; by: string };
}

/** How long a lease lasts, and after which time a command is sent to another worker. Short, so that tests do not wait long. */
const CONFIG = { lease_ttl_sec: 5, offer_sec: 3, cancel_grace_sec: 10 };

export interface Coordinator extends Operator {
  /** What the server has logged. */
  readonly log: () => string;
  readonly stop: () => Promise<unknown>;
  readonly kill: () => Promise<unknown>;
  /** Starts another server on the same data. */
  again(): Promise<Coordinator>;
}

/** Starts our coordinator with the services of a place. */
export async function startCoordinator(
  stage: Stage,
  place: Place,
  types: readonly string[],
  before: { data?: string; port?: number; config?: Record<string, unknown> } = {},
): Promise<Coordinator> {
  const { brokers, mongo, database, prefix } = place;
  const config = { ...CONFIG, worker_types: types, ...topicsOf(prefix), ...before.config };
  const flowkit = { brokers, mongo: `${mongo}/${database}`, config };
  const { data, port } = before;
  const server = await startOurServer(stage, { flowkit, ...(data === undefined ? {} : { data }), ...(port === undefined ? {} : { port }) });
  return {
    ...operatorOf(server.url),
    log: () => server.child.output(),
    stop: () => server.child.stop(),
    kill() {
      server.child.signal("SIGKILL");
      return server.child.ended;
    },
    again: () => startCoordinator(stage, place, types, { ...before, data: server.data, port: Number(new URL(server.url).port) }),
  };
}

function topicsOf(prefix: string): Record<string, string> {
  return {
    topic_cmd_fmt: `${prefix}cmd.{type}.v1`,
    topic_status_fmt: `${prefix}status.{type}.v1`,
    topic_worker_announce: `${prefix}workers.announce.v1`,
    topic_query: `${prefix}query.tasks.v1`,
    topic_reply: `${prefix}reply.tasks.v1`,
    topic_signals: `${prefix}signals.v1`,
  };
}

const PAGE = 1_000;

function operatorOf(url: string): Operator {
  const call = async <T>(method: string, path: string, body?: unknown): Promise<T> => {
    const json = body === undefined ? {} : { headers: { "content-type": "application/json" }, body: JSON.stringify(body) };
    const response = await fetch(`${url}/flowkit/v1/tasks${path}`, { method, ...json });
    const text = await response.text();
    if (!response.ok) throw new Error(`${method} ${path} answered ${response.status}: ${text}`);
    return JSON.parse(text) as T;
  };
  const read = (id: string): Promise<TaskDocument> => call("GET", `/${id}`);
  /** Waits until the document has the expected content. A server that was killed refuses connections until it runs again. */
  const look = async <T>(what: string, id: string, find: (document: TaskDocument) => T | undefined): Promise<T> => {
    let seen: unknown;
    const ask = async (): Promise<T | undefined> => {
      const document = await read(id).catch(String);
      seen = document;
      return typeof document === "string" ? undefined : find(document);
    };
    return until(what, ask, () => seen);
  };
  return {
    url,
    read,
    async submit(nodes) {
      return (await call<{ task_id: string }>("POST", "", { params: {}, graph: { nodes } })).task_id;
    },
    ended: (id) => look(`the end of ${id}`, id, (document) => (OPEN.has(document.status) ? undefined : document)),
    begun: (id, node) =>
      look(`${node} to begin`, id, ({ graph }) => graph.nodes.find(({ node_id, lease }) => node_id === node && lease !== undefined)),
    cancel: async (id) => void (await call("POST", `/${id}/cancel`, { reason: "user_request" })),
    async artifacts(id, node) {
      return (await call<{ items: Artifact[] }>("GET", `/${id}/artifacts?node=${node}&limit=${PAGE}`)).items;
    },
  };
}

const OPEN: ReadonlySet<string> = new Set(["queued", "running", "deferred", "cancelling"]);
