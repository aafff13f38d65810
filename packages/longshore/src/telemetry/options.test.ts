import { describe, expect, it } from "vitest";
import { telemetryVariables } from "../protocols/stepflow/worker/environment.ts";
import { isTelemetryWanted, settingsOf } from "./options.ts";

const variables = [telemetryVariables];
const from = (env: Record<string, string>) => settingsOf({ env, variables });

describe("the environment", () => {
  it("[S-OBS-12, S-OBS-14, S-OBS-16] without an endpoint exports nothing and logs to standard error", () => {
    expect(from({})).toMatchObject({ endpoint: undefined, traces: false, logs: ["stderr"] });
    expect(from({ STEPFLOW_TRACE_ENABLED: "true" }).traces).toBe(false);
    expect(isTelemetryWanted({})).toBe(false);
  });

  it("[S-OBS-12, S-OBS-14, S-OBS-16] with an endpoint exports traces and logs to it by default", () => {
    const STEPFLOW_OTLP_ENDPOINT = "http://localhost:4317";
    expect(from({ STEPFLOW_OTLP_ENDPOINT })).toMatchObject({ traces: true, logs: ["otlp"], protocol: "grpc" });
    expect(from({ STEPFLOW_OTLP_ENDPOINT, STEPFLOW_TRACE_ENABLED: "false" })).toMatchObject({ traces: false, logs: ["otlp"] });
    expect(from({ STEPFLOW_OTLP_ENDPOINT, STEPFLOW_LOG_DESTINATION: "stderr" })).toMatchObject({ traces: true, logs: ["stderr"] });
    expect(isTelemetryWanted({ STEPFLOW_OTLP_ENDPOINT }, variables)).toBe(true);
    expect(isTelemetryWanted({ STEPFLOW_OTLP_ENDPOINT })).toBe(false);
  });

  it("[S-OBS-12] chooses the protocol by port and path: 4317 is gRPC, 4318 is HTTP", () => {
    const spoken = (endpoint: string) => settingsOf({ endpoint, env: {} }).protocol;
    expect(["http://h:4317", "h:4317", "https://h:443", "http://h:9999"].map(spoken)).toEqual(Array(4).fill("grpc"));
    expect(["http://h:4318", "h:4318", "https://h/otlp", "http://h:4317/v1/traces"].map(spoken)).toEqual(Array(4).fill("http/json"));
    const told = (text: string) => settingsOf({ endpoint: "http://h:4317", env: { OTEL_EXPORTER_OTLP_PROTOCOL: text } }).protocol;
    expect(["http", "http/json", "http/protobuf", "grpc"].map(told)).toEqual(["http/json", "http/json", "http/protobuf", "grpc"]);
    expect(settingsOf({ endpoint: "http://h:4318", protocol: "grpc", env: {} }).protocol).toBe("grpc");
  });

  it("[S-OBS-13] names the service", () => {
    const started = { STEPFLOW_TASKS_URL: "http://h:7837" };
    expect(from(started).service).toBe("longshore-worker");
    expect(from({ ...started, STEPFLOW_SERVICE_NAME: "my-worker" }).service).toBe("my-worker");
    expect(from({ STEPFLOW_SERVICE_NAME: "my-worker", OTEL_SERVICE_NAME: "other" }).service).toBe("my-worker");
    expect(from({ OTEL_SERVICE_NAME: "other" }).service).toBe("other");
  });

  it("names the service after the worker when no name is set", () => {
    expect(from({}).service).toBe("longshore-worker");
    expect(settingsOf({ worker: "crane", env: {} }).service).toBe("crane");
    expect(settingsOf({ worker: "crane", env: { OTEL_SERVICE_NAME: "other" } }).service).toBe("other");
    expect(settingsOf({ worker: "crane", service: "harbour", env: {} }).service).toBe("harbour");
  });

  it("[S-OBS-15] sets the level, INFO by default", () => {
    expect(from({}).logLevel).toBe("INFO");
    const levels = ["DEBUG", "INFO", "WARNING", "ERROR", "warn", "debug"].map((level) => from({ STEPFLOW_LOG_LEVEL: level }).logLevel);
    expect(levels).toEqual(["DEBUG", "INFO", "WARNING", "ERROR", "WARNING", "DEBUG"]);
  });

  it("[S-OBS-16] may name several destinations, and a file for one of them", () => {
    const env = { STEPFLOW_OTLP_ENDPOINT: "http://h:4317", STEPFLOW_LOG_DESTINATION: "stderr, file,otlp,stderr" };
    expect(from(env)).toMatchObject({ logs: ["stderr", "file", "otlp"], logFile: "longshore-worker.log" });
    expect(from({ ...env, STEPFLOW_LOG_FILE: "/tmp/w.log" }).logFile).toBe("/tmp/w.log");
  });

  it("may also use OpenTelemetry's own variables", () => {
    const env = {
      OTEL_EXPORTER_OTLP_ENDPOINT: "https://collector.example",
      OTEL_EXPORTER_OTLP_HEADERS: "authorization=Bearer%20x, tenant=a",
      OTEL_RESOURCE_ATTRIBUTES: "deployment.environment=test",
    };
    expect(from(env)).toMatchObject({
      traces: true,
      headers: { authorization: "Bearer x", tenant: "a" },
      resource: { "deployment.environment": "test" },
    });
    expect(from(env).endpoint?.href).toBe("https://collector.example/");
  });

  it.each([
    [{ STEPFLOW_OTLP_ENDPOINT: "ftp://h" }, "STEPFLOW_OTLP_ENDPOINT"],
    [{ STEPFLOW_OTLP_ENDPOINT: "not an address" }, "STEPFLOW_OTLP_ENDPOINT"],
    [{ STEPFLOW_LOG_DESTINATION: "syslog" }, "STEPFLOW_LOG_DESTINATION"],
    [{ STEPFLOW_LOG_DESTINATION: "otlp" }, "STEPFLOW_OTLP_ENDPOINT"],
    [{ STEPFLOW_LOG_LEVEL: "LOUD" }, "STEPFLOW_LOG_LEVEL"],
    [{ STEPFLOW_TRACE_ENABLED: "maybe" }, "STEPFLOW_TRACE_ENABLED"],
    [{ OTEL_EXPORTER_OTLP_PROTOCOL: "smoke" }, "OTEL_EXPORTER_OTLP_PROTOCOL"],
    [{ OTEL_EXPORTER_OTLP_HEADERS: "nonsense" }, "OTEL_EXPORTER_OTLP_HEADERS"],
  ])("is refused by the variable's name when it is %j", (env, name) => {
    expect(() => from(env as Record<string, string>)).toThrow(name);
  });
});
