// Spans and structured logs of a worker, on any protocol, published as `longshore/telemetry`:
//
//   await work({ tasks, on, telemetry: await telemetry({ endpoint: "http://localhost:4317" }) });

import { Episodes, stderrLogger } from "../runner/notices.ts";
import type { Telemetry, Tracer } from "../runner/telemetry.ts";
import type { OpenTelemetryApi } from "./api-tracer.ts";
import { Batcher } from "./batcher.ts";
import type { Exporter } from "./exporter.ts";
import { logWriter } from "./logs.ts";
import { type Settings, settingsOf, type TelemetryOptions } from "./options.ts";
import { logsRequest, resourceOf, tracesRequest } from "./otlp.ts";
import type { LogRecord, LogSink, SpanRecord } from "./records.ts";
import { FileSink, stderrSink } from "./sinks.ts";
import { makeTracer } from "./tracer.ts";

export type { OpenTelemetryApi } from "./api-tracer.ts";
export { isTelemetryWanted, type LogDestination, type OtlpProtocol, type TelemetryOptions } from "./options.ts";
export type { Level } from "./records.ts";

/** Without options everything is read from the environment. Rejects with LONGSHORE_BAD_CONFIG for what makes no sense. */
export async function telemetry(
  options: TelemetryOptions = {},
): Promise<Required<Pick<Telemetry, "logger" | "attach" | "close">> & Telemetry> {
  const settings = settingsOf(options);
  const exporter = settings.endpoint === undefined ? undefined : await exporterTo(settings.endpoint, settings);
  const out = outlets(settings, exporter);
  const { logger, attach } = logWriter({ level: settings.logLevel, nowMs: settings.nowMs, sinks: out.sinks });
  const { spans } = out;
  const tracer = options.api === undefined ? ownTracer(settings, spans) : await tracerOf(options.api);
  return {
    ...(tracer === undefined ? {} : { tracer }),
    logger,
    attach,
    close: async () => {
      await Promise.all([spans?.close(), ...out.sinks.map((sink) => sink.close())]);
      await exporter?.close();
    },
  };
}

function ownTracer({ nowMs }: Settings, spans: Batcher<SpanRecord> | undefined): Tracer | undefined {
  return spans === undefined ? undefined : makeTracer({ nowMs, ended: (span) => spans.add(span) });
}

async function tracerOf(api: OpenTelemetryApi | true): Promise<Tracer> {
  const { apiTracer, loadApi } = await import("./api-tracer.ts");
  return apiTracer(api === true ? await loadApi() : api);
}

interface Outlets {
  readonly spans: Batcher<SpanRecord> | undefined;
  readonly sinks: readonly LogSink[];
}

function outlets(settings: Settings, exporter: Exporter | undefined): Outlets {
  const { clock, service, resource: more, traces, logs, logFile } = settings;
  const resource = resourceOf(service, more);
  // Troubles of the export go past the log that may itself be exported.
  const episodes = new Episodes(clock, stderrLogger, `telemetry ${settings.endpoint?.origin ?? ""}`.trim());
  const batcher = <Item>(what: string, send: (items: readonly Item[], signal: AbortSignal) => Promise<void>) =>
    new Batcher<Item>({
      clock,
      send,
      failing: (error) => void episodes.failing(`the export of ${what}`, error),
      working: () => void episodes.working(`the export of ${what}`),
      dropped: (count) => stderrLogger({ level: "warn", message: `Telemetry lost ${count} ${what}, which could not be sent.` }),
    });
  const sinkTo = (destination: string): LogSink => {
    if (destination === "stderr") return stderrSink();
    if (destination === "file") return new FileSink(logFile, stderrLogger);
    return batcher<LogRecord>("log records", (records, signal) => (exporter as Exporter).logs(logsRequest(resource, records), signal));
  };
  const sendSpans = (spans: readonly SpanRecord[], signal: AbortSignal) =>
    (exporter as Exporter).traces(tracesRequest(resource, spans), signal);
  return { spans: traces && exporter !== undefined ? batcher("spans", sendSpans) : undefined, sinks: logs.map(sinkTo) };
}

/** Each is loaded only where it is used. */
async function exporterTo(endpoint: URL, { protocol, headers, clock }: Settings): Promise<Exporter> {
  if (protocol === "http") return (await import("./otlp-http.ts")).otlpHttp({ endpoint, headers, clock });
  return (await import("./otlp-grpc.ts")).otlpGrpc({ endpoint, headers, clock });
}
