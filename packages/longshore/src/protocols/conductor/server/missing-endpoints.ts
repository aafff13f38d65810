// What Conductor's API has and this server does not serve, each with its reason. The refusal of a request contains both.

import type { Action } from "../../../core/actions.ts";
import type { Route } from "../../../net/http/http.ts";

/** Paths, with everything below them. */
export const unserved: Readonly<Record<string, string>> = {
  "/api/scheduler/admin":
    "a pause of one process and a queue of starts, because it has neither (PUT /api/scheduler/bulk/pause pauses schedules)",
  "/api/agent": "Conductor's agents, because it calls no model: tasks of the type AGENT and of model calls go to workers of yours",
  "/api/a2a": "Conductor's agents, because it calls no model: tasks of the type AGENT and of model calls go to workers of yours",
  "/api/providers": "the list of model providers, because it calls no model: tasks of model calls go to workers of yours",
  "/context.js": "the settings of Conductor's web pages, because it has pages of its own at /ui",
};

const storage =
  "external payload storage, because inputs and outputs of up to 10 MiB are sent in their requests: switch it off in the client";

const parts = "uploads in parts, because a file is one request of any size up to 1 GiB, as with the real server's own storage";

/** Calls that are listed one by one, because another route would take them for the name or id of something. */
export const unservedCalls: readonly (readonly [method: Route["method"], path: string, action: Action, what: string])[] = [
  ["GET", "/workflow/externalstoragelocation", "run.read", storage],
  ["GET", "/workflow/external-storage-location", "run.read", storage],
  ["GET", "/tasks/externalstoragelocation", "task.look", storage],
  ["GET", "/tasks/external-storage-location", "task.look", storage],
  ["POST", "/files/:workflow/:file/multipart", "blob.read", parts],
  ["GET", "/files/:workflow/:file/multipart/:upload/part/:part", "blob.read", parts],
  ["POST", "/files/:workflow/:file/multipart/:upload/complete", "blob.read", parts],
  ["DELETE", "/files/:workflow/:file/multipart/:upload", "blob.read", parts],
];
