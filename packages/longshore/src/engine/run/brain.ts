// The pure functions that compile the definitions of all dialects and decide about their runs.

import { LongshoreError } from "../../core/errors.ts";
import { inTurns } from "../../core/slices/slice-work.ts";
import { Slices } from "../../core/slices/slices.ts";
import type { ReservedLanes } from "../board/reserved-lanes.ts";
import { decide } from "./decide.ts";
import type { Dialect } from "./dialect.ts";
import type { Plan } from "./plan.ts";
import type { Brain } from "./store.ts";

interface BrainOptions {
  slices?: Slices;
  reserved: ReservedLanes;
  /** The quota of a durable function; the default quota when it is absent. */
  functionChars?: number | undefined;
}

/** The pure functions that a store is opened with. */
export function brainOf(dialects: ReadonlyMap<string, Dialect>, { slices = new Slices(), reserved, functionChars }: BrainOptions): Brain {
  return {
    plan: (definition) => dialectOf(dialects, definition.dialect).compile(definition.source),
    planInTurns: (definition) => compileInTurns(dialectOf(dialects, definition.dialect), definition.source, slices),
    decide: (plan, frontier, event) =>
      decide({ plan, dialect: dialectOf(dialects, plan.dialect), reserved, functionChars }, frontier, event),
  };
}

/**
 * Compiles in slices, whatever the size of the source: a short source may have grown in a run to thousands of nodes. A plan of a single
 * slice is compiled at once.
 */
export async function compileInTurns(dialect: Dialect, source: string, slices: Slices): Promise<Plan> {
  const work = dialect.compileInSlices?.(source);
  return work === undefined ? dialect.compile(source) : inTurns(work, slices);
}

export function dialectOf(dialects: ReadonlyMap<string, Dialect>, name: string): Dialect {
  const dialect = dialects.get(name);
  if (dialect === undefined)
    throw new LongshoreError(
      "LONGSHORE_BAD_DEFINITION",
      `There is no dialect ${name}, expected one of ${[...dialects.keys()].join(", ")}.`,
    );
  return dialect;
}
