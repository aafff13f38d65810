// The error for a request about a schedule that does not exist.

import { LongshoreError } from "../../core/errors.ts";

export function noSuchSchedule(name: string): LongshoreError {
  return new LongshoreError("LONGSHORE_NOT_FOUND", `There is no schedule ${JSON.stringify(name)}.`, { detail: { field: "name" } });
}
