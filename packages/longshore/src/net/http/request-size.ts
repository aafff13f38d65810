// How many values a request may hold, by what its action carries. Reading them blocks all other requests, so most requests may hold few.

import { type Action, actions } from "../../core/actions.ts";

export interface ValueLimits {
  /** JSON values, or fields of a message, with the names of members. Read in about 5 ms; a body of one read of a socket cannot hold more. */
  bodyValues: number;
  /** The same where a request carries inputs or outputs: a run of 100,000 small items. Read in 10 to 20 ms. */
  payloadValues: number;
  /** The same where it carries definitions, which few callers may send: a workflow of 20,000 steps. */
  definitionValues: number;
}

export function valuesMaxOf(action: Action, limits: ValueLimits): number {
  const { carries } = actions[action];
  if (carries === "definition") return limits.definitionValues;
  return carries === "payload" ? limits.payloadValues : limits.bodyValues;
}
