// The environment variables by which an orchestrator tells a worker where its work is; for workers that it starts itself it sets them. What
// the code says goes before them: an address in the code is meant.

import { LongshoreError } from "../../errors.ts";

export type Environment = { readonly [name: string]: string | undefined };

/** The value of a variable; blank counts as absent. */
export function textOf(env: Environment, name: string): string | undefined {
  const value = env[name]?.trim();
  return value === "" ? undefined : value;
}

/** A whole number within bounds, or undefined when the variable is absent. */
export function wholeOf(env: Environment, name: string, least: number, most: number): number | undefined {
  const text = textOf(env, name);
  if (text === undefined) return undefined;
  const value = /^\d+$/.test(text) ? Number(text) : Number.NaN;
  if (value >= least && value <= most) return value;
  throw badVariable(name, text, `a whole number from ${least} to ${most}`);
}

/** The transport that the environment asks for. Undefined when it says nothing. */
export function transportIn(env: Environment): "grpc" | "nats" | "http" | undefined {
  const told = textOf(env, "STEPFLOW_TRANSPORT");
  switch (told?.toLowerCase()) {
    case "grpc":
      return "grpc";
    case "nats":
      return "nats";
    case "http":
      return "http";
    case undefined:
      if (textOf(env, "STEPFLOW_TASKS_URL") !== undefined) return "grpc";
      return textOf(env, "STEPFLOW_NATS_URL") === undefined ? undefined : "nats";
    default:
      throw badVariable("STEPFLOW_TRANSPORT", told as string, "grpc, nats or http");
  }
}

function badVariable(name: string, value: string, expected: string): LongshoreError {
  const message = `The environment variable ${name} is ${JSON.stringify(value)}, expected ${expected}.`;
  return new LongshoreError("LONGSHORE_BAD_CONFIG", message, { detail: { field: name, expected } });
}
