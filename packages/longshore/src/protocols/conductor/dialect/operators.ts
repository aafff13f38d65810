// The types of tasks. Any other type is the queue of a custom worker.

/** Operators that are served. */
export const operators = [
  "SIMPLE",
  "DYNAMIC",
  "SWITCH",
  "FORK_JOIN",
  "JOIN",
  "SUB_WORKFLOW",
  "TERMINATE",
  "SET_VARIABLE",
  "WAIT",
  "HUMAN",
  "NOOP",
] as const;
export type OperatorName = (typeof operators)[number];

/** Conductor's own types that are not served. A run with one would wait without an end for a worker that cannot exist. */
const unserved = new Set([
  "DECISION",
  "DO_WHILE",
  "WHILE",
  "EVENT",
  "EXCLUSIVE_JOIN",
  "FORK",
  "FORK_JOIN_DYNAMIC",
  "HTTP",
  "INLINE",
  "JDBC",
  "JSON_JQ_TRANSFORM",
  "KAFKA_PUBLISH",
  "LAMBDA",
  "PULL_WORKFLOW_MESSAGES",
  "START_WORKFLOW",
  "LLM_TEXT_COMPLETE",
  "LLM_CHAT_COMPLETE",
  "LLM_GENERATE_EMBEDDINGS",
  "LLM_INDEX_TEXT",
  "LLM_STORE_EMBEDDINGS",
  "LLM_SEARCH_INDEX",
  "LLM_SEARCH_EMBEDDINGS",
  "LLM_GET_EMBEDDINGS",
  "GENERATE_IMAGE",
  "GENERATE_AUDIO",
  "GENERATE_VIDEO",
  "GENERATE_PDF",
  "LIST_MCP_TOOLS",
  "CALL_MCP_TOOL",
  "AGENT",
  "GET_AGENT_CARD",
  "CANCEL_AGENT",
]);

/** Evaluators of a SWITCH that would run a script. */
const scriptEvaluators = new Set(["javascript", "graaljs", "python"]);

export function isUnserved(type: string): boolean {
  return unserved.has(type);
}

export function isScript(evaluatorType: string | undefined): boolean {
  return evaluatorType !== undefined && scriptEvaluators.has(evaluatorType);
}

/** Null for the type of a custom worker. */
export function operatorOf(type: string): OperatorName | null {
  return operators.find((known) => known === type) ?? null;
}
