// Input adapters make the batches of a node when its handler does not. The coordinator's command names an adapter, or a handler proposes
// one. Every worker has the two adapters of the protocol; users may add their own.

import { LongshoreError } from "../../../../core/errors.ts";
import type { Json } from "../../../../core/json/json.ts";
import type { ArgDefaults, Checked } from "../adapter-args.ts";
import type { ReadOptions, UpstreamPart } from "../artifacts/artifacts.ts";
import type { Batch } from "../batch.ts";
import { pull } from "./pull.ts";
import { rechunk } from "./rechunk.ts";

/** Turns the output of upstream nodes into the batches of a node. */
export interface InputAdapter<Args = unknown> {
  readonly name: string;
  /** Parses the arguments, before anything streams. If it refuses them, the task fails permanently. */
  check(args: Json | undefined, defaults: ArgDefaults): Checked<Args>;
  /** The batches. With the same input, every attempt gets them in the same order. Throws when the signal aborts. */
  open(args: Args, upstream: Upstream): AsyncIterable<Batch>;
}

/** What an adapter may read. */
export interface Upstream {
  readonly taskId: string;
  /** Aborts when the run must end or its worker stops: then no further batch is needed. */
  readonly signal: AbortSignal;
  /** The parts of other nodes of the task, as they are produced. */
  read(fromNodes: readonly string[], options: Omit<ReadOptions, "signal">): AsyncIterable<UpstreamPart>;
}

export type Adapters = ReadonlyMap<string, InputAdapter>;

/** The adapters of a worker, by name. An added adapter may not reuse a name. */
export function adaptersWith(added: readonly InputAdapter[] = []): Adapters {
  const adapters = new Map<string, InputAdapter>();
  for (const adapter of [pull, rechunk, ...added] as readonly InputAdapter[]) {
    if (adapters.has(adapter.name)) {
      throw new LongshoreError("LONGSHORE_BAD_CONFIG", `Two input adapters are named "${adapter.name}", expected each name once.`, {
        detail: { field: "adapters" },
      });
    }
    adapters.set(adapter.name, adapter);
  }
  return adapters;
}
