// Tasks whose work is an expression: INLINE, LAMBDA, JSON_JQ_TRANSFORM, and SWITCH and DECISION with a script. Texts of errors and outputs
// are the real server's.

import { isObject, type Json, type JsonObject } from "../../../../core/json/json.ts";
import { parseExact } from "../../../../core/json/json-exact.ts";
import { LaneFailure, type LaneWork } from "../../../../engine/board/lane-worker.ts";
import { rootFrom } from "../../../../engine/run/run.ts";
import { javaText } from "../../dialect/java-text.ts";
import { isScript } from "../../dialect/operators.ts";
import { unquoteJson } from "../../dialect/quoting.ts";
import { choiceOutput } from "../../dialect/records.ts";
import { type Evaluated, type Evaluation, evaluationMsMax } from "../evaluate/evaluation.ts";
import type { Origin } from "./origin.ts";

export interface Expressions {
  /** Evaluations take turns by `turn`. */
  evaluate(evaluation: Evaluation, signal: AbortSignal, turn: string): Promise<Evaluated>;
}

/** The output of the task. Throws a LaneFailure with the reason and output of one that fails. */
export async function performExpression({ task, run }: Origin, work: LaneWork, expressions: Expressions): Promise<Json> {
  const text = unquoteJson(work.task.input);
  const input = objectIn(parseExact(text) as Json);
  const evaluate = (language: Evaluation["language"], code: string) =>
    expressions.evaluate({ language, code, input: text, msMax: evaluationMsMax }, work.signal, rootFrom(run));
  switch (task.type) {
    case "SWITCH":
      return chosen(await evaluate("javascript", task.expression ?? ""), false);
    case "DECISION":
      return chosen(await evaluate("javascript", task.caseExpression ?? ""), true);
    case "DO_WHILE":
      return conditionOf(task.loopCondition ?? "", await evaluate("javascript", task.loopCondition ?? ""));
    case "LAMBDA":
      return { result: resultOf(await evaluate("javascript", `(function () { ${scriptOf(input)} })()`), true) };
    case "JSON_JQ_TRANSFORM":
      return transformed(await evaluate("jq", queryOf(input)));
    default:
      return inline(input, (code) => evaluate("javascript", code));
  }
}

async function inline(input: JsonObject, evaluate: (code: string) => Promise<Evaluated>): Promise<Json> {
  const { evaluatorType = "javascript", expression } = input;
  if (typeof expression !== "string" || expression.trim() === "")
    throw refusal("Empty 'expression' in Inline task's input parameters. A non-empty String value must be provided.");
  if (evaluatorType === "value-param") return { result: Object.hasOwn(input, expression) ? (input[expression] as Json) : null };
  if (!isScript(javaText(evaluatorType))) throw refusal(`Unknown evaluator '${javaText(evaluatorType)}' in INLINE task.`);
  return { result: resultOf(await evaluate(expression), false) };
}

function chosen(evaluated: Evaluated, isDecision: boolean): Json {
  if ("failed" in evaluated) throw failure(evaluated.failed, { retryable: true });
  return choiceOutput(isDecision, javaText(parseExact(evaluated.output) as Json));
}

/** A condition that cannot be evaluated ends its loop, and the loop fails with this reason. */
function conditionOf(condition: string, evaluated: Evaluated): Json {
  if ("failed" in evaluated) return { failed: `Unable to evaluate condition ${condition}, exception ${evaluated.failed}` };
  const value = parseExact(evaluated.output) as Json;
  return { goesOn: typeof value === "number" ? value > 0 : value === true };
}

/** Code that fails will fail again; code that was stopped may not. */
function resultOf(evaluated: Evaluated, retryable: boolean): Json {
  if ("output" in evaluated) return parseExact(evaluated.output) as Json;
  throw failure(evaluated.failed, { retryable: retryable || evaluated.isLimit === true, output: { error: evaluated.failed } });
}

function transformed(evaluated: Evaluated): Json {
  const resultList = resultOf(evaluated, true) as Json[];
  return { result: resultList[0] ?? null, resultList };
}

function scriptOf({ scriptExpression }: JsonObject): string {
  if (typeof scriptExpression === "string" && scriptExpression.trim() !== "") return scriptExpression;
  const message = "Empty 'scriptExpression' in Lambda task's input parameters. A non-empty String value must be provided.";
  throw failure(message, { retryable: true });
}

function queryOf({ queryExpression }: JsonObject): string {
  if (typeof queryExpression === "string" && queryExpression !== "") return queryExpression;
  throw failure("Missing 'queryExpression' in input parameters", { retryable: true });
}

function refusal(error: string): LaneFailure {
  return failure(error, { retryable: false, output: { error } });
}

function failure(error: string, { retryable, output }: { retryable: boolean; output?: Json }): LaneFailure {
  return new LaneFailure({ error, retryable, ...(output === undefined ? {} : { output: JSON.stringify(output) }) });
}

function objectIn(value: Json): JsonObject {
  return isObject(value) ? (value as JsonObject) : {};
}
