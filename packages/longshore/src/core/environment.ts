// Environment variables as a dependency, and functions that read them. Options in code take precedence.

import { LongshoreError } from "./errors.ts";

/** Environment variables, such as `process.env`. */
export type Environment = { readonly [name: string]: string | undefined };

/** The value of a variable; undefined when it is absent or blank. */
export function variable(env: Environment, name: string): string | undefined {
  const value = env[name]?.trim();
  return value === "" ? undefined : value;
}

/** The result of `check` for a variable, or undefined when it is absent. An error of `check` names the variable. */
export function checkedVariable<T>(env: Environment, name: string, check: (text: string) => T): T | undefined {
  const text = variable(env, name);
  if (text === undefined) return undefined;
  try {
    return check(text);
  } catch (error) {
    if (!(error instanceof LongshoreError)) throw error;
    const detail = { ...error.detail, field: name };
    throw new LongshoreError(error.code, `The environment variable ${name}: ${error.message}`, { cause: error, detail });
  }
}

/** A whole number within bounds, or undefined when the variable is absent. */
export function wholeVariable(env: Environment, name: string, least: number, most: number): number | undefined {
  const text = variable(env, name);
  if (text === undefined) return undefined;
  const value = /^\d+$/.test(text) ? Number(text) : Number.NaN;
  if (value >= least && value <= most) return value;
  throw badVariable(name, text, `a whole number from ${least} to ${most}`);
}

export function badVariable(name: string, value: string, expected: string): LongshoreError {
  const message = `The environment variable ${name} is ${JSON.stringify(value)}, expected ${expected}.`;
  return new LongshoreError("LONGSHORE_BAD_CONFIG", message, { detail: { field: name, expected } });
}
