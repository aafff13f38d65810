// OTLP over gRPC (opentelemetry.io/docs/specs/otlp, "OTLP/gRPC"), on a connection that is kept.

import type { Clock } from "../clock.ts";
import { openChannel } from "../net/grpc/client.ts";
import { GrpcCode, GrpcError } from "../net/grpc/status.ts";
import { ExportError, type Exporter, exportMsMax } from "./exporter.ts";
import { LogsService, logsMessage, TraceService, tracesMessage } from "./otlp-messages.ts";

export interface OtlpGrpcOptions {
  readonly endpoint: URL;
  readonly headers: Readonly<Record<string, string>>;
  readonly clock: Clock;
}

/**
 * The specification's list: the collector may take it later. RESOURCE_EXHAUSTED is one only when it has a delay, which is not worth
 * reading.
 */
const laterCodes = new Set<number>([
  GrpcCode.CANCELLED,
  GrpcCode.DEADLINE_EXCEEDED,
  GrpcCode.ABORTED,
  GrpcCode.OUT_OF_RANGE,
  GrpcCode.UNAVAILABLE,
  GrpcCode.DATA_LOSS,
  GrpcCode.RESOURCE_EXHAUSTED,
]);

export function otlpGrpc({ endpoint, headers, clock }: OtlpGrpcOptions): Exporter {
  const metadata = Object.fromEntries(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]));
  const channel = openChannel(endpoint.origin, { metadata, clock });
  const call = { timeoutMs: exportMsMax };
  return {
    traces: async (request, signal) => {
      const { partialSuccess } = await exported(() => channel.unary(TraceService.Export, tracesMessage(request), { ...call, signal }));
      refuse(endpoint, partialSuccess?.rejectedSpans, partialSuccess?.errorMessage);
    },
    logs: async (request, signal) => {
      const { partialSuccess } = await exported(() => channel.unary(LogsService.Export, logsMessage(request), { ...call, signal }));
      refuse(endpoint, partialSuccess?.rejectedLogRecords, partialSuccess?.errorMessage);
    },
    close: () => channel.close(),
  };
}

async function exported<Answer>(act: () => Promise<Answer>): Promise<Answer> {
  try {
    return await act();
  } catch (error) {
    if (error instanceof GrpcError && !laterCodes.has(error.code)) throw new ExportError(error.message, { cause: error });
    throw error;
  }
}

/** A collector may take a request and refuse some of what is in it. */
function refuse(endpoint: URL, rejected = 0, why = ""): void {
  if (rejected > 0) throw new ExportError(`${endpoint.origin} refused ${rejected} records: ${why}`);
}
