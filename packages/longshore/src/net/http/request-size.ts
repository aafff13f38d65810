// Limits the values of a request, by what its action carries. Parsing blocks all other requests, so most requests may have few values.

import { type Action, actions } from "../../core/actions.ts";

export interface ValueLimits {
  /**
   * JSON values including names of members, or fields of a message. Parsed in about 5 ms; a body that fits in one read of a socket cannot
   * have more.
   */
  bodyValues: number;
  /** The limit for requests that carry inputs or outputs: a run of 100,000 small items. Parsed in 10 to 20 ms. */
  payloadValues: number;
  /** The limit for requests that carry definitions, which few callers may send: a workflow of 20,000 steps. */
  definitionValues: number;
}

export function valuesMaxOf(action: Action, limits: ValueLimits): number {
  const { carries } = actions[action];
  if (carries === "definition") return limits.definitionValues;
  return carries === "payload" ? limits.payloadValues : limits.bodyValues;
}
