// The options of `telemetry()`, and their environment variables: OpenTelemetry's own, and those of protocols, which take precedence.
// docs/reference/environment.md lists them.

import { type Clock, systemClock } from "../core/clock.ts";
import { type Environment, variable } from "../core/environment.ts";
import { LongshoreError } from "../core/errors.ts";
import { withoutLogin } from "../core/without-login.ts";
import type { TelemetryVariables } from "../runner/telemetry.ts";
import type { OpenTelemetryApi } from "./api-tracer.ts";
import { type Level, levels } from "./records.ts";

/** Where log records are written. */
export type LogDestination = "stderr" | "file" | "otlp";
/** The transport of OTLP. */
export type OtlpProtocol = "grpc" | "http/json" | "http/protobuf";

/** The options of `telemetry()`. */
export interface TelemetryOptions {
  /** The collector, such as `http://localhost:4317`. Without it, nothing is exported. */
  readonly endpoint?: string;
  /** `http` means `http/json`. Default: `http` for port 4318 and for addresses with a path, `grpc` otherwise. */
  readonly protocol?: OtlpProtocol | "http";
  /** Sent with every export, such as `{ authorization: "Bearer ..." }`. */
  readonly headers?: Readonly<Record<string, string>>;
  /** The name of the service on traces and logs. Default: the name in the environment, else the worker's name. */
  readonly service?: string;
  /** The worker's name. Default: `longshore-worker`. */
  readonly worker?: string;
  /** Attributes of this process on every span and record, in addition to the automatic ones. */
  readonly resource?: Readonly<Record<string, string>>;
  /** Whether executions become spans. Default: true when there is an endpoint. */
  readonly traces?: boolean;
  /**
   * For programs that have set up OpenTelemetry's SDK: sends spans through its API and not to the endpoint. The value is the module
   * `@opentelemetry/api`, or true to load the installed one.
   */
  readonly api?: OpenTelemetryApi | true;
  /** Where log records are written. Default: `otlp` when there is an endpoint, else `stderr`. */
  readonly logs?: LogDestination | readonly LogDestination[];
  /** Lower levels are not written. Default: INFO. */
  readonly logLevel?: Level;
  /** The file of `logs: "file"`. Default: the name of the service and `.log`. */
  readonly logFile?: string;
  /** The environment variables. Default: those of this process. */
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
  /** Milliseconds since the epoch with fractions: a handler may take less than a millisecond. */
  readonly nowMs: () => number;
}

const ofOpenTelemetry: TelemetryVariables = { endpoint: "OTEL_EXPORTER_OTLP_ENDPOINT", service: "OTEL_SERVICE_NAME" };

/** The options whose variables turn telemetry on. */
const switches = ["endpoint", "logLevel", "logs", "logFile"] as const;

/** Whether the environment turns telemetry on. `variables` are those of protocols. */
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

  /** The value of the first variable that is set. */
  read(option: keyof TelemetryVariables): string | undefined {
    return this.#names(option)
      .map((name) => variable(this.#env, name))
      .find((value) => value !== undefined);
  }

  /** The name of the option in errors. */
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
    // Without a collector, spans have no destination.
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
  // gRPC addresses are often written without a scheme.
  const url = /^[a-z]+:\/\//i.test(text) ? text : `http://${text}`;
  if (URL.canParse(url) && /^https?:$/.test(new URL(url).protocol)) return new URL(url);
  throw bad(variables.label("endpoint"), withoutLogin(text), "a URL such as http://localhost:4317");
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

/** Parses `a=1,b=2` with optional percent-encoding. */
function pairs(text: string | undefined, field: string): Readonly<Record<string, string>> {
  if (text === undefined) return {};
  const entries = text.split(",").map((pair) => {
    const at = pair.indexOf("=");
    if (at <= 0) throw misspelt(field);
    return [pair.slice(0, at).trim(), decoded(pair.slice(at + 1).trim())];
  });
  return Object.fromEntries(entries);
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    // A lone percent sign stays a percent sign.
    return text;
  }
}

/** Headers are often secrets, so the message does not show them. */
function misspelt(field: string): LongshoreError {
  const expected = "pairs such as name=value, with commas between";
  return new LongshoreError("LONGSHORE_BAD_CONFIG", `${field} cannot be read, expected ${expected}.`, { detail: { field, expected } });
}

function bad(field: string, value: unknown, expected: string): LongshoreError {
  return new LongshoreError("LONGSHORE_BAD_CONFIG", `${field} is ${JSON.stringify(value)}, expected ${expected}.`, {
    detail: { field, expected },
  });
}
