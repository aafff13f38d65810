// FlowKit's tasks over HTTP: submitting a graph, looking at it, cancelling it, and reading what its nodes have produced. Answers are the
// documents that FlowKit's own coordinator keeps, so that their readers can read these.

import type { Action } from "../../../core/actions.ts";
import { LongshoreError } from "../../../core/errors.ts";
import { isObject, type JsonObject } from "../../../core/json/json.ts";
import type { HttpReply, HttpRequest, Route } from "../../../net/http/http.ts";
import { httpBase } from "../wire/shapes.ts";
import { badField, bodyOf, jsonReply, objectIn, queryText, queryWhole } from "./request.ts";

/** What the routes need of the coordinator. Null: there is no such task. */
export interface Tasks {
  /** Rejects with LONGSHORE_BAD_DEFINITION, naming the place in the graph. `ignored` are fields of it that have no effect. */
  create(task: { params: JsonObject; graph: JsonObject }): Promise<{ id: string; ignored: readonly string[] }>;
  task(id: string): Promise<JsonObject | null>;
  /** Newest first; `next` is the `before` of the following page. */
  list(page: TasksPage): Promise<{ items: JsonObject[]; next: string | null }>;
  /** Returns the task afterwards. One that has ended stays as it is. */
  cancel(id: string, reason: string): Promise<JsonObject | null>;
  /** Parts of a node after a position; `complete` once it has ended well, with its final metrics. */
  artifacts(id: string, node: string, page: { after: number; limit: number }): Promise<ArtifactsPage | null>;
  /** Batches that its nodes have put aside, or failed for. */
  deadLetters(id: string): Promise<readonly JsonObject[] | null>;
}

export interface TasksPage {
  readonly status?: TaskStatus;
  /** Only tasks whose graph has this name. */
  readonly name?: string;
  readonly before?: string;
  readonly limit: number;
}

export interface ArtifactsPage {
  readonly items: readonly JsonObject[];
  /** The `after` of the following page; null when there is nothing behind this one now. */
  readonly next: number | null;
  readonly complete: JsonObject | null;
}

export const taskStatuses = ["queued", "running", "deferred", "cancelling", "finished", "failed"] as const;
export type TaskStatus = (typeof taskStatuses)[number];

/** A graph of the largest size with its inputs. A node is given at most a record of the bus, 1 MB, so that more helps no graph. */
const bodyMax = 4 * 1_024 * 1_024;
/** A page of tasks carries their whole graphs. */
const tasksPageMax = 100;
const partsPageMax = 1_000;
const pageDefault = 50;
/** A reason is shown in lists and logs. */
const reasonCharsMax = 1_000;
const reasonDefault = "user_request";

export function taskRoutes(tasks: Tasks): Route[] {
  const known = <T>(found: T | null, id: string): T => {
    if (found !== null) return found;
    throw new LongshoreError("LONGSHORE_NOT_FOUND", `There is no task ${id}.`, { detail: { field: "task_id" } });
  };
  return [
    route("POST", "", "run.start", async (request) => {
      const body = bodyOf(request);
      if (!isObject(body.graph)) throw badField("graph", body.graph, "an object with nodes");
      const { id, ignored } = await tasks.create({ params: objectIn(body, "params"), graph: objectIn(body, "graph") });
      return jsonReply(ignored.length === 0 ? { task_id: id } : { task_id: id, ignored }, 201);
    }),
    route("GET", "", "run.read", async (request) => {
      const status = request.query.get("status") ?? undefined;
      if (status !== undefined && !isStatus(status)) throw badField("status", status, `one of ${taskStatuses.join(", ")}`);
      const before = request.query.get("before") ?? undefined;
      const name = request.query.get("name") ?? undefined;
      const limit = queryWhole(request, "limit", { min: 1, max: tasksPageMax, fallback: pageDefault });
      const page = { limit, ...(status === undefined ? {} : { status }), ...(name === undefined ? {} : { name }) };
      return jsonReply(await tasks.list(before === undefined ? page : { ...page, before }));
    }),
    route("GET", "/:task", "run.read", async ({ params }) =>
      jsonReply(known(await tasks.task(params.task as string), params.task as string)),
    ),
    route("POST", "/:task/cancel", "run.steer", async (request) => {
      const id = request.params.task as string;
      const { reason = reasonDefault } = bodyOf(request);
      if (typeof reason !== "string" || reason.length > reasonCharsMax) {
        throw badField("reason", reason, `a text of at most ${reasonCharsMax} characters`);
      }
      return jsonReply(known(await tasks.cancel(id, reason), id), 202);
    }),
    route("GET", "/:task/dead-letters", "run.read", async ({ params }) => {
      const id = params.task as string;
      return jsonReply({ items: known(await tasks.deadLetters(id), id) });
    }),
    route("GET", "/:task/artifacts", "run.read", async (request) => {
      const id = request.params.task as string;
      const after = queryWhole(request, "after", { fallback: 0 });
      const limit = queryWhole(request, "limit", { min: 1, max: partsPageMax, fallback: pageDefault });
      return jsonReply(known(await tasks.artifacts(id, queryText(request, "node"), { after, limit }), id));
    }),
  ];
}

function route(method: Route["method"], path: string, action: Action, handle: (request: HttpRequest) => Promise<HttpReply>): Route {
  return { method, path: `${httpBase}/tasks${path}`, action, body: method === "GET" ? "none" : "text", bodyMax, handle };
}

function isStatus(text: string): text is TaskStatus {
  return (taskStatuses as readonly string[]).includes(text);
}
