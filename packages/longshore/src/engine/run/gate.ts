// A gate counts the open runs of a workflow that have the same value in one field of their input, and orders those that wait. It exists
// while a run is open or waits.

import { createHash } from "node:crypto";
import { LongshoreError } from "../../core/errors.ts";
import { isScalar, type Json } from "../../core/json/json.ts";
import { parseExact, writeExact } from "../../core/json/json-exact.ts";
import { valueAt } from "../../core/json/value-at.ts";
import { shown } from "../../core/text.ts";

/** Maximum number of runs that wait at one gate. They cost rows and no memory. */
export const waitingRunsMax = 100_000;
/** A longer value is replaced by its hash: the name of a gate is part of an index. */
const valueCharsMax = 200;

export interface Gate {
  readonly name: string;
  /** The runs that have begun, oldest first. */
  readonly open: readonly string[];
  /** The place of the run that began to wait last. */
  readonly last: number;
  /** How many runs wait. */
  readonly waiting: number;
  /** How many runs may be open, as the newest start found it. */
  readonly runs: number;
}

/** Rows of debounced starts are in the table of gates, under names that no gate has (local-debounce.ts). */
export const debouncePrefix = "debounce ";

/** The name of the gate for this input. Throws LONGSHORE_BAD_INPUT when the field is an object or a list. */
export function gateName(
  { workflow, input }: { workflow: string; input: string },
  { key = null }: { readonly key?: string | null },
): string {
  return key === null ? JSON.stringify([workflow]) : JSON.stringify([workflow, key, keyValue(input, key, workflow)]);
}

/** As JSON text. Runs without the field count as runs with null. */
function keyValue(input: string, key: string, workflow: string): string {
  const value = valueAt(parseExact(input) as Json, key) ?? null;
  if (!isScalar(value)) {
    const expected = "a text, a number, true, false or null";
    const message = `The field ${key} of the input is ${shown(value)}, expected ${expected}: workflow ${workflow} counts its runs by it.`;
    throw new LongshoreError("LONGSHORE_BAD_INPUT", message, { detail: { field: key, expected } });
  }
  const text = writeExact(value as Json);
  return text.length <= valueCharsMax ? text : `#${createHash("sha256").update(text).digest("hex")}`;
}

/** `one run of order at a time for customer.id 7`. */
export function limitText({ name, runs }: Pick<Gate, "name" | "runs">): string {
  const [workflow, key, value] = JSON.parse(name) as [string, string?, string?];
  const which = value === undefined ? "" : ` for ${key} ${asRead(value)}`;
  return `${runs === 1 ? "one run" : `${runs} runs`} of ${workflow} at a time${which}`;
}

/** Why a run waits at this gate. */
export function turnText(gate: Gate): string {
  return `waits for run ${gate.open[0] ?? "before it"}: ${limitText(gate)}`;
}

/** A text without its quotes, and the beginning of a hash. */
function asRead(value: string): string {
  if (value.startsWith("#")) return value.slice(0, 13);
  const parsed: unknown = JSON.parse(value);
  return typeof parsed === "string" ? parsed : value;
}
