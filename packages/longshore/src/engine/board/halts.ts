// What an operator holds back: lanes that are paused, and workers that get no more tasks. Durable, until the operator ends it.

import type { Lane } from "./task.ts";

export interface Halt {
  readonly reason: string | null;
  /** The name of the token that ordered it; null without tokens. */
  readonly by: string | null;
  readonly at: number;
}

export type HaltOrder = Pick<Halt, "reason" | "by">;

export interface Halts {
  /**
   * Tasks of this lane are handed out no more; those that are held continue. A lane that is paused already stays as it is. Undefined when the
   * request was performed before, and the pause has been ended since.
   */
  pause(lane: Lane, order: HaltOrder): Promise<Halt | undefined>;
  /** Claims that wait get the tasks of the lane. False when it was not paused. */
  resume(lane: Lane): Promise<boolean>;
  paused(): readonly (readonly [lane: Lane, halt: Halt])[];
  pauseOf(lane: Lane): Halt | undefined;
  /** Claims of this worker get nothing; what it holds continues. Undefined as above. */
  cordon(worker: string, order: HaltOrder): Promise<Halt | undefined>;
  uncordon(worker: string): Promise<boolean>;
  cordonOf(worker: string): Halt | undefined;
  /** Must be called once: `changed` is called after a worker was cordoned, or is no longer. */
  onCordon(changed: (worker: string) => void): void;
}
