// Stores what a definition file has: its workflow, and the schedules and events that start it.

import type { Definition } from "../run/dialect.ts";
import type { Defining, Runs } from "../run/runs.ts";
import type { DeclaredSchedule, ScheduleStore } from "./store.ts";

export interface FileDefinition extends Defining {
  /** Absent for a definition that comes from no file: schedules stay as they are. */
  readonly schedules?: readonly DeclaredSchedule[];
}

/** Checks the schedules before it stores the workflow: when a schedule is refused, nothing of the file is stored. */
export async function defineFile(
  { runs, schedules }: { runs: Pick<Runs, "defineNamed">; schedules: Pick<ScheduleStore, "declare"> },
  { schedules: wanted, ...given }: FileDefinition,
): Promise<Definition> {
  if (wanted !== undefined) await schedules.declare(given.name, wanted, { dryRun: true });
  const definition = await runs.defineNamed(given);
  if (wanted !== undefined) await schedules.declare(given.name, wanted);
  return definition;
}
