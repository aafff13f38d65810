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
   * Hands out no more tasks of this lane; tasks that are held continue. Changes nothing when the lane is paused already. Returns undefined
   * when the request was performed before and the pause has ended since.
   */
  pause(lane: Lane, order: HaltOrder): Promise<Halt | undefined>;
  /** Ends the pause: claims that wait get the tasks of the lane. Returns false when it was not paused. */
  resume(lane: Lane): Promise<boolean>;
  paused(): readonly (readonly [lane: Lane, halt: Halt])[];
  pauseOf(lane: Lane): Halt | undefined;
  /** Claims of this worker get nothing; the tasks that it holds continue. Returns undefined as above. */
  cordon(worker: string, order: HaltOrder): Promise<Halt | undefined>;
  uncordon(worker: string): Promise<boolean>;
  cordonOf(worker: string): Halt | undefined;
  /** Must be called once: `changed` is called after a worker was cordoned, or is no longer. */
  onCordon(changed: (worker: string) => void): void;
}
