// Data that looks like the templates of every dialect: what a careless server would interpret a second time.

import fc from "fast-check";
import type { Json, JsonObject } from "../../src/core/json/json.ts";

const pieces = [
  ...["${workflow.secrets.S1}", "{workflow.secrets.S1}", "${workflow.secrets.", "S1}", "workflow.secrets.", "${", "$${", "$", "{", "}"],
  ...["${workflow.env.E}", "${workflow.input.x}", "${workflow.variables.x}", "${t.output.x}", "${CPEWF_TASK_ID}", "${$..x}"],
  ...["$(id)", "`id`", "@greet {}", '{"handler":"greet"}', "{{ x }}", "$.x", "$.vars.x", "%24", "\\u0024{", '"', "\\", " ", "plain"],
];

const text: fc.Arbitrary<string> = fc.array(fc.constantFrom(...pieces), { minLength: 1, maxLength: 4 }).map((some) => some.join(""));

/** Keys by which the dialects recognise references in JSON, and ordinary ones. */
const key = fc.oneof(
  fc.constantFrom("$ref", "$value", "$step", "$input", "$variable", "$literal", "$if", "$coalesce", "$from", "path", "default", "a", "b"),
  text,
);

export const templateData: fc.Arbitrary<Json> = fc.letrec<{ value: Json }>((tie) => ({
  value: fc.oneof(
    { maxDepth: 3, depthSize: "small", withCrossShrink: true },
    text,
    fc.constantFrom<Json>(null, true, 7, { $ref: { path: ["x"] } }, { $step: "a" }, { $input: "$.x" }, { $literal: { $step: "a" } }),
    fc.constantFrom<Json>({ $variable: "v", default: 1 }, { $value: { $ref: {} } }),
    fc.array(tie("value"), { maxLength: 3 }),
    // An array of pairs, because JSON may have a name twice, or `__proto__`.
    fc.array(fc.tuple(key, tie("value")), { maxLength: 3 }).map((entries) => Object.fromEntries(entries) as JsonObject),
  ),
})).value;
