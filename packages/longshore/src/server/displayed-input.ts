// Inputs of runs and tasks for display: in the form in which callers sent them. The stored form may differ.

import type { Rows } from "../engine/cached-rows.ts";
import type { Definitions } from "../engine/run/definitions.ts";
import type { Dialect } from "../engine/run/dialect.ts";
import type { Run } from "../engine/run/run.ts";
import type { ReadRows, ReadTx } from "../engine/tx.ts";
import type { DisplayedInput } from "../protocols/server-half.ts";

export interface DisplayedInputDeps {
  readonly dialects: ReadonlyMap<string, Dialect>;
  readonly read: ReadRows;
  readonly runs: Pick<Rows<Run>, "get">;
  readonly definitions: Pick<Definitions, "byId">;
}

export function displayedInputBy({ dialects, read, runs, definitions }: DisplayedInputDeps): DisplayedInput {
  const forms = [...dialects.values()].flatMap(({ shown }) => shown ?? []);
  const formOf = (tx: ReadTx, { definitionId }: Run) => dialects.get(definitions.byId(tx, definitionId)?.dialect ?? "")?.shown;
  /** Nearly all inputs are plain and need no lookup. */
  const isPlain = (json: string) => !forms.some((form) => form.maybe(json));
  return {
    async run(run) {
      const form = isPlain(run.input) ? undefined : await read((tx) => formOf(tx, run));
      return form === undefined ? run : { ...run, input: form.runInput(run) };
    },
    async task(task) {
      const { runId, input } = task;
      if (runId === null || isPlain(input)) return task;
      const form = await read((tx) => {
        const run = runs.get(tx, runId);
        return run === null ? undefined : formOf(tx, run);
      });
      return form === undefined ? task : { ...task, input: form.taskInput(task) };
    },
  };
}
