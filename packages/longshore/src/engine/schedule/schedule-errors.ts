// Why a change of a schedule is refused.

import { LongshoreError } from "../../core/errors.ts";
import type { Schedule } from "./schedule.ts";
import type { DeclaredSchedule } from "./store.ts";
import type { When } from "./times.ts";

/** An error about a schedule of a file, at its place. */
export function placed(error: unknown, { place }: DeclaredSchedule): unknown {
  if (!(error instanceof LongshoreError) || error.code !== "LONGSHORE_BAD_INPUT" || place === undefined) return error;
  const { field, line, column } = place;
  const detail = { ...error.detail, field: `${field}.${error.detail.field ?? ""}`, line, column };
  return new LongshoreError("LONGSHORE_BAD_DEFINITION", error.message, { cause: error, detail });
}

export function declaredElsewhere({ name, source }: Schedule): LongshoreError {
  return new LongshoreError(
    "LONGSHORE_CONFLICT",
    `Schedule ${name} belongs to the definition file of workflow ${source}: change it there, or use another name.`,
    { detail: { field: "name", expected: "the name of a schedule without a definition file" } },
  );
}

export function madeElsewhere({ name }: Schedule): LongshoreError {
  return new LongshoreError(
    "LONGSHORE_CONFLICT",
    `Schedule ${name} was made by another API of this server and has settings of that API: change it there, or use another name.`,
    { detail: { field: "name", expected: "the name of a schedule of this API" } },
  );
}

export function nameTaken({ name, source }: Schedule, workflow: string): LongshoreError {
  const owner = source === null ? "was made without a definition file" : `belongs to workflow ${source}`;
  return new LongshoreError(
    "LONGSHORE_CONFLICT",
    `The definition of ${workflow} needs the schedule ${name}, which ${owner}: remove it first.`,
  );
}

export function neverComes(when: When): LongshoreError {
  const expected = "an expression that matches a day";
  return new LongshoreError("LONGSHORE_BAD_INPUT", `cron is ${JSON.stringify(textOf(when))}, which never comes. Expected ${expected}.`, {
    detail: { field: "cron", expected },
  });
}

export function tooMany(max: number): LongshoreError {
  return new LongshoreError("LONGSHORE_LIMIT", `There are ${max} schedules already, which is the limit: remove some first.`);
}

export function tooManyMissed(catchUpMs: number, max: number): LongshoreError {
  const expected = `a window with at most ${max} ticks, because catchUp is "all"`;
  const message = `catchUpWindow is ${catchUpMs} ms, which has more than ${max} ticks, expected ${expected}: choose a shorter window, or catchUp "last".`;
  return new LongshoreError("LONGSHORE_BAD_INPUT", message, { detail: { field: "catchUpWindow", expected } });
}

export function badReason(reason: string, max: number): LongshoreError {
  const expected = `a text of 1 to ${max} characters`;
  return new LongshoreError("LONGSHORE_BAD_INPUT", `The reason has ${reason.length} characters, expected ${expected}.`, {
    detail: { field: "reason", expected },
  });
}

export function badRange(from: number, to: number): LongshoreError {
  const expected = "two times in the past, the earlier one first";
  const shownAs = [from, to].map((at) => new Date(at).toISOString()).join(" to ");
  return new LongshoreError("LONGSHORE_BAD_INPUT", `The range of the backfill is ${shownAs}, expected ${expected}.`, {
    detail: { field: "to", expected },
  });
}

export function tooManyTicks(name: string, max: number): LongshoreError {
  const expected = `a range with at most ${max} ticks`;
  return new LongshoreError("LONGSHORE_LIMIT", `The range has more than ${max} ticks of schedule ${name}: expected ${expected}.`, {
    detail: { field: "to", expected },
  });
}

export function overlapping({ name, overlap }: Schedule, runId: string): LongshoreError {
  return new LongshoreError(
    "LONGSHORE_CONFLICT",
    `Run ${runId} of schedule ${name} is open, and its overlap rule is ${overlap}: wait for its end, or ask for overlap allow or cancel-previous.`,
    { detail: { field: "overlap", expected: "allow or cancel-previous" } },
  );
}

/** A rule for times, for an error. */
function textOf(when: When): string {
  if (when.kind === "cron") return when.cron;
  return when.kind === "crons" ? when.crons.map(({ cron }) => cron).join(" or ") : when.kind;
}
