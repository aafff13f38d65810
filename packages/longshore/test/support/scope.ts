// What a template may read, for tests of dialects: the run's input and outputs of steps; the rest is empty.

import type { Json } from "../../src/core/json/json.ts";
import type { Scope } from "../../src/engine/run/dialect.ts";
import { newRun } from "../../src/engine/run/new-run.ts";

export function scopeOf(input: Json, outputs: { [node: number]: Json } = {}, parts: Partial<Scope> = {}): Scope {
  return {
    run: newRun({ id: "r", workflow: "w", definitionId: "d", input: JSON.stringify(input) }, 0, null),
    input: () => input,
    variables: () => ({}),
    output: (node) => outputs[node],
    record: () => undefined,
    records: () => undefined,
    made: () => undefined,
    document: () => undefined,
    self: null,
    now: 0,
    ...parts,
  };
}
