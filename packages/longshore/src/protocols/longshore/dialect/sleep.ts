// Pauses: when a step that sleeps wakes up. The time may be known only when the step starts.

import { durationMs } from "../../../core/duration.ts";
import type { Json } from "../../../core/json/json.ts";
import { timeMax } from "../../../core/step-bounds.ts";
import { shown } from "../../../core/text.ts";
import { timeOf } from "../../../core/time-of.ts";
import type { SleepSource, Value } from "./source.ts";
import { Computed, type Reading, Unresolved } from "./template.ts";

/** The time at which a step wakes up, in milliseconds since 1970. */
export class WakeTime extends Computed {
  readonly kind: "for" | "until";
  readonly value: Value;

  constructor(sleep: SleepSource) {
    super();
    this.kind = "for" in sleep ? "for" : "until";
    this.value = "for" in sleep ? sleep.for : sleep.until;
  }

  override from({ fill, scope }: Reading): number {
    return this.at(fill(this.value), scope.now);
  }

  at(value: Json, now: number): number {
    const time = this.kind === "for" ? now + lengthOf(value) : timeOf(value);
    if (Number.isFinite(time) && Math.abs(time) <= timeMax) return time;
    const expected =
      this.kind === "for"
        ? 'milliseconds or a text such as "30s", "5m", "2h"'
        : "milliseconds since 1970 or a text such as 2030-01-31T09:00:00Z";
    throw new Unresolved(`it sleeps ${this.kind} ${shown(value)}, expected ${expected}`);
  }
}

function lengthOf(value: Json): number {
  try {
    return typeof value === "number" || typeof value === "string" ? durationMs(value, "sleep") : Number.NaN;
  } catch {
    return Number.NaN;
  }
}
