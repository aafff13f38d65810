// The SDK's metrics collector and its server, on the worker's own instruments. It always collects the metrics that the SDK calls canonical; there is no other set.

import { writeFileSync } from "node:fs";
import { type Metrics, metricsContentType } from "../../../../core/metrics.ts";
import type { Events, Listeners } from "../../../../runner/events.ts";
import type { HttpHandle } from "../../../../runner/http.ts";
import { measure, sizeBounds, type WorkerMetrics, workerMetrics } from "../../../../runner/instruments.ts";
import type * as Told from "./events.ts";

/** Where a metrics collector publishes its figures. */
export interface MetricsCollectorConfig {
  /** Serves `/metrics` and `/health` on this port. */
  httpPort?: number;
  /** Writes the metrics into this file at each interval. */
  filePath?: string;
  /** Milliseconds; 5000 by default. */
  fileWriteIntervalMs?: number;
}

/** The methods of the SDK's collector, which a program may call. */
export interface MetricsCollectorInterface extends Told.TaskRunnerEventsListener {
  recordTaskExecutionQueueFull(taskType: string): void;
  recordUncaughtException(exception?: string): void;
  recordWorkerRestart(taskType?: string): void;
  recordTaskPaused(taskType: string): void;
  recordTaskAckError(taskType: string, exception?: string): void;
  recordTaskAckFailed(taskType: string): void;
  recordWorkflowStartError(workflowType?: string, exception?: string): void;
  recordExternalPayloadUsed(payloadType: string, entityName?: string, operation?: string): void;
  recordWorkflowInputSize(workflowType: string, sizeBytes: number, version?: string): void;
  recordApiRequestTime(method: string, uri: string, status: number | string, durationMs: number): void;
  collectorName(): string;
  reset(): void;
  stop(): Promise<void>;
  getContentType(): string;
  toPrometheusText(): string;
  toPrometheusTextAsync(): Promise<string>;
}

const fileWriteMsDefault = 5_000;
const unknown = "unknown";

/** Families of the SDK that our worker never updates, because it acknowledges nothing and starts no workflow. Only a program's own calls of `record...` change them. */
function handMetrics(registry: Metrics) {
  return {
    ackErrors: registry.counter("task_ack_error_total", "Acknowledgements that failed.", ["taskType", "exception"]),
    acksFailed: registry.counter("task_ack_failed_total", "Acknowledgements that were refused.", ["taskType"]),
    startErrors: registry.counter("workflow_start_error_total", "Workflows that could not be started.", ["workflowType", "exception"]),
    inputSize: registry.histogram("workflow_input_size_bytes", "Length of the inputs of started workflows.", sizeBounds, [
      "workflowType",
      "version",
    ]),
  };
}

type Watchers = { [event: string]: (event: never) => void };

/** Counts what workers do and serves the figures as Prometheus text. Pass it as a listener of a `TaskHandler`. */
export class CanonicalMetricsCollector implements MetricsCollectorInterface {
  readonly #active = new Map<string, number>();
  #metrics!: WorkerMetrics & ReturnType<typeof handMetrics>;
  #measured!: Watchers;
  #server: MetricsServer | undefined;
  #fileTimer: NodeJS.Timeout | undefined;

  constructor(config: MetricsCollectorConfig = {}) {
    this.reset();
    if (config.httpPort !== undefined) {
      this.#server = new MetricsServer(this, config.httpPort);
      void this.#server.start().catch((error: Error) => process.emitWarning(error.message, "LongshoreWarning"));
    }
    if (config.filePath !== undefined) this.#writeEvery(config.filePath, config.fileWriteIntervalMs ?? fileWriteMsDefault);
  }

  /** The events of a TaskHandler's runner. They are more than the SDK's listeners get: every try and every request is counted. */
  listeners(): Listeners {
    const counts: { [name: string]: number } = { executionStarted: 1, executionCompleted: -1, executionFailed: -1 };
    const names = Object.keys(this.#measured);
    return Object.fromEntries(
      names.map((name) => [
        name,
        (event: { readonly task: string }) => {
          if (counts[name] !== undefined) this.#count(event.task, counts[name]);
          this.#measured[name]?.(event as never);
        },
      ]),
    );
  }

  reset(): void {
    this.#active.clear();
    const metrics = workerMetrics(() => [...this.#active].map(([task, value]) => ({ labels: [task], value })));
    this.#metrics = { ...metrics, ...handMetrics(metrics.registry) };
    const measured: Watchers = {};
    const watch: Events["watch"] = (name, watcher) => {
      measured[name] = watcher as Watchers[string];
    };
    measure({ watch, onDropped: () => {} }, this.#metrics);
    this.#measured = measured;
  }

  /** Never below 0: a task may fail without having been started. */
  #count(task: string, by: number): void {
    this.#active.set(task, Math.max(0, (this.#active.get(task) ?? 0) + by));
  }

  onPollStarted(event: Told.PollStarted): void {
    this.#metrics.polls.with(event.taskType).add();
  }

  onPollCompleted(event: Told.PollCompleted): void {
    this.#metrics.pollTime.with(event.taskType, "SUCCESS").observe(event.durationMs / 1_000);
  }

  onPollFailure(event: Told.PollFailure): void {
    this.#metrics.pollTime.with(event.taskType, "FAILURE").observe(event.durationMs / 1_000);
    this.#metrics.pollErrors.with(event.taskType, event.cause.name).add();
  }

  onTaskExecutionStarted(event: Told.TaskExecutionStarted): void {
    this.#count(event.taskType, 1);
    this.#metrics.started.with(event.taskType).add();
  }

  onTaskExecutionCompleted(event: Told.TaskExecutionCompleted): void {
    this.#count(event.taskType, -1);
    this.#metrics.executeTime.with(event.taskType, "SUCCESS").observe(event.durationMs / 1_000);
    if (event.outputSizeBytes !== undefined) this.#metrics.resultSize.with(event.taskType).observe(event.outputSizeBytes);
  }

  onTaskExecutionFailure(event: Told.TaskExecutionFailure): void {
    this.#count(event.taskType, -1);
    this.#metrics.executeTime.with(event.taskType, "FAILURE").observe(event.durationMs / 1_000);
    this.#metrics.executeErrors.with(event.taskType, event.cause.name, String(event.cause.name !== "NonRetryableException")).add();
  }

  onTaskUpdateCompleted(event: Told.TaskUpdateCompleted): void {
    this.#metrics.updateTime.with(event.taskType, "SUCCESS").observe(event.durationMs / 1_000);
  }

  onTaskUpdateFailure(event: Told.TaskUpdateFailure): void {
    this.#metrics.updateErrors.with(event.taskType, event.cause.name).add();
    this.#metrics.updatesFailed.with(event.taskType).add();
  }

  onTaskPaused(event: Told.TaskPaused): void {
    this.recordTaskPaused(event.taskType);
  }

  recordTaskExecutionQueueFull(taskType: string): void {
    this.#metrics.queueFull.with(taskType).add();
  }

  recordUncaughtException(exception = unknown): void {
    this.#metrics.uncaught.with(exception).add();
  }

  recordWorkerRestart(taskType = unknown): void {
    this.#metrics.restarts.with(taskType).add();
  }

  recordTaskPaused(taskType: string): void {
    this.#metrics.paused.with(taskType).add();
  }

  recordTaskAckError(taskType: string, exception = unknown): void {
    this.#metrics.ackErrors.with(taskType, exception).add();
  }

  recordTaskAckFailed(taskType: string): void {
    this.#metrics.acksFailed.with(taskType).add();
  }

  recordWorkflowStartError(workflowType = unknown, exception = unknown): void {
    this.#metrics.startErrors.with(workflowType, exception).add();
  }

  recordExternalPayloadUsed(payloadType: string, entityName = unknown, operation = unknown): void {
    this.#metrics.payloads.with(entityName, operation, payloadType).add();
  }

  recordWorkflowInputSize(workflowType: string, sizeBytes: number, version = ""): void {
    this.#metrics.inputSize.with(workflowType, version).observe(sizeBytes);
  }

  recordApiRequestTime(method: string, uri: string, status: number | string, durationMs: number): void {
    this.#metrics.requests.with(method, uri, String(status)).observe(durationMs / 1_000);
  }

  collectorName(): string {
    return "canonical";
  }

  getContentType(): string {
    return metricsContentType;
  }

  toPrometheusText(): string {
    return this.#metrics.registry.text();
  }

  async toPrometheusTextAsync(): Promise<string> {
    return this.toPrometheusText();
  }

  async stop(): Promise<void> {
    clearInterval(this.#fileTimer);
    await this.#server?.stop();
  }

  #writeEvery(path: string, everyMs: number): void {
    let reported = false;
    this.#fileTimer = setInterval(() => {
      try {
        writeFileSync(path, this.toPrometheusText());
      } catch (error) {
        // A full disk or a missing folder must not stop a worker; it is reported once.
        if (!reported) process.emitWarning(`The metrics cannot be written: ${(error as Error).message}`, "LongshoreWarning");
        reported = true;
      }
    }, everyMs);
    this.#fileTimer.unref();
  }
}

/** Creates a collector; the same as `new CanonicalMetricsCollector(config)`. */
export function createMetricsCollector(config?: MetricsCollectorConfig): CanonicalMetricsCollector {
  return new CanonicalMetricsCollector(config);
}

/** Serves a collector's metrics at `/metrics`, and also `/health`. By default it listens on 127.0.0.1 only; the SDK's server listens on every address. */
export class MetricsServer {
  readonly #collector: MetricsCollectorInterface;
  readonly #port: number;
  readonly #host: string;
  #handle: HttpHandle | undefined;

  constructor(collector: MetricsCollectorInterface, port: number, options: { host?: string } = {}) {
    this.#collector = collector;
    this.#port = port;
    this.#host = options.host ?? "127.0.0.1";
  }

  /** Where it serves; undefined while it does not. */
  get url(): string | undefined {
    return this.#handle?.url;
  }

  async start(): Promise<void> {
    const { serveWorker } = await import("../../../../runner/http.ts");
    const metrics = () => this.#collector.toPrometheusTextAsync();
    this.#handle ??= await serveWorker({ port: this.#port, host: this.#host }, { metrics, workers: () => ({}) });
  }

  async stop(): Promise<void> {
    const handle = this.#handle;
    this.#handle = undefined;
    await handle?.close();
  }
}
