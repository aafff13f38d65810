// Inputs of runs and tasks for display: as they were given, also where their dialect stores them in a form of its own.

import type { Rows } from "../engine/cached-rows.ts";
import type { Definitions } from "../engine/run/definitions.ts";
import type { Dialect } from "../engine/run/dialect.ts";
import type { Run } from "../engine/run/run.ts";
import { committed } from "../engine/tx.ts";
import type { DisplayedInput } from "../protocols/server-half.ts";

export interface DisplayedInputDeps {
  readonly runs: Pick<Rows<Run>, "get">;
  readonly definitions: Pick<Definitions, "byId">;
}

export function displayedInputBy(dialects: ReadonlyMap<string, Dialect>, { runs, definitions }: DisplayedInputDeps): DisplayedInput {
  const forms = [...dialects.values()].flatMap(({ shown }) => shown ?? []);
  const formOf = ({ definitionId }: Run) => dialects.get(definitions.byId(committed, definitionId)?.dialect ?? "")?.shown;
  /** Nearly all are no such values, and are not looked up. */
  const isPlain = (json: string) => !forms.some((form) => form.maybe(json));
  return {
    run(run) {
      const form = isPlain(run.input) ? undefined : formOf(run);
      return form === undefined ? run : { ...run, input: form.runInput(run) };
    },
    task(task) {
      const run = task.runId === null || isPlain(task.input) ? null : runs.get(committed, task.runId);
      const form = run === null ? undefined : formOf(run);
      return form === undefined ? task : { ...task, input: form.taskInput(task.input) };
    },
  };
}
