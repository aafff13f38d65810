// Which events start a workflow: their name, and what their payload must contain.

import { LongshoreError } from "./errors.ts";
import { isObject, type Json } from "./json/json.ts";
import { valueAt } from "./json/value-at.ts";
import { isName } from "./names.ts";

/** What a field of the payload is compared with. */
export type EventValue = string | number | boolean | null;

/** The events that start a workflow. */
export interface EventTrigger {
  /** The name of the event, such as `order.created`. */
  readonly event: string;
  /**
   * Fields that the payload must have with this value, or with one of several. A dot separates the names of nested fields:
   * `{ "customer.country": ["DE", "AT"] }`. Default: every payload.
   */
  readonly match?: { readonly [path: string]: EventValue | readonly EventValue[] };
}

export const eventNameMax = 200;
/** Maximum number of events that start one workflow, of fields that are compared, and of values of one field. */
export const triggersMax = 20;
export const matchFieldsMax = 20;
export const matchValuesMax = 50;
const pathCharsMax = 200;

/** Checks the option `on` of a workflow. Throws LONGSHORE_BAD_DEFINITION, which names the field. */
export function triggersOf(on: unknown, workflow: string, field = "on"): EventTrigger[] {
  const given = Array.isArray(on) ? on : [on];
  if (given.length > triggersMax) throw bad(workflow, field, `has ${given.length} events`, `at most ${triggersMax}`);
  return given.map((one, at) => triggerOf(one, workflow, Array.isArray(on) ? `${field}[${at}]` : field));
}

function triggerOf(given: unknown, workflow: string, field: string): EventTrigger {
  if (!isObject(given)) throw bad(workflow, field, `is ${shown(given)}`, 'an object such as { event: "order.created" }');
  const { event, match, ...others } = given as { [key: string]: unknown };
  const [other] = Object.keys(others);
  if (other !== undefined) throw bad(workflow, `${field}.${other}`, "is not known", "event, match");
  if (!isEventName(event)) throw bad(workflow, `${field}.event`, `is ${shown(event)}`, `a text of 1 to ${eventNameMax} characters`);
  return match === undefined ? { event } : { event, match: matchOf(match, workflow, `${field}.match`) };
}

function matchOf(match: unknown, workflow: string, field: string): NonNullable<EventTrigger["match"]> {
  if (!isObject(match)) throw bad(workflow, field, `is ${shown(match)}`, 'an object such as { "customer.country": "DE" }');
  const paths = Object.entries(match);
  if (paths.length > matchFieldsMax) throw bad(workflow, field, `has ${paths.length} fields`, `at most ${matchFieldsMax}`);
  for (const [path, value] of paths) {
    if (!isName(path) || path.length > pathCharsMax)
      throw bad(workflow, field, "has a path that is too long", `at most ${pathCharsMax} characters`);
    const values: unknown[] = Array.isArray(value) ? value : [value];
    if (values.length > matchValuesMax || !values.every(isPlain))
      throw bad(
        workflow,
        `${field}.${path}`,
        `is ${shown(value)}`,
        `a text, number, boolean or null, or a list of at most ${matchValuesMax}`,
      );
  }
  return match as NonNullable<EventTrigger["match"]>;
}

export function isEventName(name: unknown): name is string {
  return typeof name === "string" && name.length > 0 && name.length <= eventNameMax && isName(name);
}

/** Whether an event with this payload starts the workflow. */
export function matches({ match = {} }: Pick<EventTrigger, "match">, payload: Json): boolean {
  return Object.entries(match).every(([path, wanted]) => {
    const value = valueAt(payload, path);
    return isPlain(value) && (Array.isArray(wanted) ? wanted.includes(value) : wanted === value);
  });
}

function isPlain(value: unknown): value is EventValue {
  return value === null || ["string", "number", "boolean"].includes(typeof value);
}

function shown(value: unknown): string {
  return (JSON.stringify(value) ?? "absent").slice(0, 100);
}

function bad(workflow: string, field: string, what: string, expected: string): LongshoreError {
  return new LongshoreError("LONGSHORE_BAD_DEFINITION", `${field} of workflow ${workflow} ${what}, expected ${expected}.`, {
    detail: { field, expected },
  });
}
