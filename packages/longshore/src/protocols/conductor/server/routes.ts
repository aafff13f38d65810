// The server half of Conductor: every endpoint. README.md of this protocol is the contract.
//
// What happens when a worker polls: tasks.ts `poll` or `pollBatch` -> engine/board/board.ts `claim` -> engine/board/local-board.ts `claim`. Runs of this dialect are
// ordinary runs: workers of other protocols may take their tasks, and workers of this one take those of other dialects.

import type { Action } from "../../../core/actions.ts";
import type { Clock } from "../../../core/clock.ts";
import type { MakeId } from "../../../core/ids.ts";
import type { BlobStore } from "../../../engine/blob/blob.ts";
import type { Board } from "../../../engine/board/board.ts";
import type { Workers } from "../../../engine/board/workers.ts";
import type { EventStore } from "../../../engine/event/store.ts";
import type { Logs } from "../../../engine/log/log.ts";
import type { DocumentStore } from "../../../engine/run/documents.ts";
import type { Reader } from "../../../engine/run/reader.ts";
import type { Runs } from "../../../engine/run/runs.ts";
import type { ScheduleStore } from "../../../engine/schedule/store.ts";
import type { HttpReply, HttpRequest, Problem, Route, RouteGroup } from "../../../net/http/http.ts";
import { dialectName } from "../dialect/compile.ts";
import { environmentValue, secretValue } from "../dialect/environment.ts";
import { Administration } from "./administration.ts";
import type { Awaiting } from "./await-run.ts";
import { Bulk } from "./bulk.ts";
import { Environment } from "./environment.ts";
import { EventHandlers } from "./event-handlers.ts";
import { executeRoute } from "./execute.ts";
import { Files, fileBytesMax } from "./files.ts";
import { TaskLogs } from "./logs.ts";
import { Metadata } from "./metadata.ts";
import { unserved, unservedCalls } from "./missing-endpoints.ts";
import { Monitoring, type MonitoringDeps } from "./monitoring.ts";
import type { OpenStarter } from "./open-starter.ts";
import { Queues } from "./queues.ts";
import type { Registry } from "./registry.ts";
import { json, notFound, Refused, refusal, refuse, refusedByCore, text } from "./replies.ts";
import { ReportsByReference } from "./reports-by-reference.ts";
import { objectOf, textIn } from "./request.ts";
import { Scheduler } from "./scheduler.ts";
import { Search } from "./search.ts";
import { Tasks } from "./tasks.ts";
import { TestRuns } from "./test-run.ts";
import { Workflows } from "./workflows.ts";

/** What this protocol needs of the server. */
export interface ConductorDeps extends OpenStarter {
  readonly clock: Clock;
  readonly board: Board;
  readonly runs: Runs;
  readonly logs: Logs;
  readonly reader: Reader;
  readonly workers: Workers;
  readonly registry: Registry;
  readonly documents: DocumentStore;
  readonly events: EventStore;
  readonly version: string;
  readonly schedules: ScheduleStore;
  readonly makeId: MakeId;
  readonly blobs: BlobStore;
  readonly filesAddress: string | undefined;
  readonly storage: MonitoringDeps["storage"];
  readonly metrics: MonitoringDeps["metrics"];
  removeRun(runId: string): Promise<boolean>;
  readonly listen: Awaiting["listen"];
  /** Whether clients must send a token, and whether a token is valid. */
  readonly tokens: { readonly required: boolean; known(token: string): boolean };
}

/** A report may be larger than any stored output: an output that is too large is not refused, but ends its task. */
const bodyMax = 12 * 1_024 * 1_024;

export function conductorRoutes(deps: ConductorDeps): RouteGroup {
  const { board, runs, reader, clock, listen, logs, workers, registry, views, renderer, starter } = deps;
  runs.startsFor(dialectName, starter.child);
  const awaiting = { clock, reader, renderer, listen };
  const tasks = new Tasks({
    ...{ reader, clock, board, runs, logs, workers, registry, renderer },
    ...{ secret: secretValue, variable: environmentValue },
  });
  const references = new ReportsByReference({ ...awaiting, board, runs });
  const workflows = new Workflows({ runs, reader, registry, renderer, starter, views, removeRun: deps.removeRun });
  const routes = [
    ...taskRoutes(tasks, references, new TaskLogs(deps), new Queues(deps), new Search({ reader, runs, renderer })),
    ...workflowRoutes(
      workflows,
      new Search({ reader, runs, renderer }),
      executeRoute(awaiting, starter),
      new TestRuns({ ...awaiting, board, starter }),
    ),
    ...bulkRoutes(new Bulk(workflows, renderer, reader)),
    ...metadataRoutes(new Metadata(registry, reader)),
    ...eventRoutes(new EventHandlers(deps.documents, deps.events, reader)),
    ...unservedRoutes,
    ...fileRoutes(
      new Files({ clock, makeId: deps.makeId, reader, documents: deps.documents, blobs: deps.blobs, address: deps.filesAddress }),
    ),
    ...schedulerRoutes(new Scheduler({ clock, reader, schedules: deps.schedules, registry, starter })),
    ...administrationRoutes(new Administration({ reader, renderer, board, workflows, references, version: deps.version })),
    ...environmentRoutes(new Environment(process.env)),
    route("POST", "/token", "token.check", "text", (request) => token(request, deps.tokens)),
    route("GET", "/health", "server.health", "none", () => json({ healthResults: [], suppressedHealthResults: [], healthy: true })),
    route("GET", "/version", "server.version", "none", () => text(deps.version)),
  ];
  routes.push(
    ...monitoringRoutes(
      new Monitoring(deps),
      routes.filter(({ path }) => !unservedPaths.has(path)),
    ),
  );
  return { name: "conductor", routes, unserved, refuse: (problem: Problem) => refuse(problem) };
}

const unservedPaths = new Set(unservedCalls.map(([, path]) => `/api${path}`));

const unservedRoutes = unservedCalls.map(([method, path, action, what]) =>
  route(method, path, action, "none", () => {
    throw notFound(`Longshore does not serve ${what} (${method} /api${path}).`);
  }),
);

type Handler = (request: HttpRequest) => HttpReply | Promise<HttpReply>;

function route(method: Route["method"], path: string, action: Action, body: Route["body"], handler: Handler): Route {
  const handle = async (request: HttpRequest): Promise<HttpReply> => {
    try {
      return await handler(request);
    } catch (error) {
      const refused = refusedByCore(error);
      if (refused === undefined) throw error;
      return refused.reply;
    }
  };
  const isReport = action === "task.report" || action === "task.signal";
  return { method, path: `/api${path}`, action, body, bodyMax, takesLarge: isReport, handle };
}

/** A read of runs, tasks or logs, which any node of a cluster may perform. */
function read(path: string, action: Action, handler: Handler): Route {
  return { ...route("GET", path, action, "none", handler), stored: true };
}

function taskRoutes(tasks: Tasks, references: ReportsByReference, logs: TaskLogs, queues: Queues, search: Search): Route[] {
  return [
    route("GET", "/tasks/poll/:type", "task.claim", "none", tasks.poll),
    route("GET", "/tasks/poll/batch/:type", "task.claim", "none", tasks.pollBatch),
    route("POST", "/tasks/poll/batch/:type", "task.claim", "none", tasks.pollBatch),
    route("POST", "/tasks", "task.report", "text", tasks.update),
    route("POST", "/tasks/update-v2", "task.report", "text", tasks.updateV2),
    route("POST", "/tasks/:workflow/:reference/:status", "task.signal", "text", references.update),
    { ...route("POST", "/tasks/:workflow/:reference/:status/sync", "task.signal", "text", references.updateSync), also: "run.read" },
    route("POST", "/tasks/:workflow/:status/signal", "task.signal", "text", references.signal),
    { ...route("POST", "/tasks/:workflow/:status/signal/sync", "task.signal", "text", references.signalSync), also: "run.read" },
    route("POST", "/tasks/:task/log", "log.write", "text", logs.append),
    read("/tasks/:task/log", "log.read", logs.list),
    read("/tasks/:task", "task.look", tasks.get),
    route("GET", "/tasks/queue/size", "queue.read", "none", queues.size),
    route("GET", "/tasks/queue/sizes", "queue.read", "none", queues.sizes),
    route("GET", "/tasks/queue/all", "queue.read", "none", queues.all),
    route("GET", "/tasks/queue/all/verbose", "queue.read", "none", queues.verbose),
    route("GET", "/tasks/queue/polldata", "worker.read", "none", tasks.pollData),
    route("GET", "/tasks/queue/polldata/all", "worker.read", "none", tasks.allPollData),
    route("POST", "/tasks/queue/requeue/:type", "queue.steer", "none", queues.requeue),
    read("/tasks/search", "task.read", search.tasks),
    read("/tasks/search-v2", "task.read", search.tasksWhole),
  ];
}

function workflowRoutes(workflows: Workflows, search: Search, execute: Handler, tests: TestRuns): Route[] {
  return [
    route("POST", "/workflow", "run.start", "text", workflows.start),
    route("POST", "/workflow/:name", "run.start", "text", workflows.startByName),
    route("POST", "/workflow/test", "run.start", "text", tests.test),
    route("POST", "/workflow/start/:name/:version", "run.start", "text", workflows.startByName),
    route("POST", "/workflow/execute/:name", "run.start", "text", execute),
    route("POST", "/workflow/execute/:name/:version", "run.start", "text", execute),
    read("/workflow/:workflow", "run.read", workflows.get),
    read("/workflow/:workflow/status", "run.read", workflows.status),
    read("/workflow/:workflow/tasks", "run.read", workflows.tasks),
    route("DELETE", "/workflow/:workflow", "run.steer", "none", workflows.terminate),
    route("DELETE", "/workflow/:workflow/remove", "run.remove", "none", workflows.remove),
    route("DELETE", "/workflow/:workflow/terminate-remove", "run.remove", "none", workflows.terminateAndRemove),
    route("PUT", "/workflow/:workflow/pause", "run.steer", "none", workflows.pause),
    route("PUT", "/workflow/:workflow/resume", "run.steer", "none", workflows.resume),
    route("PUT", "/workflow/:workflow/skiptask/:reference", "run.steer", "text", workflows.skip),
    route("POST", "/workflow/:workflow/rerun", "run.steer", "text", workflows.rerun),
    route("POST", "/workflow/:workflow/restart", "run.steer", "none", workflows.restart),
    route("POST", "/workflow/:workflow/retry", "run.steer", "none", workflows.retry),
    route("POST", "/workflow/:workflow/resetcallbacks", "run.steer", "none", workflows.resetCallbacks),
    route("PUT", "/workflow/decide/:workflow", "run.steer", "none", workflows.decide),
    read("/workflow/running/:name", "run.read", workflows.running),
    read("/workflow/:name/correlated/:correlation", "run.read", workflows.correlated),
    route("POST", "/workflow/:name/correlated", "run.read", "text", workflows.correlatedList),
    read("/workflow/search", "run.read", search.workflows),
    read("/workflow/search-v2", "run.read", search.workflowsWhole),
    read("/workflow/search-by-tasks", "run.read", search.byTasks),
    read("/workflow/search-by-tasks-v2", "run.read", search.byTasksWhole),
  ];
}

function bulkRoutes(bulk: Bulk): Route[] {
  return [
    route("PUT", "/workflow/bulk/pause", "run.steer", "text", bulk.pause),
    route("PUT", "/workflow/bulk/resume", "run.steer", "text", bulk.resume),
    route("POST", "/workflow/bulk/restart", "run.steer", "text", bulk.restart),
    route("POST", "/workflow/bulk/retry", "run.steer", "text", bulk.retry),
    route("POST", "/workflow/bulk/terminate", "run.steer", "text", bulk.terminate),
    route("DELETE", "/workflow/bulk/remove", "run.remove", "text", bulk.remove),
    route("DELETE", "/workflow/bulk/terminate-remove", "run.remove", "text", bulk.terminateAndRemove),
    route("POST", "/workflow/bulk/search", "run.read", "text", bulk.search),
  ];
}

function administrationRoutes(administration: Administration): Route[] {
  return [
    route("GET", "/admin/config", "server.inspect", "none", administration.config),
    route("GET", "/admin/task/:type", "task.read", "none", administration.tasks),
    route("GET", "/admin/queues", "queue.read", "none", administration.queues),
    route("POST", "/admin/sweep/requeue/:workflow", "run.steer", "none", administration.sweep),
    route("POST", "/admin/consistency/verifyAndRepair/:workflow", "run.steer", "none", administration.repair),
    route("GET", "/queue/size", "queue.read", "none", administration.queues),
    route("GET", "/queue/", "queue.read", "none", administration.queues),
    route("POST", "/queue/update/:workflow/:reference/:status", "task.signal", "text", administration.update),
    route("POST", "/queue/update/:workflow/task/:task/:status", "task.signal", "text", administration.updateById),
  ];
}

/** Paths outside of `/api`. */
function monitoringRoutes(monitoring: Monitoring, described: readonly Route[]): Route[] {
  const at = (path: string, action: Action, handler: Handler): Route => ({ ...route("GET", "", action, "none", handler), path });
  return [
    at("/api-docs", "server.describe", monitoring.document(described)),
    at("/actuator", "server.describe", monitoring.index),
    at("/actuator/health", "server.health", monitoring.health),
    at("/actuator/info", "server.version", monitoring.info),
    at("/actuator/prometheus", "server.measure", monitoring.prometheus),
  ];
}

function fileRoutes(files: Files): Route[] {
  const content = "/files/content/:workflow/:file";
  return [
    route("POST", "/files", "blob.write", "text", files.create),
    route("GET", "/files/:workflow/:file", "blob.read", "none", files.facts),
    route("GET", "/files/:workflow/:file/upload-url", "blob.read", "none", files.uploadAddress),
    route("POST", "/files/:workflow/:file/upload-complete", "blob.write", "none", files.confirm),
    route("GET", "/files/:workflow/:file/download-url", "blob.read", "none", files.downloadAddress),
    { ...route("PUT", content, "blob.write", "stream", files.upload), bodyMax: fileBytesMax },
    { ...route("GET", content, "blob.read", "none", files.content), openEnded: true },
  ];
}

function schedulerRoutes(scheduler: Scheduler): Route[] {
  return [
    route("GET", "/scheduler/schedules", "schedule.read", "none", scheduler.list),
    route("POST", "/scheduler/schedules", "schedule.write", "text", scheduler.put),
    route("GET", "/scheduler/schedules/search", "schedule.read", "none", scheduler.search),
    route("GET", "/scheduler/schedules/:name", "schedule.read", "none", scheduler.get),
    route("DELETE", "/scheduler/schedules/:name", "schedule.write", "none", scheduler.remove),
    route("PUT", "/scheduler/schedules/:name/pause", "schedule.steer", "none", scheduler.pause),
    route("PUT", "/scheduler/schedules/:name/resume", "schedule.steer", "none", scheduler.resume),
    route("PUT", "/scheduler/bulk/pause", "schedule.steer", "text", scheduler.pauseAll),
    route("PUT", "/scheduler/bulk/resume", "schedule.steer", "text", scheduler.resumeAll),
    route("GET", "/scheduler/nextFewSchedules", "schedule.read", "none", scheduler.times),
    route("GET", "/scheduler/search/executions", "schedule.read", "none", scheduler.executions),
  ];
}

function environmentRoutes(environment: Environment): Route[] {
  return [
    route("GET", "/secrets", "setting.read", "none", environment.secrets),
    route("POST", "/secrets", "setting.read", "none", environment.secrets),
    route("GET", "/secrets/v2", "setting.read", "none", environment.secretsWithParts),
    route("GET", "/secrets/:name", "secret.read", "none", environment.secret),
    route("GET", "/secrets/:name/exists", "setting.read", "none", environment.hasSecret),
    route("PUT", "/secrets/:name", "secret.read", "none", environment.changeSecret),
    route("DELETE", "/secrets/:name", "secret.read", "none", environment.changeSecret),
    route("GET", "/environment", "setting.read", "none", environment.settings),
    route("GET", "/environment/:name", "setting.read", "none", environment.setting),
  ];
}

function metadataRoutes(metadata: Metadata): Route[] {
  return [
    route("POST", "/metadata/taskdefs", "task-definition.write", "text", metadata.createTaskDefs),
    route("PUT", "/metadata/taskdefs", "task-definition.write", "text", metadata.updateTaskDef),
    route("PUT", "/metadata/taskdefs/:name", "task-definition.write", "text", metadata.updateTaskDef),
    route("GET", "/metadata/taskdefs", "task-definition.read", "none", metadata.taskDefs),
    route("GET", "/metadata/taskdefs/:name", "task-definition.read", "none", metadata.taskDef),
    route("DELETE", "/metadata/taskdefs/:name", "definition.remove", "none", metadata.removeTaskDef),
    route("POST", "/metadata/workflow", "definition.write", "text", metadata.createWorkflow),
    route("PUT", "/metadata/workflow", "definition.write", "text", metadata.updateWorkflows),
    route("POST", "/metadata/workflow/validate", "definition.check", "text", metadata.validateWorkflow),
    route("GET", "/metadata/workflow", "definition.read", "none", metadata.workflows),
    route("GET", "/metadata/workflow/names", "definition.read", "none", metadata.names),
    route("GET", "/metadata/workflow/names-and-versions", "definition.read", "none", metadata.namesAndVersions),
    route("GET", "/metadata/workflow/latest-versions", "definition.read", "none", metadata.latest),
    route("GET", "/metadata/workflow/:name", "definition.read", "none", metadata.workflow),
    route("GET", "/metadata/workflow/:name/versions", "definition.read", "none", metadata.versions),
    route("DELETE", "/metadata/workflow/:name/:version", "definition.remove", "none", metadata.removeWorkflow),
    route("POST", "/schema", "task-definition.write", "text", metadata.createSchemas),
    route("GET", "/schema", "definition.read", "none", metadata.schemas),
    route("GET", "/schema/:name", "definition.read", "none", metadata.schema),
    route("GET", "/schema/:name/:version", "definition.read", "none", metadata.schema),
    route("DELETE", "/schema/:name", "definition.remove", "none", metadata.removeSchema),
    route("DELETE", "/schema/:name/:version", "definition.remove", "none", metadata.removeSchema),
  ];
}

function eventRoutes(handlers: EventHandlers): Route[] {
  return [
    route("POST", "/event", "definition.write", "text", handlers.create),
    route("PUT", "/event", "definition.write", "text", handlers.change),
    route("DELETE", "/event/:name", "definition.remove", "none", handlers.remove),
    route("GET", "/event", "definition.read", "none", handlers.all),
    route("GET", "/event/:event", "definition.read", "none", handlers.ofEvent),
  ];
}

/**
 * Exchanges a key and its secret for a token. Tokens of this server are secrets already, so the token that is returned is the secret
 * itself.
 */
function token(request: HttpRequest, tokens: ConductorDeps["tokens"]): HttpReply {
  if (!tokens.required) throw new Refused(404, "No static resource api/token.");
  const secret = textIn(objectOf(request, "the token request"), "keySecret") ?? "";
  if (!tokens.known(secret)) return refusal(401, "The key or its secret is not known to this server.", { error: "INVALID_CREDENTIALS" });
  return json({ token: secret });
}
