// An OpenTelemetry collector, over HTTP with JSON and protobuf and over gRPC. It stores what it receives in one form.

import { createServer, type IncomingHttpHeaders } from "node:http";
import type { AddressInfo } from "node:net";
import { onTestFinished } from "vitest";
import { type GrpcMethod, unary } from "../../src/net/grpc/service.ts";
import { startGrpc } from "./grpc.ts";
import { LogsService, TraceService } from "./otlp-messages.ts";

export interface SeenSpan {
  readonly traceId: string;
  readonly spanId: string;
  readonly parentSpanId: string;
  readonly name: string;
  readonly kind: number;
  readonly startNs: bigint;
  readonly endNs: bigint;
  readonly attributes: Record<string, unknown>;
  readonly events: { readonly name: string; readonly attributes: Record<string, unknown> }[];
  readonly status: { readonly code: number; readonly message: string };
  readonly flags: number;
  readonly resource: Record<string, unknown>;
}

export interface SeenLog {
  readonly traceId: string;
  readonly spanId: string;
  readonly severity: [number, string];
  readonly body: unknown;
  readonly attributes: Record<string, unknown>;
  readonly resource: Record<string, unknown>;
  readonly atNs: bigint;
}

export interface Collector {
  readonly endpoint: string;
  readonly spans: SeenSpan[];
  readonly logs: SeenLog[];
  /** Headers or metadata of each request. */
  readonly headers: Readonly<Record<string, unknown>>[];
  /** The status of each of the next requests. 0 means success, and so does the end of the list. */
  readonly troubles: number[];
}

interface Pair {
  key: string;
  value?: { stringValue?: string; boolValue?: boolean; intValue?: string | number; doubleValue?: number };
}

// biome-ignore lint/suspicious/noExplicitAny: both wire forms are read by the same code.
type Loose = any;

const hex = (id: unknown) => (id instanceof Uint8Array ? Buffer.from(id).toString("hex") : ((id as string | undefined) ?? ""));

function attributesOf(pairs: readonly Pair[] = []): Record<string, unknown> {
  return Object.fromEntries(
    pairs.map(({ key, value = {} }) => [
      key,
      value.stringValue ?? value.boolValue ?? (value.intValue === undefined ? value.doubleValue : Number(value.intValue)),
    ]),
  );
}

function spansIn({ resourceSpans = [] }: Loose): SeenSpan[] {
  return resourceSpans.flatMap(({ resource, scopeSpans }: Loose) =>
    scopeSpans.flatMap(({ spans }: Loose) =>
      spans.map((span: Loose) => ({
        traceId: hex(span.traceId),
        spanId: hex(span.spanId),
        parentSpanId: hex(span.parentSpanId),
        name: span.name,
        kind: span.kind,
        startNs: BigInt(span.startTimeUnixNano),
        endNs: BigInt(span.endTimeUnixNano),
        attributes: attributesOf(span.attributes),
        events: (span.events ?? []).map((event: Loose) => ({ name: event.name, attributes: attributesOf(event.attributes) })),
        status: { code: span.status?.code ?? 0, message: span.status?.message ?? "" },
        flags: span.flags,
        resource: attributesOf(resource.attributes),
      })),
    ),
  );
}

function logsIn({ resourceLogs = [] }: Loose): SeenLog[] {
  return resourceLogs.flatMap(({ resource, scopeLogs }: Loose) =>
    scopeLogs.flatMap(({ logRecords }: Loose) =>
      logRecords.map((record: Loose) => ({
        traceId: hex(record.traceId),
        spanId: hex(record.spanId),
        severity: [record.severityNumber, record.severityText],
        body: record.body.stringValue,
        attributes: attributesOf(record.attributes),
        resource: attributesOf(resource.attributes),
        atNs: BigInt(record.timeUnixNano),
      })),
    ),
  );
}

function empty() {
  return { spans: [] as SeenSpan[], logs: [] as SeenLog[], headers: [] as Record<string, unknown>[], troubles: [] as number[] };
}

export async function httpCollector(): Promise<Collector> {
  const seen = empty();
  const server = createServer(async (request, response) => {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    const bytes = Buffer.concat(chunks);
    seen.headers.push({ path: request.url, ...(request.headers as IncomingHttpHeaders) });
    const trouble = seen.troubles.shift() ?? 0;
    if (trouble !== 0) return void response.writeHead(trouble).end("trouble");
    const isJson = request.headers["content-type"] === "application/json";
    const read = (service: typeof TraceService | typeof LogsService) =>
      isJson ? JSON.parse(bytes.toString()) : service.Export.request.decode(bytes);
    if (request.url?.endsWith("/v1/traces")) seen.spans.push(...spansIn(read(TraceService)));
    else seen.logs.push(...logsIn(read(LogsService)));
    response.setHeader("content-type", request.headers["content-type"] ?? "").end(isJson ? "{}" : "");
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  onTestFinished(async () => {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  });
  return { ...seen, endpoint: `http://127.0.0.1:${(server.address() as AddressInfo).port}/otlp` };
}

export async function grpcCollector(port?: number): Promise<Collector> {
  const seen = empty();
  const methods: GrpcMethod[] = [
    unary(TraceService.Export, "server.health", (request, { metadata }) => {
      seen.headers.push({ ...metadata });
      seen.spans.push(...spansIn(request));
      return {};
    }),
    unary(LogsService.Export, "server.health", (request) => {
      seen.logs.push(...logsIn(request));
      return {};
    }),
  ];
  const { target } = await startGrpc(methods, port === undefined ? {} : { port });
  return { ...seen, endpoint: `http://${target}` };
}
