// Sends spans and log records to a collector, with OpenTelemetry's own SDK and exporters. OpenTelemetry's global state is not changed: a
// program that has set up its own SDK keeps it.

import { hostname } from "node:os";
import type { SpanWriter } from "../core/trace.ts";
import { packageVersion } from "../core/version.ts";
import { Episodes, stderrLogger } from "../runner/notices.ts";
import type { Tracer } from "../runner/telemetry.ts";
import { apiTracer } from "./api-tracer.ts";
import type { Settings } from "./options.ts";
import { Outlet } from "./outlet.ts";
import {
  type Api,
  type ExportChoice,
  type ExporterOptions,
  installCommand,
  installed,
  type LogExporter,
  loaders,
  logExporters,
  type Metadata,
  type Resources,
  type SpanExporter,
  spanExporters,
} from "./packages.ts";
import { recordLogger } from "./record-logger.ts";
import type { LogSink } from "./records.ts";
import { GivenIds, spanWriter } from "./span-writer.ts";

/** The size of a batch: OpenTelemetry's default. */
const batchMax = 512;
/** The limit of waiting spans, and of waiting records. At a kilobyte each they stay below ten megabytes. */
const queueMax = 8_192;
/** The maximum delay before a batch is sent. */
const everyMs = 1_000;
const batches = { maxExportBatchSize: batchMax, maxQueueSize: queueMax, scheduledDelayMillis: everyMs };

export interface Sdk {
  readonly tracer: Tracer | undefined;
  readonly spans: SpanWriter | undefined;
  /** `close` of the SDK does not close this sink. Its caller does, as with every sink. */
  readonly log: LogSink | undefined;
  /** Sends the remaining spans. Never rejects. */
  close(): Promise<void>;
}

type Resource = ReturnType<Resources["resourceFromAttributes"]>;

interface SdkDeps {
  readonly api: Api;
  readonly resource: Resource;
  readonly exporterOptions: (path: string) => ExporterOptions;
  readonly episodes: Episodes;
}

/** Rejects with LONGSHORE_BAD_CONFIG when packages are missing. */
export async function openSdk(endpoint: URL, settings: Settings, wanted: Pick<ExportChoice, "spans" | "logs">): Promise<Sdk> {
  const command = installCommand({ ...wanted, protocol: settings.protocol });
  return installed(() => open(endpoint, settings, wanted), `The export to ${endpoint.origin}`, command);
}

async function open(endpoint: URL, settings: Settings, wanted: Pick<ExportChoice, "spans" | "logs">): Promise<Sdk> {
  const [api, resources] = await Promise.all([loaders.api(), loaders.resources()]);
  const metadata = settings.protocol === "grpc" ? await metadataOf(settings.headers) : undefined;
  const deps: SdkDeps = {
    api,
    resource: resources.defaultResource().merge(resources.resourceFromAttributes(attributesOf(settings))),
    exporterOptions: (path) => exporterOptions(endpoint, settings, path, metadata),
    // Export failures are logged to standard error, because the configured log may itself be exported.
    episodes: new Episodes(settings.clock, stderrLogger, `telemetry ${endpoint.origin}`),
  };
  const spans = wanted.spans ? await openSpans(settings, deps) : undefined;
  const log = wanted.logs ? await openLogs(settings, deps) : undefined;
  return {
    tracer: spans?.tracer,
    spans: spans?.writer,
    log,
    close: async () => spans?.close(),
  };
}

async function openSpans({ protocol, clock }: Settings, { api, resource, exporterOptions, episodes }: SdkDeps) {
  const [sdk, make] = await Promise.all([loaders.spans(), spanExporters[protocol].load()]);
  type Span = Parameters<SpanExporter["export"]>[0][number];
  const outlet = new Outlet<Span>({ what: "spans", exporter: make(exporterOptions("/v1/traces")), clock, episodes });
  const counted = { onStart: () => {}, onEnd: () => outlet.added(), forceFlush: async () => {}, shutdown: async () => {} };
  const ids = new GivenIds(new sdk.RandomIdGenerator());
  const provider = new sdk.BasicTracerProvider({
    idGenerator: ids,
    resource,
    spanProcessors: [counted, new sdk.BatchSpanProcessor(outlet, batches)],
  });
  const tracer = provider.getTracer("longshore", packageVersion());
  return { tracer: apiTracer(api, tracer), writer: spanWriter(api, tracer, ids), close: () => outlet.close(() => provider.shutdown()) };
}

async function openLogs({ protocol, clock }: Settings, { api, resource, exporterOptions, episodes }: SdkDeps): Promise<LogSink> {
  const [sdk, make] = await Promise.all([loaders.logs(), logExporters[protocol].load()]);
  type Record = Parameters<LogExporter["export"]>[0][number];
  const outlet = new Outlet<Record>({ what: "log records", exporter: make(exporterOptions("/v1/logs")), clock, episodes });
  const processor = new sdk.BatchLogRecordProcessor({ exporter: outlet, ...batches });
  const provider = new sdk.LoggerProvider({ resource, processors: [processor] });
  const write = recordLogger(api, provider.getLogger("longshore", packageVersion()));
  return {
    add: (record) => {
      outlet.added();
      write(record);
    },
    close: () => outlet.close(() => provider.shutdown()),
  };
}

/** Attributes of this process, by OpenTelemetry's names. */
function attributesOf({ service, resource }: Settings): Record<string, string | number> {
  return {
    "service.name": service,
    "service.instance.id": `${hostname()}-${process.pid}`,
    "host.name": hostname(),
    "process.pid": process.pid,
    "process.runtime.name": "nodejs",
    "process.runtime.version": process.versions.node,
    ...resource,
  };
}

function exporterOptions(endpoint: URL, { protocol, headers }: Settings, path: string, metadata: Metadata | undefined): ExporterOptions {
  if (protocol === "grpc") return { url: endpoint.origin, headers: {}, ...(metadata === undefined ? {} : { metadata }) };
  // The endpoint may already end with the path for traces or for logs.
  const base = endpoint.href.replace(/\/(v1\/(traces|logs)\/?)?$/, "");
  return { url: `${base}${path}`, headers: { ...headers } };
}

async function metadataOf(headers: Settings["headers"]): Promise<Metadata> {
  const { Metadata } = await loaders.grpc();
  const metadata = new Metadata();
  for (const [name, value] of Object.entries(headers)) metadata.set(name, value);
  return metadata;
}
