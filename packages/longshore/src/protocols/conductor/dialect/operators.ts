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
  "INLINE",
  "LAMBDA",
  "JSON_JQ_TRANSFORM",
  "DECISION",
  "HTTP",
  "DO_WHILE",
  "FORK_JOIN_DYNAMIC",
  "START_WORKFLOW",
  "EVENT",
  "EXCLUSIVE_JOIN",
] as const;
export type OperatorName = (typeof operators)[number];

/** Conductor's own types that are not served. A run with one would wait without an end for a worker that cannot exist. */
const unserved = new Set(["WHILE", "FORK", "JDBC", "KAFKA_PUBLISH", "PULL_WORKFLOW_MESSAGES"]);

/** The lane of expressions, which the server evaluates itself. */
export const evaluateLane = "$conductor.evaluate";

/** The lane of calls to other servers. */
export const callLane = "$conductor.call";
/** Calls that wait for other servers at the same time. One family of runs may use half of them. */
export const callSlots = 64;

/** All names of lanes whose tasks the server itself works on begin with it. */
const systemLanePrefix = "$conductor.";

/** The domain of all tasks of a run that is a test. No worker can poll it. */
export const mockedDomain = "$conductor.test";

/** The lane of a task of the server whose result a test gives. */
export const mockedLane = `${mockedDomain}:mocked`;

function isMockedLane(name: string): boolean {
  return name.startsWith(`${mockedDomain}:`);
}

/** The lane of tasks that start runs and send events of this server: calls to slow servers do not delay them. */
export const startLane = "$conductor.start";

/** The lane of event handlers: one task for each event and each of its handlers. */
export const handlerLane = "$conductor.handle";

const systemLanes: ReadonlyMap<string, string> = new Map([
  ["INLINE", evaluateLane],
  ["LAMBDA", evaluateLane],
  ["JSON_JQ_TRANSFORM", evaluateLane],
  ["HTTP", callLane],
  ["START_WORKFLOW", startLane],
  ["EVENT", startLane],
]);

/** The lane of a task that the server itself works on; undefined for other tasks. */
export function systemLaneOf(type: string): string | undefined {
  return systemLanes.get(type);
}

export function isSystemLane(name: string): boolean {
  return name.startsWith(systemLanePrefix) && !isMockedLane(name);
}

const scriptEvaluators = new Set(["javascript", "graaljs"]);

export function isUnserved(type: string): boolean {
  return unserved.has(type);
}

/** Whether an evaluator runs JavaScript. */
export function isScript(evaluatorType: string | undefined): boolean {
  return evaluatorType !== undefined && scriptEvaluators.has(evaluatorType);
}

/** Whether the case of a SWITCH or DECISION is the value of an expression. */
export function choosesByScript(task: { type: string; evaluatorType?: string; caseExpression?: string }): boolean {
  if (task.type === "DECISION") return Boolean(task.caseExpression);
  return task.type === "SWITCH" && isScript(task.evaluatorType);
}

/** Null for the type of a custom worker. */
export function operatorOf(type: string): OperatorName | null {
  return operators.find((known) => known === type) ?? null;
}
