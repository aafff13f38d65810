// Secrets stand as literals in everything that is stored, and are put in only on the way to whoever runs the task.

import { type Json, setOwn } from "../../json.ts";
import { secretPrefix } from "./expression.ts";
import { readPath } from "./json-path/evaluate.ts";
import { parsePath } from "./json-path/parse.ts";
import { PathError } from "./json-path/path-error.ts";

/** Whether a text, which may be JSON, speaks of a secret. */
export function namesSecret(text: string): boolean {
  return text.includes(`\${${secretPrefix}`);
}

/** `value` with every `${workflow.secrets.NAME}` replaced; an unknown secret becomes null. `NAME.path` reads inside a secret that is JSON. */
export function fillSecrets(value: Json, secret: (name: string) => string | null): Json {
  if (typeof value === "string") return fillSecretText(value, secret);
  if (Array.isArray(value)) return value.map((item) => fillSecrets(item, secret));
  if (typeof value !== "object" || value === null) return value;
  const filled: { [key: string]: Json } = {};
  for (const key of Object.keys(value)) setOwn(filled, key, fillSecrets(value[key] as Json, secret));
  return filled;
}

function fillSecretText(text: string, secret: (name: string) => string | null): Json {
  if (!text.includes(secretPrefix)) return text;
  const whole = /^\$\{workflow\.secrets\.([^{}]+)\}$/.exec(text);
  if (whole !== null) return secretValue(whole[1] as string, secret);
  return text.replace(/\$\{workflow\.secrets\.([^{}]+)\}/g, (_literal, name: string) => {
    const value = secretValue(name, secret);
    return typeof value === "string" ? value : JSON.stringify(value);
  });
}

function secretValue(text: string, secret: (name: string) => string | null): Json {
  const whole = secret(text);
  const dot = text.indexOf(".");
  if (whole !== null || dot === -1) return whole;
  const holder = secret(text.slice(0, dot));
  if (holder === null) return null;
  try {
    return readPath(parsePath(text.slice(dot + 1)), JSON.parse(holder) as Json);
  } catch (error) {
    // A secret that is no JSON, or a path that is none: there is nothing to hand out.
    if (error instanceof SyntaxError || error instanceof PathError) return null;
    throw error;
  }
}
