// Limits that an operator has changed. A change replaces the limits that the tasks of a key set, until the operator removes it. Durable.

import type { LimitKey } from "./limits.ts";

export interface LimitOrder {
  /** At most this many held at once; null for any number. Undefined: the limit of the tasks. */
  readonly held?: number | null | undefined;
  /** At most so many hand-outs in a window; null for any number. Undefined: the limit of the tasks. */
  readonly rate?: LimitKey["rate"] | null | undefined;
  readonly reason: string | null;
  /** The name of the token that ordered it; null without tokens. */
  readonly by: string | null;
}

export interface LimitChange extends LimitOrder {
  readonly at: number;
}

/** A key that tasks have used lately, or whose limits were changed. */
export interface LimitView {
  readonly key: string;
  readonly held: number;
  /** The limits that apply; null for none. */
  readonly max: number | null;
  readonly rate: { readonly count: number; readonly windowMs: number; readonly used: number } | null;
  /** Tasks that wait for room, by the key of their lane. */
  readonly waiting: ReadonlyMap<string, number>;
  /** When the window of the rate has room again; null when it has, or when a held task must end first. */
  readonly freeAt: number | null;
  readonly change: LimitChange | null;
}

export interface LimitChanges {
  /** Replaces the limits of a key. Tasks that wait and have room now are handed out. */
  change(key: string, order: LimitOrder): Promise<LimitChange | undefined>;
  /** Removes the change: the limits are those of the tasks again. Returns false when they were not changed. */
  takeBack(key: string): Promise<boolean>;
  views(): readonly LimitView[];
  view(key: string): LimitView | undefined;
}
