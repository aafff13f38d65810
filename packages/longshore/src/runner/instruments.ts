// The metrics of a worker, counted from its events. Names, labels and buckets are those of the canonical metrics of existing SDKs for
// workers, so that their dashboards and alerts work for every protocol. Three are our additions: `task_update_failed_total`, the label
// `retryable`, and `worker_events_dropped_total`. Canonical metrics that a worker cannot have are absent, such as acknowledgements and
// starts of workflows.

import { createMetrics, type Sample } from "../core/metrics.ts";
import type { Events, RequestEvent } from "./events.ts";

/** In seconds. */
const timeBounds = [0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10];
/** In bytes. */
export const sizeBounds = [100, 1e3, 1e4, 1e5, 1e6, 1e7];

export type WorkerMetrics = ReturnType<typeof workerMetrics>;

/** Every metric of a worker. `activeTasks` is called when the metrics are read. */
export function workerMetrics(activeTasks: () => Iterable<Sample>) {
  const metrics = createMetrics({ nameEmpty: true });
  const counter = (name: string, help: string, ...labels: string[]) => metrics.counter(name, help, labels);
  const time = (name: string, help: string, ...labels: string[]) => metrics.histogram(name, help, timeBounds, labels);
  const size = (name: string, help: string, ...labels: string[]) => metrics.histogram(name, help, sizeBounds, labels);
  metrics.sampled("gauge", "active_workers", "Tasks that run now.", activeTasks, ["taskType"]);
  return {
    registry: metrics,
    polls: counter("task_poll_total", "Polls that were started.", "taskType"),
    pollTime: time("task_poll_time_seconds", "How long polls took.", "taskType", "status"),
    pollErrors: counter("task_poll_error_total", "Polls that failed.", "taskType", "exception"),
    started: counter("task_execution_started_total", "Handlers that were called.", "taskType"),
    executeTime: time("task_execute_time_seconds", "How long handlers ran.", "taskType", "status"),
    executeErrors: counter("task_execute_error_total", "Handlers that failed.", "taskType", "exception", "retryable"),
    resultSize: size("task_result_size_bytes", "Length of the results as JSON.", "taskType"),
    updateTime: time("task_update_time_seconds", "How long reports of results took.", "taskType", "status"),
    updateErrors: counter("task_update_error_total", "Tries of a report that failed.", "taskType", "exception"),
    updatesFailed: counter("task_update_failed_total", "Results that could not be reported at all.", "taskType"),
    paused: counter("task_paused_total", "Tasks that were paused.", "taskType"),
    queueFull: counter("task_execution_queue_full_total", "Tasks that came when every slot was taken.", "taskType"),
    uncaught: counter("thread_uncaught_exceptions_total", "Threads and processes of handlers that crashed.", "exception"),
    restarts: counter("worker_restart_total", "Worker processes that were started again.", "task_type"),
    requests: time("http_api_client_request_seconds", "How long requests took; status 0 means no response.", "method", "uri", "status"),
    eventsDropped: counter("worker_events_dropped_total", "Events that a listener was too slow for."),
    payloads: counter("external_payload_used_total", "Payloads stored outside the server.", "entityName", "operation", "payloadType"),
  };
}

/** Counts these events from now on. */
export function measure(events: Pick<Events, "watch" | "onDropped">, metrics: WorkerMetrics): void {
  events.watch("pollStarted", ({ task }) => metrics.polls.with(task).add());
  events.watch("pollCompleted", ({ task, durationMs }) => metrics.pollTime.with(task, "SUCCESS").observe(durationMs / 1_000));
  events.watch("pollFailed", ({ task, durationMs, error }) => {
    metrics.pollTime.with(task, "FAILURE").observe(durationMs / 1_000);
    metrics.pollErrors.with(task, error.name).add();
  });
  events.watch("paused", ({ task }) => metrics.paused.with(task).add());
  events.watch("slotsFull", ({ task }) => metrics.queueFull.with(task).add());
  events.watch("inputFetched", ({ task }) => metrics.payloads.with(task, "READ", "TASK_INPUT").add());
  events.watch("executionStarted", ({ task }) => metrics.started.with(task).add());
  events.watch("executionCompleted", ({ task, durationMs, outputBytes }) => {
    metrics.executeTime.with(task, "SUCCESS").observe(durationMs / 1_000);
    metrics.resultSize.with(task).observe(outputBytes);
  });
  events.watch("executionFailed", ({ task, durationMs, error, retryable }) => {
    metrics.executeTime.with(task, "FAILURE").observe(durationMs / 1_000);
    metrics.executeErrors.with(task, error.name, String(retryable)).add();
  });
  events.watch("updateCompleted", ({ task, durationMs }) => metrics.updateTime.with(task, "SUCCESS").observe(durationMs / 1_000));
  events.watch("updateTryFailed", ({ task, durationMs, error }) => {
    metrics.updateTime.with(task, "FAILURE").observe(durationMs / 1_000);
    metrics.updateErrors.with(task, error.name).add();
  });
  events.watch("updateFailed", ({ task }) => metrics.updatesFailed.with(task).add());
  events.watch("isolateCrashed", ({ error }) => metrics.uncaught.with(error.name).add());
  events.watch("workerRestarted", ({ task }) => metrics.restarts.with(task).add());
  events.watch("requestEnded", (request) => metrics.requests.with(...requestLabels(request)).observe(request.durationMs / 1_000));
  events.onDropped(() => metrics.eventsDropped.with().add());
}

function requestLabels({ method, uri, status }: RequestEvent): [string, string, string] {
  return [method, uri, String(status)];
}
