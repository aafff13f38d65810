// The options of `telemetry()`, and the variables for them: OpenTelemetry's own, and those that a protocol brings, which take precedence.
// docs/reference/environment.md lists them.

import { type Clock, systemClock } from "../core/clock.ts";
import { type Environment, variable } from "../core/environment.ts";
import { LongshoreError } from "../core/errors.ts";
import type { TelemetryVariables } from "../runner/telemetry.ts";
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
  /** The worker's name; `longshore-worker` by default. */
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
  /** Further variables, such as `telemetryVariables` of the entry point of a protocol. They take precedence over OpenTelemetry's own. */
  readonly variables?: readonly TelemetryVariables[];
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

const ofOpenTelemetry: TelemetryVariables = { endpoint: "OTEL_EXPORTER_OTLP_ENDPOINT", service: "OTEL_SERVICE_NAME" };

/** The options whose variables switch telemetry on. */
const switches = ["endpoint", "logLevel", "logs", "logFile"] as const;

/** Whether the environment switches it on. `variables` are those of protocols. */
export function isTelemetryWanted(env: Environment = process.env, variables: readonly TelemetryVariables[] = []): boolean {
  return switches.some((option) => new Variables(env, variables).read(option) !== undefined);
}

class Variables {
  readonly #env: Environment;
  readonly #known: readonly TelemetryVariables[];

  constructor(env: Environment, variables: readonly TelemetryVariables[] = []) {
    this.#env = env;
    this.#known = [...variables, ofOpenTelemetry];
  }

  /** The first that is set. */
  read(option: keyof TelemetryVariables): string | undefined {
    return this.#names(option)
      .map((name) => variable(this.#env, name))
      .find((value) => value !== undefined);
  }

  /** How an error names the option. */
  label(option: keyof TelemetryVariables): string {
    const names = this.#names(option);
    return names.length === 0 ? option : `${option} (${names.join(", ")})`;
  }

  #names(option: keyof TelemetryVariables): string[] {
    return [...new Set(this.#known.flatMap((names) => names[option] ?? []))];
  }
}

export function settingsOf(options: TelemetryOptions): Settings {
  const env = options.env ?? process.env;
  const variables = new Variables(env, options.variables);
  const own = (name: string) => variable(env, name);
  const endpoint = endpointOf(options.endpoint ?? variables.read("endpoint"), variables);
  const service = options.service ?? variables.read("service") ?? options.worker ?? "longshore-worker";
  const logs = destinationsOf(options.logs ?? variables.read("logs"), variables) ?? (endpoint === undefined ? ["stderr"] : ["otlp"]);
  const traces = options.traces ?? truth(variables.read("traces"), variables.label("traces")) ?? endpoint !== undefined;
  if (endpoint === undefined && logs.includes("otlp")) {
    throw bad(variables.label("logs"), "otlp", `an ${variables.label("endpoint")} beside it, or another destination`);
  }
  return {
    endpoint,
    protocol: protocolOf(options.protocol ?? own("OTEL_EXPORTER_OTLP_PROTOCOL"), endpoint),
    headers: options.headers ?? pairs(own("OTEL_EXPORTER_OTLP_HEADERS"), "OTEL_EXPORTER_OTLP_HEADERS"),
    service,
    resource: { ...pairs(own("OTEL_RESOURCE_ATTRIBUTES"), "OTEL_RESOURCE_ATTRIBUTES"), ...options.resource },
    // Without a collector there is nowhere to send spans to.
    traces: traces && endpoint !== undefined,
    logs,
    logLevel: levelOf(options.logLevel ?? variables.read("logLevel"), variables),
    logFile: options.logFile ?? variables.read("logFile") ?? `${service.replace(/[^\w.-]/g, "_")}.log`,
    clock: options.clock ?? systemClock,
    nowMs: options.clock === undefined ? () => performance.timeOrigin + performance.now() : () => (options.clock as Clock).now(),
  };
}

function endpointOf(text: string | undefined, variables: Variables): URL | undefined {
  if (text === undefined) return undefined;
  // Addresses of gRPC are often written without a scheme.
  const url = /^[a-z]+:\/\//i.test(text) ? text : `http://${text}`;
  if (URL.canParse(url) && /^https?:$/.test(new URL(url).protocol)) return new URL(url);
  throw bad(variables.label("endpoint"), text, "a URL such as http://localhost:4317");
}

const httpPort = "4318";

function protocolOf(text: string | undefined, endpoint: URL | undefined): OtlpProtocol {
  const isHttp = endpoint !== undefined && (endpoint.port === httpPort || endpoint.pathname !== "/");
  const named = text ?? (isHttp ? "http" : "grpc");
  if (named === "grpc" || named === "http/protobuf") return named;
  if (named === "http" || named === "http/json") return "http/json";
  throw bad("protocol (OTEL_EXPORTER_OTLP_PROTOCOL)", text, "grpc, http, http/json or http/protobuf");
}

function destinationsOf(given: string | readonly string[] | undefined, variables: Variables): readonly LogDestination[] | undefined {
  if (given === undefined) return undefined;
  const names = (typeof given === "string" ? given.split(",") : given)
    .map((name) => name.trim().toLowerCase())
    .filter((name) => name !== "");
  const known: readonly string[] = ["stderr", "file", "otlp"];
  const wrong = names.find((name) => !known.includes(name));
  if (wrong !== undefined) throw bad(variables.label("logs"), wrong, "stderr, file, otlp, or some of them with commas between");
  return [...new Set(names)] as LogDestination[];
}

function levelOf(text: string | undefined, variables: Variables): Level {
  const name = text?.toUpperCase() ?? "INFO";
  const level = levels.find((known) => known === (name === "WARN" ? "WARNING" : name));
  if (level === undefined) throw bad(variables.label("logLevel"), text, levels.join(", "));
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
