// Operators that evaluate what the author of a definition wrote: JavaScript and jq.
import type { Chapter, Step } from "../../../src/differential/script.ts";
import { define, defined, done, step, TYPE } from "../operator-steps.ts";
import { operator, quick, reaches, run, runUntil, start, taskDefs } from "../steps.ts";

const inline = (expression: string, more: Record<string, unknown> = {}) =>
  operator("INLINE", "calc", {
    inputParameters: { evaluatorType: "javascript", expression, given: "${workflow.input.given}", fixed: 3, ...more },
  });

/** A run of one task that ends by itself. */
const alone = (name: string, task: unknown, status = "COMPLETED", input: Record<string, unknown> = {}): Step[] => [
  defined(`ex_${name}`, define(task)),
  start(`start ${name}`, { name: `ex_${name}`, input }),
  reaches(`${name} ends`, status),
  run(`${name}, the run`),
];

export const inlines: Chapter = {
  name: "operator-inline",
  steps: [
    taskDefs("define the task", quick(TYPE)),
    defined("ex_chain", {
      ...define(inline("$.given + $.fixed"), step("after", { got: "${calc.output.result}" })),
      outputParameters: { got: "${calc.output.result}" },
    }),
    start("start a chain", { name: "ex_chain", input: { given: 4 } }),
    runUntil("the next task", /"referenceTaskName":"after"/),
    done("after", "after"),
    reaches("the chain ends", "COMPLETED"),
    ...alone(
      "object",
      inline("(function () { return { sum: $.given.a + 1, list: [1, 'two', null], date: typeof Date }; })()"),
      "COMPLETED",
      {
        given: { a: 1 },
      },
    ),
    ...alone("function", inline("function e() { if ($.given > 2) { return 'large'; } return 'small'; } e();"), "COMPLETED", { given: 3 }),
    ...alone("statement", inline("if ($.given) { true; } else { false; }"), "COMPLETED", { given: true }),
    ...alone("undefined", inline("undefined")),
    ...alone("null", inline("null")),
    ...alone("text", inline("'a' + 'b'")),
    ...alone("boolean", inline("1 < 2")),
    ...alone("fraction", inline("10 / 4")),
    ...alone("infinite", inline("1 / 0")),
    ...alone("graaljs", inline("$.fixed * 2", { evaluatorType: "graaljs" })),
    ...alone("default", operator("INLINE", "calc", { inputParameters: { expression: "1 + 1" } })),
    ...alone("modern", inline("const [a, b = 2] = [1]; [a, b, ...[3, 4].map((x) => x ** 2)].join('-')")),
    ...alone("value-param", inline("fixed", { evaluatorType: "value-param" })),
    ...alone("throws", inline("throw new Error('no luck')"), "FAILED"),
    ...alone("property", inline("$.nothing.at"), "FAILED"),
    ...alone("thrown_value", inline("throw { code: 5 }"), "FAILED"),
    ...alone("unknown_evaluator", inline("1", { evaluatorType: "cobol" }), "FAILED"),
    ...alone("blank", inline(" "), "FAILED"),
    ...alone("nothing_given", operator("INLINE", "calc", { inputParameters: { given: 1 } }), "FAILED"),
    ...alone("endless", inline("while (true) {}"), "FAILED"),
    ...alone("second_line", inline("var a = 1;\nmissing.thing"), "FAILED"),
    ...alone("reference", inline("missing.thing"), "FAILED"),
    ...alone("optional", { ...inline("missing.thing"), optional: true }),
  ],
};

export const lambdas: Chapter = {
  name: "operator-lambda",
  steps: [
    ...alone(
      "lambda",
      operator("LAMBDA", "calc", {
        inputParameters: { given: "${workflow.input.given}", scriptExpression: "return { twice: $.given * 2 };" },
      }),
      "COMPLETED",
      { given: 4 },
    ),
    ...alone(
      "lambda_value",
      operator("LAMBDA", "calc", {
        inputParameters: { given: 1, scriptExpression: "if ($.given == 1) { return true; } else { return false; }" },
      }),
    ),
    ...alone("lambda_throws", operator("LAMBDA", "calc", { inputParameters: { scriptExpression: "return missing.thing;" } }), "FAILED"),
    ...alone("lambda_empty", operator("LAMBDA", "calc", { inputParameters: { given: 1 } }), "FAILED"),
  ],
};

const jq = (queryExpression: string, input: Record<string, unknown> = { value: { list: [3, 1, 2], name: "n" } }) =>
  operator("JSON_JQ_TRANSFORM", "jq", { inputParameters: { ...input, queryExpression } });

export const transforms: Chapter = {
  name: "operator-jq",
  steps: [
    ...alone("jq_path", jq(".value.list")),
    ...alone("jq_object", jq("{ sorted: (.value.list | sort), name: .value.name, sum: (.value.list | add) }")),
    ...alone("jq_many", jq(".value.list[]")),
    ...alone("jq_none", jq("empty")),
    ...alone("jq_missing", jq(".nothing")),
    ...alone("jq_select", jq(".value.list | map(select(. > 1) | { n: . })")),
    ...alone("jq_text", jq('.value.name + "-" + (.value.list | length | tostring)')),
    ...alone("jq_wrong", jq(".value.name | keys"), "FAILED"),
    ...alone("jq_syntax", jq(".value["), "FAILED"),
  ],
};

const decided = (more: Record<string, unknown>) =>
  operator("SWITCH", "sw", {
    evaluatorType: "javascript",
    expression: "$.which === 1 ? 'a' : $.which",
    inputParameters: { which: "${workflow.input.which}" },
    decisionCases: { a: [step("in_a")], true: [step("in_true")], none: [] },
    defaultCase: [step("in_default")],
    ...more,
  });

const chosen = (name: string, which: unknown, ref: string, of = "ex_switch"): Step[] => [
  start(`${name}`, { name: of, input: { which } }),
  runUntil(`${name}, the case`, new RegExp(`"referenceTaskName":"${ref}"`)),
  done(`${name}, in the case`, ref),
];

export const scripts: Chapter = {
  name: "operator-switch-script",
  steps: [
    taskDefs("define the task", quick(TYPE)),
    defined("ex_switch", define(decided({}), step("after"))),
    ...chosen("case a", 1, "in_a"),
    runUntil("after case a", /"referenceTaskName":"after"/),
    done("after", "after"),
    reaches("case a ends", "COMPLETED"),
    ...chosen("a boolean", true, "in_true"),
    ...chosen("no such case", "z", "in_default"),
    ...chosen("nothing", null, "in_default"),
    ...chosen("a number", 7, "in_default"),
    ...chosen("an empty case", "none", "after"),
    ...alone("switch_throws", decided({ expression: "missing.thing" }), "FAILED"),
    defined("ex_switch_graal", define(decided({ evaluatorType: "graaljs", expression: "$.which + ''" }))),
    ...chosen("with graaljs", "a", "in_a", "ex_switch_graal"),
    defined("ex_switch_syntax", define(decided({ expression: "$.which ==" }))),
    defined("ex_switch_unknown", define(decided({ evaluatorType: "cobol" }))),
  ],
};

const decision = (more: Record<string, unknown>) =>
  operator("DECISION", "dec", {
    inputParameters: { which: "${workflow.input.which}" },
    decisionCases: { a: [step("in_a")], none: [] },
    defaultCase: [step("in_default")],
    ...more,
  });

export const decisions: Chapter = {
  name: "operator-decision",
  steps: [
    taskDefs("define the task", quick(TYPE)),
    defined("ex_decision", define(decision({ caseValueParam: "which" }), step("after"))),
    ...chosen("case a", "a", "in_a", "ex_decision"),
    runUntil("after case a", /"referenceTaskName":"after"/),
    ...chosen("no such case", "z", "in_default", "ex_decision"),
    ...chosen("an empty case", "none", "in_default", "ex_decision"),
    ...chosen("nothing", null, "in_default", "ex_decision"),
    defined("ex_decision_script", define(decision({ caseExpression: "$.which > 1 ? 'a' : 'b'" }), step("after"))),
    ...chosen("by expression", 2, "in_a", "ex_decision_script"),
    ...chosen("by expression, no such case", 1, "in_default", "ex_decision_script"),
    ...alone("decision_throws", decision({ caseExpression: "missing.thing" }), "FAILED"),
  ],
};
