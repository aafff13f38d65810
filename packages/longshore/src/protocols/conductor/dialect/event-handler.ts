// Event handlers, as they are stored and returned.

import { isObject, type Json, type JsonObject } from "../../../core/json/json.ts";
import { parseExact } from "../../../core/json/json-exact.ts";
import { shown } from "../../../core/text.ts";
import { type FieldTable, flag, readFields, text } from "./fields.ts";
import { unsupportedSink } from "./sinks.ts";
import { type Checked, Unsupported, Violations } from "./violation.ts";

const actions = ["start_workflow", "complete_task", "fail_task"] as const;
/** Actions that the real server knows, and does not perform either. */
const unperformed = new Set(["start_agent", "terminate_workflow", "update_workflow_variables"]);

/** The parameters of an action are in the field with its name. */
export type EventAction = { readonly action: (typeof actions)[number]; readonly expandInlineJSON: boolean } & {
  readonly [parameters in (typeof actions)[number]]?: JsonObject;
};

export interface EventHandler {
  readonly name: string;
  /** `<kind>:<name>`. */
  readonly event: string;
  readonly condition?: string;
  readonly evaluatorType?: string;
  readonly actions: readonly EventAction[];
  readonly active: boolean;
}

/** Each of them is performed in one task. */
const actionsMax = 100;

const fields: FieldTable = { name: text, event: text, condition: text, evaluatorType: text, active: flag(false) };

export function parseHandler(source: unknown, path: string): Checked<EventHandler> {
  const violations = new Violations();
  const handler = readFields<EventHandler & { actions?: Json }>(fields, source, path, violations);
  if (handler === null) return { violations: violations.list };
  if (!handler.name) violations.add(`${path}.name`, "Missing event handler name");
  if (!handler.event) violations.add(`${path}.event`, "Missing event location");
  const why = handler.event ? unsupportedSink(handler.event) : undefined;
  if (why !== undefined) violations.add(`${path}.event`, new Unsupported(shown(handler.event), `: ${why}`));
  if (handler.evaluatorType === "python")
    violations.add(`${path}.evaluatorType`, new Unsupported("python", ", expected javascript, graaljs or value-param"));
  const given = handler.actions as Json | undefined;
  const list = Array.isArray(given) ? given : [];
  if (list.length === 0) violations.add(`${path}.actions`, "No actions specified. Please specify at-least one action");
  if (list.length > actionsMax) violations.add(`${path}.actions`, `has ${list.length} actions, at most ${actionsMax} are allowed`);
  const read = list.map((action, at) => actionOf(action, `${path}.actions[${at}]`, violations));
  if (violations.list.length > 0) return { violations: violations.list };
  return { value: { ...handler, actions: read } };
}

/** A stored handler. */
export function readHandler(body: string): EventHandler {
  return parseExact(body) as unknown as EventHandler;
}

function actionOf(given: Json, path: string, violations: Violations): EventAction {
  const action = isObject(given) ? (given as JsonObject) : {};
  const kind = actions.find((known) => known === action.action);
  if (kind === undefined) {
    const isKnown = typeof action.action === "string" && unperformed.has(action.action);
    const expected = `, expected one of ${actions.join(", ")}`;
    const unknown = `is ${shown(action.action ?? null)}${expected}`;
    violations.add(`${path}.action`, isKnown ? new Unsupported(`the action ${String(action.action)}`, expected) : unknown);
    return { action: "start_workflow", expandInlineJSON: false };
  }
  const parameters = action[kind];
  if (!isObject(parameters)) violations.add(`${path}.${kind}`, `must be an object with the parameters of ${kind}`, parameters);
  const shownParameters = kind === "start_workflow" && isObject(parameters) ? { input: {}, ...(parameters as JsonObject) } : parameters;
  return { ...action, action: kind, [kind]: shownParameters, expandInlineJSON: action.expandInlineJSON === true } as unknown as EventAction;
}
