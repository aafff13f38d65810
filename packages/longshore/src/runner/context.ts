// The context object of one execution, and what stands in for what its transport lacks.

import type { Blobs, Context, ContextIds, Deferral, OutputStream } from "../context.ts";
import { type Duration, durationMs } from "../duration.ts";
import { LongshoreError } from "../errors.ts";
import { type Json, toJson } from "../json.ts";

export interface ContextParts {
  readonly task: string;
  readonly signal: AbortSignal;
  readonly attempt: number;
  readonly ids: ContextIds;
  readonly idempotencyKey: string;
  readonly upstream: { readonly [stepId: string]: unknown };
  readonly deferrals: number;
  readonly deferred: Json | undefined;
  readonly blobs: Blobs;
  readonly log: (text: string, stream: OutputStream) => void;
  readonly progress: (value: Json) => void;
  readonly heartbeat: () => Promise<void>;
}

export function makeContext(parts: ContextParts): Context {
  return {
    ...parts,
    log: (entry, stream = "stdout") => parts.log(lineOf(entry), stream),
    progress: (value) => parts.progress(toJson(value)),
    defer: (delay: Duration, output?: unknown): Deferral => ({
      "longshore.deferral": true,
      delayMs: durationMs(delay, "delay of ctx.defer"),
      output,
    }),
  };
}

function lineOf(entry: string | { readonly [field: string]: unknown }): string {
  if (typeof entry === "string") return entry;
  try {
    return JSON.stringify(entry) ?? String(entry);
  } catch {
    // What JSON refuses (a cycle, a bigint) must not make logging throw.
    return String(entry);
  }
}

/** Stands in where the transport carries no blobs. */
export function noBlobs(transport: string): Blobs {
  const refuse = () =>
    Promise.reject(
      new LongshoreError(
        "LONGSHORE_BAD_CONFIG",
        `${transport} carries no blobs: return the data itself, or keep it elsewhere and return its address.`,
      ),
    );
  return { put: refuse, get: refuse };
}
