// Detects values that look like secrets, such as keys and tokens. Every reader of a run sees its variables. So such a value is counted, or
// refused if the graph has `block_sensitive`. The detector can be replaced.

import { LongshoreError, toError } from "../../../core/errors.ts";
import type { Json } from "../../../core/json/json.ts";

/** `path` is the full path, such as `coordinator.vars.api.token`. Must be pure: it is called while a run is decided. */
export type IsSensitive = (path: string, value: Json) => boolean;

/** An object, a predicate, a function without parameters that returns one of them, or `module:export` as a text. */
export type SensitiveDetector = { isSensitive: IsSensitive } | IsSensitive | (() => { isSensitive: IsSensitive } | IsSensitive) | string;

/** Shorter texts are never treated as secrets. */
const charsMin = 20;
/** The reference's threshold, in bits per character: natural text repeats letters, and keys use many characters evenly. */
const entropyMin = 3.2;
/** The beginning of a text is enough, so longer texts are not checked as a whole. */
const charsMax = 4_096;

const shapes: readonly RegExp[] = [
  // A JSON Web Token.
  /^eyJ[\w-]+\.[\w-]+\.[\w-]*$/,
  /-----BEGIN [A-Z ]+-----/,
  // AWS key ids, Google keys, Slack tokens.
  /\b(?:AKIA|ASIA)[0-9A-Z]{16}\b/,
  /\bAIza[\w-]{35}\b/,
  /\bxox[abeoprs]-[\w-]{10,}/,
  /\bbearer\s+[\w.~+/-]{16,}=*/i,
  // Any long text in base 64.
  /^[\w+/-]{32,}={0,2}$/,
];

export const looksSensitive: IsSensitive = (_path, value) => {
  if (typeof value !== "string") return false;
  const text = value.trim().slice(0, charsMax);
  if (text.length < charsMin) return false;
  return shapes.some((shape) => shape.test(text)) || entropyOf(text) >= entropyMin;
};

/** @throws LongshoreError LONGSHORE_BAD_CONFIG when it is not a detector or cannot be loaded. */
export async function loadDetector(detector: SensitiveDetector): Promise<IsSensitive> {
  const found = typeof detector === "string" ? await imported(detector) : detector;
  const predicate = predicateOf(typeof found === "function" && found.length === 0 ? (found as () => unknown)() : found);
  if (predicate !== undefined) return predicate;
  const named = typeof detector === "string" ? JSON.stringify(detector) : `a ${typeof detector}`;
  throw bad(`The detector of sensitive values is ${named}, expected isSensitive(path, value), or an object that has it.`);
}

function predicateOf(found: unknown): IsSensitive | undefined {
  if (typeof found === "function") return found as IsSensitive;
  const object = found as { isSensitive?: unknown } | null;
  if (typeof object !== "object" || typeof object?.isSensitive !== "function") return undefined;
  const detect = object.isSensitive as IsSensitive;
  return (path, value) => detect.call(object, path, value);
}

async function imported(name: string): Promise<unknown> {
  const at = name.lastIndexOf(":");
  const [module, member] = [name.slice(0, at), name.slice(at + 1)];
  if (at <= 0 || member === "") throw bad(`The detector of sensitive values is ${JSON.stringify(name)}, expected module:export.`);
  let members: { [member: string]: unknown };
  try {
    members = (await import(module)) as { [member: string]: unknown };
  } catch (error) {
    throw bad(`The detector of sensitive values ${JSON.stringify(name)} could not be loaded: ${toError(error).message}`, error);
  }
  return members[member];
}

/** Shannon entropy in bits per character. */
function entropyOf(text: string): number {
  const counts = new Map<string, number>();
  for (const char of text) counts.set(char, (counts.get(char) ?? 0) + 1);
  const total = [...text].length;
  let bits = 0;
  for (const count of counts.values()) bits -= (count / total) * Math.log2(count / total);
  return bits;
}

function bad(message: string, cause?: unknown): LongshoreError {
  return new LongshoreError("LONGSHORE_BAD_CONFIG", message, { cause, detail: { field: "flowkit.sensitiveDetector" } });
}
