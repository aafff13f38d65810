// OTLP over HTTP, in JSON: POST /v1/traces and /v1/logs (opentelemetry.io/docs/specs/otlp, "OTLP/HTTP").

import type { Clock } from "../clock.ts";
import { isObject } from "../json.ts";
import { readAnswer } from "../read-answer.ts";
import { ExportError, type Exporter, exportMsMax } from "./exporter.ts";

export interface OtlpHttpOptions {
  readonly endpoint: URL;
  readonly headers: Readonly<Record<string, string>>;
  readonly clock: Clock;
}

/** The specification's list: the collector is there, and will take it later. */
const laterStatuses = new Set([429, 502, 503, 504]);
const shownCharsMax = 200;
/** More than a collector reports. */
const answerBytesMax = 64 * 1024;

export function otlpHttp({ endpoint, headers, clock }: OtlpHttpOptions): Exporter {
  // The address may be that of one signal already.
  const base = endpoint.href.replace(/\/(v1\/(traces|logs)\/?)?$/, "");
  const post = async (path: string, request: unknown, signal: AbortSignal) => {
    const timeout = new AbortController();
    const disarm = clock.at(clock.now() + exportMsMax, () => timeout.abort(new Error(`it took longer than ${exportMsMax} ms`)));
    try {
      const response = await fetch(`${base}${path}`, {
        method: "POST",
        headers: { "content-type": "application/json", ...headers },
        body: JSON.stringify(request),
        signal: AbortSignal.any([signal, timeout.signal]),
        // The headers may hold a key, which is meant for this address alone.
        redirect: "manual",
      });
      check(`${base}${path}`, response.status, (await readAnswer(response, answerBytesMax)).toString());
    } finally {
      disarm();
    }
  };
  return {
    traces: (request, signal) => post("/v1/traces", request, signal),
    logs: (request, signal) => post("/v1/logs", request, signal),
    close: async () => {},
  };
}

function check(url: string, status: number, body: string): void {
  if (status >= 200 && status < 300) return checkPartial(url, body);
  const message = `${url} answered ${status}${body === "" ? "" : `: ${body.slice(0, shownCharsMax)}`}`;
  throw laterStatuses.has(status) ? new Error(message) : new ExportError(message);
}

/** A collector may take a request and refuse some of what is in it. */
function checkPartial(url: string, body: string): void {
  let answer: unknown;
  try {
    answer = JSON.parse(body);
  } catch {
    // Some answer with nothing.
    return;
  }
  const partial = isObject(answer) && isObject(answer.partialSuccess) ? answer.partialSuccess : {};
  const rejected = Number(partial.rejectedSpans ?? partial.rejectedLogRecords ?? 0);
  if (rejected > 0) throw new ExportError(`${url} refused ${rejected} records: ${String(partial.errorMessage ?? "")}`);
}
