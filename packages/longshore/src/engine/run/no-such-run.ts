// The error for a request about a run that does not exist.

import { LongshoreError } from "../../core/errors.ts";

export function noSuchRun(id: string): LongshoreError {
  return new LongshoreError("LONGSHORE_NOT_FOUND", `There is no run ${id}.`, { detail: { field: "id" } });
}
