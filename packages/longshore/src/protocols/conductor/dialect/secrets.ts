// Secrets are references in everything that is stored (quoting.ts). They are inserted only on the way to a worker.

import { isScalar, type Json, setOwn } from "../../../core/json/json.ts";
import { parseExact, writeExact } from "../../../core/json/json-exact.ts";
import { secretPrefix } from "./expression.ts";
import { readPath } from "./json-path/evaluate.ts";
import { parsePath } from "./json-path/parse.ts";
import { PathError } from "./json-path/path-error.ts";
import { segmentsOf } from "./quoting.ts";

/** Whether a text, which may be JSON, mentions a secret, as a reference or as data. */
export function namesSecret(text: string): boolean {
  return text.includes(`\${${secretPrefix}`);
}

/**
 * The value that a worker receives: each reference replaced, and data unquoted. An unknown secret becomes null. `NAME.path` reads inside a
 * secret that is JSON. Calls `filled` with each value that replaces a reference.
 */
export function fillSecrets(quoted: Json, secret: (name: string) => string | null, filled?: (value: Json) => void): Json {
  const insert = (name: string) => {
    const value = secretValue(name, secret);
    filled?.(value);
    return value;
  };
  return fillReferences(quoted, insert);
}

function fillReferences(quoted: Json, insert: (name: string) => Json): Json {
  if (typeof quoted === "string") return fillText(quoted, insert);
  if (Array.isArray(quoted)) return quoted.map((item) => fillReferences(item, insert));
  if (isScalar(quoted)) return quoted;
  const filled: { [key: string]: Json } = {};
  for (const key of Object.keys(quoted)) setOwn(filled, key, fillReferences(quoted[key] as Json, insert));
  return filled;
}

function fillText(text: string, insert: (name: string) => Json): Json {
  if (!text.includes(secretPrefix)) return text;
  const segments = segmentsOf(text);
  const [first] = segments;
  if (segments.length === 1 && typeof first === "object") return insert(first.secret);
  return segments
    .map((segment) => {
      if (typeof segment === "string") return segment;
      const value = insert(segment.secret);
      return typeof value === "string" ? value : writeExact(value);
    })
    .join("");
}

function secretValue(text: string, secret: (name: string) => string | null): Json {
  const whole = secret(text);
  const dot = text.indexOf(".");
  if (whole !== null || dot === -1) return whole;
  const holder = secret(text.slice(0, dot));
  if (holder === null) return null;
  try {
    return readPath(parsePath(text.slice(dot + 1)), parseExact(holder) as Json);
  } catch (error) {
    // The secret is not JSON, or the path is invalid: the value is null.
    if (error instanceof SyntaxError || error instanceof PathError) return null;
    throw error;
  }
}
