// Turns a command of a durable function into a task of the board: its lane, its times, and the definitions that it brings.

import type { Command } from "../../core/turn.ts";
import type { Placement } from "./plan.ts";
import { tryOnce } from "./retry.ts";
import type { StartRun } from "./run.ts";
import { stepPlacement } from "./step-placement.ts";

export function wakeAtOf({ until, forMs }: Command, now: number): number {
  return Math.max(forMs === undefined ? (until ?? 0) : now + forMs, now + 1);
}

export function definesOf({ defines }: Command): Pick<StartRun, "defines"> {
  return defines === undefined ? {} : { defines };
}

export function workPlacement(command: Command): Placement {
  const { name, timeoutMs, totalMs, claimMs: claim } = command;
  return { ...stepPlacement(name, command), timeouts: { endMs: timeoutMs, totalMs, claimMs: claim } };
}

/** A command that no worker takes waits without a lane. */
export function waitPlacement(totalMs: number | undefined): Placement {
  return { lanes: [], priority: 0, retry: tryOnce, limits: [], timeouts: { totalMs } };
}
