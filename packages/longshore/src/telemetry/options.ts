// The options of `telemetry()`, and the variables for them. The names with STEPFLOW_ are those of Stepflow's worker guide, those with
// OTEL_ OpenTelemetry's own; the former take precedence. docs/reference/environment.md lists them.

import { type Clock, systemClock } from "../core/clock.ts";
import { type Environment, variable } from "../core/environment.ts";
import { LongshoreError } from "../core/errors.ts";
import type { OpenTelemetryApi } from "./api-tracer.ts";
import { type Level, levels } from "./records.ts";

/** Where log records are written. */
export type LogDestination = "stderr" | "file" | "otlp";
/** The transport of OTLP. */
export type OtlpProtocol = "grpc" | "http/json" | "http/protobuf";

/** The options of `telemetry()`. */
export interface TelemetryOptions {
  /** The collector, such as `http://localhost:4317`. Without one nothing is exported. */
  readonly endpoint?: string;
  /** `http` is `http/json`. By default `http` for port 4318 and for addresses with a path, and `grpc` otherwise. */
  readonly protocol?: OtlpProtocol | "http";
  /** Sent with every export, such as `{ authorization: "Bearer ..." }`. */
  readonly headers?: Readonly<Record<string, string>>;
  /** The name of the service on traces and logs; by default that of the environment, else the worker's. */
  readonly service?: string;
  /** The worker's name; by default `stepflow-worker` where Stepflow's variables start the worker, else `longshore-worker`. */
  readonly worker?: string;
  /** Attributes of this process on every span and record, beside those it has by itself. */
  readonly resource?: Readonly<Record<string, string>>;
  /** Whether executions become spans; true when there is an endpoint. */
  readonly traces?: boolean;
  /**
   * Spans go through OpenTelemetry's own API, for programs that have set up its SDK, and not to the endpoint: the module
   * `@opentelemetry/api`, or true to load the one that is installed.
   */
  readonly api?: OpenTelemetryApi | true;
  /** Where log records go; `otlp` when there is an endpoint, else `stderr`. */
  readonly logs?: LogDestination | readonly LogDestination[];
  /** Records below it are not written; INFO by default. */
  readonly logLevel?: Level;
  /** The file of `logs: "file"`; by default the name of the service and `.log`. */
  readonly logFile?: string;
  /** Where variables are looked up; by default this process's environment. */
  readonly env?: Environment;
  readonly clock?: Clock;
}

export interface Settings {
  readonly endpoint: URL | undefined;
  readonly protocol: OtlpProtocol;
  readonly headers: Readonly<Record<string, string>>;
  readonly service: string;
  readonly resource: Readonly<Record<string, string>>;
  readonly traces: boolean;
  readonly logs: readonly LogDestination[];
  readonly logLevel: Level;
  readonly logFile: string;
  readonly clock: Clock;
  /** Milliseconds since the epoch with their fractions: handlers may be over within one. */
  readonly nowMs: () => number;
}

/** Variables that switch telemetry on. */
const switches = [
  "STEPFLOW_OTLP_ENDPOINT",
  "STEPFLOW_LOG_LEVEL",
  "STEPFLOW_LOG_DESTINATION",
  "STEPFLOW_LOG_FILE",
  "OTEL_EXPORTER_OTLP_ENDPOINT",
];

/** Variables that start a worker of Stepflow. */
const stepflowStarts = ["STEPFLOW_TRANSPORT", "STEPFLOW_TASKS_URL", "STEPFLOW_NATS_URL"];

/** Whether the environment switches it on. */
export function isTelemetryWanted(env: Environment = process.env): boolean {
  return switches.some((name) => variable(env, name) !== undefined);
}

export function settingsOf(options: TelemetryOptions): Settings {
  const env = options.env ?? process.env;
  const first = (...names: string[]) => names.map((name) => variable(env, name)).find((value) => value !== undefined);
  const endpoint = endpointOf(options.endpoint ?? first("STEPFLOW_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT"));
  const worker = options.worker ?? (first(...stepflowStarts) === undefined ? "longshore-worker" : "stepflow-worker");
  const service = options.service ?? first("STEPFLOW_SERVICE_NAME", "OTEL_SERVICE_NAME") ?? worker;
  const logs = destinationsOf(options.logs ?? first("STEPFLOW_LOG_DESTINATION")) ?? (endpoint === undefined ? ["stderr"] : ["otlp"]);
  const traces = options.traces ?? truth(first("STEPFLOW_TRACE_ENABLED"), "STEPFLOW_TRACE_ENABLED") ?? endpoint !== undefined;
  if (endpoint === undefined && logs.includes("otlp")) {
    throw bad("logs", "otlp", "an endpoint (STEPFLOW_OTLP_ENDPOINT) beside it, or another destination");
  }
  return {
    endpoint,
    protocol: protocolOf(options.protocol ?? first("OTEL_EXPORTER_OTLP_PROTOCOL"), endpoint),
    headers: options.headers ?? pairs(first("OTEL_EXPORTER_OTLP_HEADERS"), "OTEL_EXPORTER_OTLP_HEADERS"),
    service,
    resource: { ...pairs(first("OTEL_RESOURCE_ATTRIBUTES"), "OTEL_RESOURCE_ATTRIBUTES"), ...options.resource },
    // Without a collector there is nowhere to send spans to.
    traces: traces && endpoint !== undefined,
    logs,
    logLevel: levelOf(options.logLevel ?? first("STEPFLOW_LOG_LEVEL")),
    logFile: options.logFile ?? first("STEPFLOW_LOG_FILE") ?? `${service.replace(/[^\w.-]/g, "_")}.log`,
    clock: options.clock ?? systemClock,
    nowMs: options.clock === undefined ? () => performance.timeOrigin + performance.now() : () => (options.clock as Clock).now(),
  };
}

function endpointOf(text: string | undefined): URL | undefined {
  if (text === undefined) return undefined;
  // Addresses of gRPC are often written without a scheme.
  const url = /^[a-z]+:\/\//i.test(text) ? text : `http://${text}`;
  if (URL.canParse(url) && /^https?:$/.test(new URL(url).protocol)) return new URL(url);
  throw bad("endpoint (STEPFLOW_OTLP_ENDPOINT)", text, "a URL such as http://localhost:4317");
}

const httpPort = "4318";

function protocolOf(text: string | undefined, endpoint: URL | undefined): OtlpProtocol {
  const isHttp = endpoint !== undefined && (endpoint.port === httpPort || endpoint.pathname !== "/");
  const named = text ?? (isHttp ? "http" : "grpc");
  if (named === "grpc" || named === "http/protobuf") return named;
  if (named === "http" || named === "http/json") return "http/json";
  throw bad("protocol (OTEL_EXPORTER_OTLP_PROTOCOL)", text, "grpc, http, http/json or http/protobuf");
}

function destinationsOf(told: string | readonly string[] | undefined): readonly LogDestination[] | undefined {
  if (told === undefined) return undefined;
  const names = (typeof told === "string" ? told.split(",") : told).map((name) => name.trim().toLowerCase()).filter((name) => name !== "");
  const known: readonly string[] = ["stderr", "file", "otlp"];
  const wrong = names.find((name) => !known.includes(name));
  if (wrong !== undefined) throw bad("logs (STEPFLOW_LOG_DESTINATION)", wrong, "stderr, file, otlp, or some of them with commas between");
  return [...new Set(names)] as LogDestination[];
}

function levelOf(text: string | undefined): Level {
  const name = text?.toUpperCase() ?? "INFO";
  const level = levels.find((known) => known === (name === "WARN" ? "WARNING" : name));
  if (level === undefined) throw bad("logLevel (STEPFLOW_LOG_LEVEL)", text, levels.join(", "));
  return level;
}

function truth(text: string | undefined, field: string): boolean | undefined {
  if (text === undefined) return undefined;
  if (/^(true|1|yes|on)$/i.test(text)) return true;
  if (/^(false|0|no|off)$/i.test(text)) return false;
  throw bad(field, text, "true or false");
}

/** `a=1,b=2`, percent-encoded where it must be. */
function pairs(text: string | undefined, field: string): Readonly<Record<string, string>> {
  if (text === undefined) return {};
  const entries = text.split(",").map((pair) => {
    const at = pair.indexOf("=");
    if (at <= 0) throw bad(field, text, "pairs such as name=value, with commas between");
    return [pair.slice(0, at).trim(), decoded(pair.slice(at + 1).trim())];
  });
  return Object.fromEntries(entries);
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    // A lone percent sign is meant as one.
    return text;
  }
}

function bad(field: string, value: unknown, expected: string): LongshoreError {
  return new LongshoreError("LONGSHORE_BAD_CONFIG", `${field} is ${JSON.stringify(value)}, expected ${expected}.`, {
    detail: { field, expected },
  });
}
