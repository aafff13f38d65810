// Helper functions for requests that many chapters make, so that a chapter is easy to read.
import type { Step } from "../../src/differential/script.ts";

type More = Partial<Step>;

const JSON_HEADERS = { "content-type": "application/json" };

export const get = (name: string, path: string, more: More = {}): Step => ({ name, method: "GET", path: `/api${path}`, ...more });

/** A string is sent unchanged as the body, any other value as JSON, and undefined as no body. */
const sending =
  (method: string) =>
  (name: string, path: string, body?: unknown, more: More = {}): Step => ({
    name,
    method,
    path: `/api${path}`,
    ...(body === undefined ? {} : { headers: JSON_HEADERS, body: typeof body === "string" ? body : JSON.stringify(body) }),
    ...more,
  });

export const post = sending("POST");
export const put = sending("PUT");
export const del = sending("DELETE");

/** Registers task definitions. The recording only contains that the server accepted them. */
export const taskDefs = (name: string, ...definitions: unknown[]): Step => post(name, "/metadata/taskdefs", definitions);

export const workflowDef = (name: string, definition: unknown): Step => post(name, "/metadata/workflow", definition);

/** Starts a run and keeps its id under `as`. */
export const start = (name: string, request: Record<string, unknown>, as = "wf"): Step =>
  post(name, "/workflow", request, { keep: { [as]: "" } });

/** Polls one task until there is one, and keeps its id. */
export const poll = (name: string, type: string, as = "task"): Step =>
  get(name, `/tasks/poll/${type}?workerid=w1`, { until: /"taskId"/, keep: { [as]: "taskId" } });

export const update = (name: string, result: Record<string, unknown>, { wf = "wf", task = "task" } = {}): Step =>
  post(name, "/tasks", { workflowInstanceId: `{{${wf}}}`, taskId: `{{${task}}}`, ...result });

export const updateV2 = (name: string, result: Record<string, unknown>, { wf = "wf", task = "task" } = {}, more: More = {}): Step =>
  post(name, "/tasks/update-v2", { workflowInstanceId: `{{${wf}}}`, taskId: `{{${task}}}`, ...result }, more);

export const complete = (name: string, outputData: Record<string, unknown> = {}): Step =>
  update(name, { status: "COMPLETED", outputData, workerId: "w1" });

export const fail = (name: string, more: Record<string, unknown> = {}): Step =>
  update(name, { status: "FAILED", reasonForIncompletion: "no luck", workerId: "w1", ...more });

/** Starts a run and waits for its response. */
export const execute = (name: string, flow: string, parameters: string, body: unknown = {}, more: More = {}): Step =>
  post(name, `/workflow/execute/${flow}?requestId=r1&${parameters}`, body, more);

export const run = (name: string, wf = "wf"): Step => get(name, `/workflow/{{${wf}}}`);

/** Reads the whole run again and again until it shows the expected state. */
export const runUntil = (name: string, until: RegExp, wf = "wf"): Step => get(name, `/workflow/{{${wf}}}`, { until });

/** Reads the run's status until it is the given one. The response is short, and the order of its keys is fixed. */
export const reaches = (name: string, status: string, wf = "wf"): Step =>
  get(name, `/workflow/{{${wf}}}/status`, { until: new RegExp(`"status":"${status}"`) });

export const simple = (name: string, ref: string, inputParameters: Record<string, unknown> = {}, more: Record<string, unknown> = {}) => ({
  name,
  taskReferenceName: ref,
  type: "SIMPLE",
  inputParameters,
  ...more,
});

export const operator = (type: string, ref: string, more: Record<string, unknown> = {}) => ({
  name: ref,
  taskReferenceName: ref,
  type,
  ...more,
});

export const workflow = (name: string, tasks: unknown[], more: Record<string, unknown> = {}) => ({
  name,
  version: 1,
  schemaVersion: 2,
  tasks,
  ...more,
});

/** A task definition whose retries start at once, so that no chapter waits. */
export const quick = (name: string, more: Record<string, unknown> = {}) => ({
  name,
  retryCount: 0,
  retryDelaySeconds: 0,
  responseTimeoutSeconds: 3600,
  ...more,
});
