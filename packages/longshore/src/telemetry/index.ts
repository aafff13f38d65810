// Spans and structured logs of a worker, on any protocol, published as `longshore/telemetry`:
//
//   await work({ tasks, on, telemetry: await telemetry({ endpoint: "http://localhost:4317" }) });

import { stderrLogger } from "../runner/notices.ts";
import type { Telemetry, Tracer } from "../runner/telemetry.ts";
import type { OpenTelemetryApi } from "./api-tracer.ts";
import { logWriter } from "./logs.ts";
import { type LogDestination, type Settings, settingsOf, type TelemetryOptions } from "./options.ts";
import type { LogSink } from "./records.ts";
import type { Sdk } from "./sdk.ts";
import { FileSink, stderrSink } from "./sinks.ts";

export type { TelemetryVariables } from "../runner/telemetry.ts";
export type { OpenTelemetryApi } from "./api-tracer.ts";
export { isTelemetryWanted, type LogDestination, type OtlpProtocol, type TelemetryOptions } from "./options.ts";
export type { Level } from "./records.ts";

/**
 * Without options, all settings come from the environment. Rejects with LONGSHORE_BAD_CONFIG for an invalid setting, and when a collector
 * is set but OpenTelemetry's packages are not installed.
 */
export async function telemetry(
  options: TelemetryOptions = {},
): Promise<Required<Pick<Telemetry, "logger" | "attach" | "close">> & Telemetry> {
  const settings = settingsOf(options);
  const sdk = await sdkFor(settings, options.api === undefined);
  const sinks = settings.logs.map((destination) => sinkTo(destination, settings, sdk));
  const { logger, attach } = logWriter({ level: settings.logLevel, nowMs: settings.nowMs, sinks });
  const tracer = options.api === undefined ? sdk?.tracer : await tracerOf(options.api);
  return {
    ...(tracer === undefined ? {} : { tracer }),
    ...(sdk?.spans === undefined ? {} : { spans: sdk.spans }),
    logger,
    attach,
    close: async () => void (await Promise.all([sdk?.close(), ...sinks.map((sink) => sink.close())])),
  };
}

/** Returns undefined when nothing is sent to a collector. */
async function sdkFor(settings: Settings, ownSpans: boolean): Promise<Sdk | undefined> {
  const { endpoint, traces, logs } = settings;
  const wanted = { spans: traces && ownSpans, logs: logs.includes("otlp") };
  if (endpoint === undefined || !(wanted.spans || wanted.logs)) return undefined;
  const { openSdk } = await import("./sdk.ts");
  return openSdk(endpoint, settings, wanted);
}

async function tracerOf(api: OpenTelemetryApi | true): Promise<Tracer> {
  const { apiTracer, loadApi } = await import("./api-tracer.ts");
  return apiTracer(api === true ? await loadApi() : api);
}

function sinkTo(destination: LogDestination, { logFile }: Settings, sdk: Sdk | undefined): LogSink {
  if (destination === "stderr") return stderrSink();
  if (destination === "file") return new FileSink(logFile, stderrLogger);
  // The SDK is always open for this destination.
  return sdk?.log as LogSink;
}
