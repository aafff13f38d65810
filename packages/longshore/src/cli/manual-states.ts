// States that end only by a person's action.

import type { Queue } from "./api.ts";

type Waiting = NonNullable<Queue["waiting"]>;

/** No worker is there, or none can be reached. Everything else passes by itself. */
export function isStuck(waiting: Waiting | null | undefined): waiting is Waiting {
  return waiting?.reason === "no-worker" || waiting?.reason === "unreachable";
}
