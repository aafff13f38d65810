// Fatal findings: they prevent a flow from being run or stored.

import type { JsonPath } from "../../../core/json/json-position.ts";
import { eachInSlices, type Sliced } from "../../../core/slices/slice-work.ts";
import { type Diagnostic, diagnostic } from "./diagnostic.ts";
import type { Expression } from "./expression.ts";
import type { Flow } from "./flow.ts";
import { visitExpressions } from "./visit.ts";

export function* fatalsInSlices(flow: Flow): Sliced<Diagnostic[]> {
  return [...diagnoseIds(flow), ...(yield* diagnoseReferences(flow))];
}

function diagnoseIds({ steps }: Flow): Diagnostic[] {
  const found: Diagnostic[] = [];
  const seen = new Set<string>();
  steps.forEach(({ id }, index) => {
    const at = ["steps", index, "id"];
    if (id.trim() === "") found.push(diagnostic("emptyStepId", at, "Step ID cannot be empty", { expected: "a text" }));
    else if (seen.has(id)) found.push(diagnostic("duplicateStepId", at, `Duplicate step ID: '${id}'`, { expected: "an id of its own" }));
    seen.add(id);
  });
  return found;
}

function* diagnoseReferences(flow: Flow): Sliced<Diagnostic[]> {
  const found = flow.faults.map(({ path, message, expected }) =>
    diagnostic("invalidReferenceExpression", path, `Invalid reference: ${message}`, { expected }),
  );
  const earlier = new Set<string>();
  const ids = new Set(flow.steps.map(({ id }) => id));
  const refer = (root: Expression, at: JsonPath, from: string | null) => {
    visitExpressions(root, at, (expression, path) => {
      if (expression.kind === "step" && !earlier.has(expression.step)) found.push(undefinedStep(expression.step, path, from, ids));
    });
  };
  yield* eachInSlices(flow.steps, ({ id, input }, index) => {
    refer(input, ["steps", index, "input"], id);
    earlier.add(id);
  });
  refer(flow.output, ["output"], null);
  return found;
}

/** A later step counts as undefined, so there are no cycles. */
function undefinedStep(step: string, at: JsonPath, from: string | null, ids: ReadonlySet<string>): Diagnostic {
  if (step === from) return diagnostic("selfReference", at, `Step '${step}' references itself`, { expected: "the id of an earlier step" });
  const who = from === null ? "The output" : `Step '${from}'`;
  const message = ids.has(step) ? `${who} references step '${step}', which comes later` : `${who} references undefined step '${step}'`;
  return diagnostic("undefinedStepReference", at, message, { expected: "the id of an earlier step" });
}
