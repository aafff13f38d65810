// The messages between a supervisor and its worker processes.

import type { MetricDelta } from "../../core/metrics.ts";
import type { EventName } from "../events.ts";
import type { WorkerStatuses } from "../health.ts";
import { packError, type SentError, unpackError } from "../isolate/messages.ts";
import type { Notice } from "../notices.ts";

/** The first and only message to a process: its work, in the format of its program, and its options. */
export interface Begin<Work = unknown> {
  readonly kind: "begin";
  readonly work: Work;
  readonly events: readonly EventName[];
  readonly metrics: boolean;
}

export type FromWorker =
  /** The process receives work. */
  | { readonly kind: "started" }
  /** The process cannot work with these options, and ends. */
  | { readonly kind: "refused"; readonly error: SentError }
  | { readonly kind: "news"; readonly workers: WorkerStatuses; readonly metrics: readonly MetricDelta[] }
  | { readonly kind: "events"; readonly events: readonly SentEvent[] }
  | { readonly kind: "notice"; readonly notice: Notice };

export interface SentEvent {
  readonly name: EventName;
  readonly event: { readonly [field: string]: unknown };
}

const errorKey = "longshore.error";

/** Structured cloning would lose the class and the code of errors, so errors are sent in another form. */
export function packEvent(name: EventName, event: object): SentEvent {
  const fields = Object.entries(event).map(([key, value]) => [key, value instanceof Error ? { [errorKey]: packError(value) } : value]);
  return { name, event: Object.fromEntries(fields) };
}

export function unpackEvent({ event }: SentEvent): object {
  const fields = Object.entries(event).map(([key, value]) => {
    const error = (value as { [errorKey]?: SentError } | null | undefined)?.[errorKey];
    return [key, error === undefined ? value : unpackError(error)];
  });
  return Object.fromEntries(fields);
}
