// FlowKit's tasks over HTTP: submit, read and cancel a graph, and read the results of its nodes. Answers are the documents of FlowKit's own
// coordinator, so existing readers can use them.

import type { Action } from "../../../core/actions.ts";
import { LongshoreError } from "../../../core/errors.ts";
import { isObject, type JsonObject } from "../../../core/json/json.ts";
import type { HttpReply, HttpRequest, Route } from "../../../net/http/http.ts";
import { httpBase } from "../wire/shapes.ts";
import { badField, bodyOf, jsonReply, objectIn, queryText, queryWhole } from "./request.ts";

/** What the routes need from the coordinator. Null means that there is no such task. */
export interface Tasks {
  /** Rejects with LONGSHORE_BAD_DEFINITION that names the place in the graph. `ignored` are fields without effect. */
  create(task: { params: JsonObject; graph: JsonObject }): Promise<{ id: string; ignored: readonly string[] }>;
  task(id: string): Promise<JsonObject | null>;
  /** Newest first; `next` is the `before` of the following page. */
  list(page: TasksPage): Promise<{ items: JsonObject[]; next: string | null }>;
  /** Returns the task after the cancel. A task that has ended is not changed. */
  cancel(id: string, reason: string): Promise<JsonObject | null>;
  /** Parts of a node after a position; `complete` has the final metrics once the node has succeeded. */
  artifacts(id: string, node: string, page: { after: number; limit: number }): Promise<ArtifactsPage | null>;
  /** The dead letters of its nodes. */
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
  /** The `after` of the following page; null when there are no further parts now. */
  readonly next: number | null;
  readonly complete: JsonObject | null;
}

export const taskStatuses = ["queued", "running", "deferred", "cancelling", "finished", "failed"] as const;
export type TaskStatus = (typeof taskStatuses)[number];

/** Maximum size of a graph with its inputs. A node gets at most one bus record, 1 MB, so a higher limit would not help. */
const bodyMax = 4 * 1_024 * 1_024;
/** Maximum number of tasks in one page. */
const tasksPageMax = 100;
const partsPageMax = 1_000;
const pageDefault = 50;
/** Maximum length of a reason: it is shown in lists and logs. */
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
