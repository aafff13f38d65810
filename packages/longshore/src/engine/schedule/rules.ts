// The rules of a schedule as people write them, in code, files and requests; and their limits.

import { type Duration, durationMs } from "../../core/duration.ts";
import { LongshoreError } from "../../core/errors.ts";
import { type Overlap, overlaps } from "../../core/start-limit.ts";
import { shown } from "../../core/text.ts";
import { type CatchUp, catchUps, ownCharsOf, type ScheduleRules } from "./schedule.ts";
import type { OwnRules } from "./store.ts";
import type { When } from "./times.ts";

/** Rules as they are written. Exactly one of `cron`, `every` and `at` is given. */
export interface GivenRules {
  readonly workflow: string;
  readonly cron?: string;
  readonly timezone?: string;
  readonly every?: Duration | string;
  readonly anchor?: number | string;
  readonly at?: number | string;
  readonly tickField?: string;
  readonly overlap?: string;
  readonly queueMax?: number;
  readonly catchUp?: string;
  readonly catchUpWindow?: Duration | string;
  readonly jitter?: Duration | string;
}

/** The shortest interval: each tick starts a run. Work that is due more often belongs in a handler with a loop. */
const everyMsMin = 1_000;
const dayMs = 86_400_000;
const everyMsMax = 366 * dayMs;
const jitterMsMax = dayMs;
/** The smallest window: a server that is busy for some seconds must not lose a tick. */
const catchUpMsMin = 10_000;
const catchUpMsDefault = dayMs;
const catchUpMsMax = 366 * dayMs;
const queueDefault = 10;
const queueMaxLimit = 100;
/** Maximum number of characters of the input, as JSON text: it is stored with the schedule and with each run. */
const inputCharsMax = 65_536;
/** The same for what a protocol keeps with a schedule, which may repeat the input. */
const ownCharsMax = 2 * inputCharsMax;
/** The name is part of the start key of each run, which is in an index. */
const nameCharsMax = 200;
/** Control characters in a name would break logs and terminals. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is refused.
const namePattern = /^[^\u0000-\u001f\u007f]+$/;
const fieldCharsMax = 100;

/** Throws LONGSHORE_BAD_INPUT for a name that cannot be stored. */
export function checkScheduleName(name: string): void {
  if (namePattern.test(name) && name.isWellFormed() && name.length <= nameCharsMax) return;
  throw bad("name", name, `1 to ${nameCharsMax} characters, none of them a control character`);
}

/**
 * Throws LONGSHORE_BAD_INPUT for invalid rules. `input` is JSON text. Cron expressions and time zones are not checked here: `Times` checks
 * them when it computes times.
 */
export function rulesOf(given: GivenRules, input: string, own?: OwnRules): ScheduleRules {
  const { workflow, tickField = null, overlap = "skip", queueMax = queueDefault, catchUp = "last" } = given;
  if (workflow === "") throw bad("workflow", workflow, "the name of a workflow");
  if (input.length > inputCharsMax)
    throw new LongshoreError("LONGSHORE_BAD_INPUT", `The input has ${input.length} characters, expected at most ${inputCharsMax}.`, {
      detail: { field: "input", expected: `at most ${inputCharsMax} characters of JSON` },
    });
  const ownChars = own === undefined ? 0 : ownCharsOf(own.run);
  if (ownChars > ownCharsMax)
    throw new LongshoreError("LONGSHORE_BAD_INPUT", `The schedule has ${ownChars} characters, expected at most ${ownCharsMax}.`, {
      detail: { field: "schedule", expected: `at most ${ownCharsMax} characters` },
    });
  if (!overlaps.includes(overlap as Overlap)) throw bad("overlap", overlap, `one of ${overlaps.join(", ")}`);
  if (!catchUps.includes(catchUp as CatchUp)) throw bad("catchUp", catchUp, `one of ${catchUps.join(", ")}`);
  if (!Number.isSafeInteger(queueMax) || queueMax < 1 || queueMax > queueMaxLimit)
    throw bad("queueMax", queueMax, `a whole number from 1 to ${queueMaxLimit}`);
  if (tickField !== null && (tickField === "" || tickField.length > fieldCharsMax || !input.trim().startsWith("{")))
    throw bad("tickField", tickField, `a name of 1 to ${fieldCharsMax} characters, and an object as the input`);
  return {
    ...{
      when: own === undefined ? whenOf(given) : checkedCrons(own.when),
      workflow,
      input,
      tickField,
      overlap: overlap as Overlap,
      queueMax,
      catchUp: catchUp as CatchUp,
    },
    catchUpMs: msOf(given.catchUpWindow ?? catchUpMsDefault, "catchUpWindow", catchUpMsMin, catchUpMsMax),
    jitterMs: msOf(given.jitter ?? 0, "jitter", 0, jitterMsMax),
    ...(own === undefined ? {} : { run: own.run }),
  };
}

/** Expressions of one schedule: each step of the schedule computes a time of each. */
const cronsMax = 20;

export function checkedCrons(when: OwnRules["when"]): OwnRules["when"] {
  const { crons, from, until } = when;
  if (crons.length === 0 || crons.length > cronsMax) throw bad("crons", crons.length, `1 to ${cronsMax} cron expressions`);
  for (const [field, at] of [
    ["from", from],
    ["until", until],
  ] as const)
    if (at !== null) timeOf(at, field);
  return when;
}

function whenOf({ cron, timezone, every, anchor, at }: GivenRules): When {
  const kinds = Object.entries({ cron, every, at }).filter(([, value]) => value !== undefined);
  if (kinds.length !== 1) {
    const found = kinds.length === 0 ? "none of them" : kinds.map(([name]) => name).join(" and ");
    throw new LongshoreError("LONGSHORE_BAD_INPUT", `A schedule has one of cron, every and at; this one has ${found}.`, {
      detail: { field: kinds[1]?.[0] ?? "cron", expected: "one of cron, every and at" },
    });
  }
  if (timezone !== undefined && cron === undefined) throw bad("timezone", timezone, "nothing, because only cron has a time zone");
  if (anchor !== undefined && every === undefined) throw bad("anchor", anchor, "nothing, because only every has an anchor");
  if (cron !== undefined) return { kind: "cron", cron: cron.trim().replace(/\s+/g, " "), timezone: timezone ?? "UTC" };
  if (at !== undefined) return { kind: "at", at: timeOf(at, "at") };
  const everyMs = msOf(every as Duration, "every", everyMsMin, everyMsMax);
  return { kind: "every", everyMs, anchor: anchor === undefined ? 0 : timeOf(anchor, "anchor") };
}

/** A time such as `2026-03-29T03:00:00+02:00`. Without an offset it would mean something else on another machine. */
const timePattern = /^\d{4}-\d\d-\d\dT\d\d:\d\d(?::\d\d(?:\.\d{1,9})?)?(?:Z|[+-]\d\d:\d\d)$/;
/** 2200-01-01. */
const timeMax = 7_258_118_400_000;

/** Epoch milliseconds. */
export function timeOf(value: number | string, field: string): number {
  const ms = typeof value === "number" ? value : timePattern.test(value) ? Date.parse(value) : Number.NaN;
  if (Number.isSafeInteger(ms) && ms >= 0 && ms <= timeMax) return ms;
  throw bad(field, value, "epoch milliseconds, or a time with its offset, such as 2026-03-29T03:00:00+02:00 or 2026-03-29T01:00:00Z");
}

function msOf(value: Duration | string, field: string, min: number, max: number): number {
  let ms = Number.NaN;
  try {
    ms = durationMs(value, field);
  } catch {
    // The error below also names the bounds.
  }
  if (ms >= min && ms <= max) return ms;
  throw bad(field, value, `a duration from ${min} ms to ${max} ms, as milliseconds or a text such as "30s", "5m", "2h"`);
}

function bad(field: string, value: unknown, expected: string): LongshoreError {
  return new LongshoreError("LONGSHORE_BAD_INPUT", `${field} is ${shown(value)}, expected ${expected}.`, { detail: { field, expected } });
}
