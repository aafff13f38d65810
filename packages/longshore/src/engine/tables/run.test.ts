import { expect, it } from "vitest";
import type { Run } from "../run/run.ts";
import { sameButCounts, seldomChanging } from "./run.ts";

/** The fields that `read` looks at, of a run in which all fields have the same value. */
function fieldsOf(read: (run: Run) => unknown): string[] {
  const fields = new Set<string>();
  const run = new Proxy({} as Run, {
    get: (_, field) => {
      fields.add(String(field));
      return "same";
    },
  });
  read(run);
  return [...fields].sort();
}

it("writes only the counts of a run when every other field that changes is the same", () => {
  expect(fieldsOf((run) => sameButCounts(run, run))).toEqual(fieldsOf((run) => seldomChanging.map(([, value]) => value(run))));
});
