// States that may last until a person does something.

import type { Queue } from "./api.ts";

type Waiting = NonNullable<Queue["waiting"]>;

/** There is no worker, or none can be reached. All other reasons to wait end by themselves. */
export function isStuck(waiting: Waiting | null | undefined): waiting is Waiting {
  return waiting?.reason === "no-worker" || waiting?.reason === "unreachable";
}
