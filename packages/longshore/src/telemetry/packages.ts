// Loads the OpenTelemetry packages. They are optional: a user installs them to export to a collector.

import { LongshoreError } from "../core/errors.ts";
import type { OtlpProtocol } from "./options.ts";

export type Api = typeof import("@opentelemetry/api");
export type Resources = Pick<typeof import("@opentelemetry/resources"), "defaultResource" | "resourceFromAttributes">;
export type LogSdk = typeof import("@opentelemetry/sdk-logs");
export type Metadata = import("@grpc/grpc-js").Metadata;

/** The options of an exporter of any protocol. */
export interface ExporterOptions {
  readonly url: string;
  readonly headers: Record<string, string>;
  /** Replaces `headers` over gRPC. */
  readonly metadata?: Metadata;
}

export type SpanExporter = import("@opentelemetry/sdk-trace-base").SpanExporter;
export type LogExporter = import("@opentelemetry/sdk-logs").LogRecordExporter;

interface ExporterPackage<Exporter> {
  readonly name: string;
  load(): Promise<(options: ExporterOptions) => Exporter>;
}

/** A package is loaded only when its protocol is used. */
export const spanExporters: Readonly<Record<OtlpProtocol, ExporterPackage<SpanExporter>>> = {
  grpc: {
    name: "@opentelemetry/exporter-trace-otlp-grpc",
    load: async () => made((await import("@opentelemetry/exporter-trace-otlp-grpc")).OTLPTraceExporter),
  },
  "http/json": {
    name: "@opentelemetry/exporter-trace-otlp-http",
    load: async () => made((await import("@opentelemetry/exporter-trace-otlp-http")).OTLPTraceExporter),
  },
  "http/protobuf": {
    name: "@opentelemetry/exporter-trace-otlp-proto",
    load: async () => made((await import("@opentelemetry/exporter-trace-otlp-proto")).OTLPTraceExporter),
  },
};

export const logExporters: Readonly<Record<OtlpProtocol, ExporterPackage<LogExporter>>> = {
  grpc: {
    name: "@opentelemetry/exporter-logs-otlp-grpc",
    load: async () => made((await import("@opentelemetry/exporter-logs-otlp-grpc")).OTLPLogExporter),
  },
  "http/json": {
    name: "@opentelemetry/exporter-logs-otlp-http",
    load: async () => made((await import("@opentelemetry/exporter-logs-otlp-http")).OTLPLogExporter),
  },
  "http/protobuf": {
    name: "@opentelemetry/exporter-logs-otlp-proto",
    load: async () => made((await import("@opentelemetry/exporter-logs-otlp-proto")).OTLPLogExporter),
  },
};

function made<Exporter>(Class: new (options: ExporterOptions) => Exporter): (options: ExporterOptions) => Exporter {
  return (options) => new Class(options);
}

export const loaders = {
  api: () => import("@opentelemetry/api"),
  resources: (): Promise<Resources> => import("@opentelemetry/resources"),
  spans: () => import("@opentelemetry/sdk-trace-base"),
  logs: () => import("@opentelemetry/sdk-logs"),
  grpc: () => import("@grpc/grpc-js"),
};

/** The data to export, and the protocol. */
export interface ExportChoice {
  readonly protocol: OtlpProtocol;
  readonly spans: boolean;
  readonly logs: boolean;
}

/** The newest versions that run on Node 20. The exporters and the SDK of logs have the same version numbers. */
const sdkLine = "@2";
const exporterLine = "@0.223";

/** The command that installs the packages for this choice. */
export function installCommand({ protocol, spans, logs }: ExportChoice): string {
  const packages = [
    "@opentelemetry/api@1",
    `@opentelemetry/resources${sdkLine}`,
    ...(spans ? [`@opentelemetry/sdk-trace-base${sdkLine}`, `${spanExporters[protocol].name}${exporterLine}`] : []),
    ...(logs ? [`@opentelemetry/sdk-logs${exporterLine}`, `${logExporters[protocol].name}${exporterLine}`] : []),
    ...(protocol === "grpc" ? ["@grpc/grpc-js@1"] : []),
  ];
  return `npm install ${packages.join(" ")}`;
}

/** Rejects with LONGSHORE_BAD_CONFIG and the command that installs the packages when one of them is missing. */
export async function installed<Loaded>(load: () => Promise<Loaded>, purpose: string, command: string): Promise<Loaded> {
  try {
    return await load();
  } catch (cause) {
    if (!isMissing(cause)) throw cause;
    const message = `${purpose} needs packages of OpenTelemetry that are not installed. Run: ${command}`;
    throw new LongshoreError("LONGSHORE_BAD_CONFIG", message, { cause, detail: { field: "endpoint", expected: command } });
  }
}

/** The package itself is missing, or a package that it depends on. */
function isMissing(error: unknown): boolean {
  const { code } = error as { readonly code?: unknown };
  return code === "ERR_MODULE_NOT_FOUND" || code === "MODULE_NOT_FOUND";
}
