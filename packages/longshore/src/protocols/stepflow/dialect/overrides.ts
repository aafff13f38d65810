// Changes to the steps of a flow for one run: merge patches (RFC 7396) on the source of a step.
//
// {"steps": {"ask": {"$type": "merge_patch", "value": {"input": {"temperature": 0}}}}}
//
// Stepflow's documents also show them without the wrapper `steps`; both forms are accepted.

import { LongshoreError } from "../../../core/errors.ts";
import { isObject, type Json, type JsonObject, setOwn } from "../../../core/json/json.ts";
import { type JsonPath, pathText } from "../../../core/json/json-position.ts";
import { shown } from "../../../core/text.ts";

/** Throws LONGSHORE_BAD_INPUT that names the field. Returns the same document when there are no changes. */
export function applyOverrides(document: JsonObject, overrides: Json): JsonObject {
  const patches = patchesOf(overrides, document);
  if (patches.size === 0) return document;
  const steps = Array.isArray(document.steps) ? document.steps : [];
  const known = steps.map((step) => (isObject(step) && typeof step.id === "string" ? step.id : undefined));
  const ids = new Set(known);
  for (const [id, { at }] of patches) if (!ids.has(id)) throw bad(at, `The flow has no step ${shown(id)}.`, `one of ${shownIds(known)}`);
  const patched = steps.map((step, index) => {
    const patch = patches.get(known[index] ?? "");
    return patch === undefined ? step : mergePatch(step, patch.value);
  });
  return { ...document, steps: patched };
}

interface Patch {
  readonly value: Json;
  readonly at: JsonPath;
}

function patchesOf(overrides: Json, document: JsonObject): Map<string, Patch> {
  const expected = '{"steps": {"<step id>": {"value": {...}}}}';
  if (overrides === null) return new Map();
  if (!isObject(overrides)) throw bad(["overrides"], "The overrides are not an object.", expected);
  const wrapped = Object.hasOwn(overrides, "steps") && !isPatchOfStep(overrides.steps as Json, "steps", document);
  const at = wrapped ? ["overrides", "steps"] : ["overrides"];
  const given = wrapped ? overrides.steps : overrides;
  if (given === null) return new Map();
  if (!isObject(given)) throw bad(at, "The overrides of steps are not an object.", expected);
  return new Map(Object.entries(given).map(([id, patch]) => [id, readPatch(patch as Json, [...at, id])]));
}

/** A step may have the id `steps`. */
function isPatchOfStep(value: Json, id: string, { steps }: JsonObject): boolean {
  const isStep = Array.isArray(steps) && steps.some((step) => isObject(step) && step.id === id);
  return isStep && isObject(value) && Object.keys(value).every((key) => key === "$type" || key === "value");
}

function readPatch(patch: Json, at: JsonPath): Patch {
  if (!isObject(patch)) throw bad(at, "The override is not an object.", '{"value": {...}}');
  const { $type: type = "merge_patch" } = patch;
  if (type === "json_patch") throw bad([...at, "$type"], "Overrides by json_patch are not supported.", "merge_patch");
  if (type !== "merge_patch") throw bad([...at, "$type"], `There is no override of type ${JSON.stringify(type)}.`, "merge_patch");
  if (!isObject(patch.value)) throw bad([...at, "value"], "The override has no `value` to merge.", "an object with fields of the step");
  return { value: patch.value as Json, at };
}

/** RFC 7396: objects are merged, null removes, any other value replaces. */
export function mergePatch(target: Json, patch: Json): Json {
  if (!isObject(patch)) return patch;
  const merged: JsonObject = isObject(target) ? { ...(target as JsonObject) } : {};
  for (const [key, value] of Object.entries(patch as JsonObject)) {
    if (value === null) delete merged[key];
    else setOwn(merged, key, mergePatch(Object.hasOwn(merged, key) ? (merged[key] as Json) : null, value));
  }
  return merged;
}

/** How many ids of the flow an error shows. */
const idsShown = 50;

function shownIds(known: readonly unknown[]): string {
  return known.length <= idsShown ? known.join(", ") : `${known.slice(0, idsShown).join(", ")} and ${known.length - idsShown} others`;
}

function bad(at: JsonPath, message: string, expected: string): LongshoreError {
  return new LongshoreError("LONGSHORE_BAD_INPUT", message, { detail: { field: pathText(at), expected } });
}
