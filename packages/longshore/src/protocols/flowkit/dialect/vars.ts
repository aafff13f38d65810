// The functions that change a run's variables: set, merge, incr, unset. Pure: they take the old variables, and return the new ones and the node's
// result. A run is decided one event at a time, so no other change happens between reading and writing.

import { isObject, type Json, type JsonObject, setOwn } from "../../../core/json/json.ts";
import { shown } from "../../../core/text.ts";
import type { IsSensitive } from "./sensitive-values.ts";

export const varsFunctions = ["vars.set", "vars.merge", "vars.incr", "vars.unset"] as const;
export type VarsFunction = (typeof varsFunctions)[number];

export interface VarsChange {
  readonly vars: JsonObject;
  /** The node's output: what the function of the reference returns and logs. Keys are full paths, sorted. */
  readonly result: { ok: true; touched: number; keys: string[]; sensitive_hits: number } & JsonObject;
}

/** An argument is invalid, or the old value has the wrong type. `field` is below `fn_args`. */
export class VarsError extends Error {
  override readonly name = "VarsError";
  readonly field: string;

  constructor(field: string, message: string) {
    super(message);
    this.field = field;
  }
}

/** The reference's limits. They keep the run's row small: every decision reads and writes it. */
export const varsLimits = {
  pathsMax: 256,
  /** Maximum length of a path, with the prefix. */
  pathCharsMax: 512,
  segmentsMax: 14,
  segmentCharsMax: 128,
  /** Maximum size of a text, in UTF-8. */
  valueBytesMax: 65_536,
} as const;

const prefix = "coordinator.vars.";

export function isVarsFunction(name: string): name is VarsFunction {
  return (varsFunctions as readonly string[]).includes(name);
}

/** @throws VarsError */
export function changeVars(name: VarsFunction, vars: JsonObject, args: JsonObject, isSensitive: IsSensitive): VarsChange {
  switch (name) {
    case "vars.set":
      return write(vars, args, ["kv"], isSensitive);
    case "vars.merge":
      return write(vars, args, ["data", "kv"], isSensitive);
    case "vars.incr":
      return increase(vars, args);
    case "vars.unset":
      return unset(vars, args);
  }
}

interface Entry {
  readonly segments: readonly string[];
  readonly value: Json;
}

/** Set and merge do the same: each leaf replaces the old value. Only the names of their arguments differ. */
function write(vars: JsonObject, args: JsonObject, holders: readonly string[], isSensitive: IsSensitive): VarsChange {
  const holder = holders.find((name) => name in args);
  const given = holder === undefined ? args : args[holder];
  if (!isObject(given)) throw new VarsError(holder ?? "", `is ${shown(given)}, expected an object`);
  const { block_sensitive: inside, ...data } = given as JsonObject;
  const entries = leavesOf(data, holder);
  const hits = entries.filter(({ segments, value }) => isSensitive(prefix + segments.join("."), value));
  const [hit] = hits;
  if (hit !== undefined && (args.block_sensitive === true || inside === true))
    throw new VarsError(fieldOf(holder, hit.segments), "looks like a secret, and block_sensitive is set");
  let changed = vars;
  for (const { segments, value } of entries) changed = withValue(changed, segments, value, fieldOf(holder, segments));
  return answer(
    changed,
    entries.map(({ segments }) => segments),
    { sensitive_hits: hits.length },
  );
}

function increase(vars: JsonObject, args: JsonObject): VarsChange {
  const { key, by = 1 } = args;
  if (typeof by !== "number" || !Number.isFinite(by)) throw new VarsError("by", `is ${shown(by)}, expected a finite number`);
  const segments = segmentsOf(key, "key");
  const before = valueAt(vars, segments) ?? 0;
  if (typeof before !== "number")
    throw new VarsError("key", `names ${prefix}${segments.join(".")}, which is ${shown(before)} and no number`);
  return answer(withValue(vars, segments, before + by, "key"), [segments], { sensitive_hits: 0, key: segments.join("."), by });
}

function unset(vars: JsonObject, args: JsonObject): VarsChange {
  const { keys } = args;
  if (!Array.isArray(keys)) throw new VarsError("keys", `is ${shown(keys)}, expected a list of keys`);
  if (keys.length > varsLimits.pathsMax) throw tooMany("keys", keys.length);
  const paths = keys.map((key, at) => segmentsOf(key, `keys[${at}]`));
  return answer(paths.reduce(without, vars), paths, { sensitive_hits: 0 });
}

/** Every leaf with its path. Dots in the outermost keys separate segments; dots in inner keys are an error. An empty object has no leaves. */
function leavesOf(data: JsonObject, holder: string | undefined): Entry[] {
  const entries: Entry[] = [];
  const visit = (segments: readonly string[], value: Json) => {
    const field = fieldOf(holder, segments);
    checkPath(segments, field);
    if (isObject(value)) {
      for (const [key, inner] of Object.entries(value as JsonObject)) visit([...segments, key], inner);
      return;
    }
    const bytes = typeof value === "string" ? Buffer.byteLength(value) : 0;
    if (bytes > varsLimits.valueBytesMax) throw new VarsError(field, `has ${bytes} bytes, expected at most ${varsLimits.valueBytesMax}`);
    entries.push({ segments, value });
    if (entries.length > varsLimits.pathsMax) throw tooMany(holder ?? "", entries.length);
  };
  for (const [key, value] of Object.entries(data)) visit(key.split("."), value);
  return entries;
}

function segmentsOf(key: Json | undefined, field: string): string[] {
  if (typeof key !== "string") throw new VarsError(field, `is ${shown(key)}, expected a key such as limits.max`);
  const segments = key.split(".");
  checkPath(segments, field);
  return segments;
}

function checkPath(segments: readonly string[], field: string): void {
  const { segmentsMax, segmentCharsMax, pathCharsMax } = varsLimits;
  if (segments.length > segmentsMax) throw new VarsError(field, `has ${segments.length} segments, expected at most ${segmentsMax}`);
  for (const segment of segments) {
    if (segment === "") throw new VarsError(field, "has an empty segment, expected a name between two dots");
    if (segment.length > segmentCharsMax)
      throw new VarsError(field, `has a segment of ${segment.length} characters, expected at most ${segmentCharsMax}`);
    if (segment.startsWith("$")) throw new VarsError(field, `has the segment ${shown(segment)}, which must not begin with $`);
    if (segment.includes(".")) throw new VarsError(field, `has the key ${shown(segment)}: only the outermost keys may have dots`);
    if (segment.includes("\0")) throw new VarsError(field, "has the character NUL, which no key may have");
  }
  const chars = prefix.length + segments.join(".").length;
  if (chars > pathCharsMax) throw new VarsError(field, `has ${chars} characters with ${prefix}, expected at most ${pathCharsMax}`);
}

/** A copy of the objects along the path; the siblings are shared. */
function withValue(vars: JsonObject, [first = "", ...rest]: readonly string[], value: Json, field: string): JsonObject {
  const copy: JsonObject = { ...vars };
  const inner = Object.hasOwn(vars, first) ? vars[first] : undefined;
  if (rest.length === 0) setOwn(copy, first, value);
  else if (inner === undefined || isObject(inner)) setOwn(copy, first, withValue((inner ?? {}) as JsonObject, rest, value, field));
  else throw new VarsError(field, `is below ${first}, which is ${shown(inner)} and no object`);
  return copy;
}

/** Removes the value, and each object that becomes empty. A path that does not exist changes nothing. */
function without(vars: JsonObject, [first = "", ...rest]: readonly string[]): JsonObject {
  const inner = Object.hasOwn(vars, first) ? vars[first] : undefined;
  if (inner === undefined) return vars;
  const { [first]: _gone, ...others } = vars;
  if (rest.length === 0) return others;
  if (!isObject(inner)) return vars;
  const left = without(inner as JsonObject, rest);
  if (left === inner) return vars;
  return Object.keys(left).length === 0 ? others : withValue(vars, [first], left, "");
}

function valueAt(vars: JsonObject, segments: readonly string[]): Json | undefined {
  let here: Json | undefined = vars;
  for (const segment of segments) here = isObject(here) && Object.hasOwn(here, segment) ? (here as JsonObject)[segment] : undefined;
  return here;
}

function answer(vars: JsonObject, paths: readonly (readonly string[])[], more: { sensitive_hits: number } & JsonObject): VarsChange {
  const keys = [...new Set(paths.map((segments) => prefix + segments.join(".")))].sort();
  return { vars, result: { ok: true, touched: paths.length, keys, ...more } };
}

function fieldOf(holder: string | undefined, segments: readonly string[]): string {
  return [...(holder === undefined ? [] : [holder]), ...segments].join(".");
}

function tooMany(field: string, count: number): VarsError {
  return new VarsError(field, `has ${count} paths, expected at most ${varsLimits.pathsMax}`);
}
