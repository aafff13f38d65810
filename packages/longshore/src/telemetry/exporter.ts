// The port to a collector, and what a failed export means.

import type { LogsRequest, TracesRequest } from "./otlp.ts";

export interface Exporter {
  /** Both reject when it did not arrive, with an ExportError when that cannot change. */
  traces(request: TracesRequest, signal: AbortSignal): Promise<void>;
  logs(request: LogsRequest, signal: AbortSignal): Promise<void>;
  close(): Promise<void>;
}

/** The collector has refused it, or took only some of it: the same again would end the same. */
export class ExportError extends Error {
  override readonly name = "ExportError";
  readonly final = true;
}

/** How long one export may take, before it counts as failed; OpenTelemetry's own number. */
export const exportMsMax = 10_000;
