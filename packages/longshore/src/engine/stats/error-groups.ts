// Groups the errors of runs that ended in the last seven days by what they have in common. The groups are in memory, and each has a count
// for every hour.

import { isRunOpen, type RunState } from "../run/run.ts";
import { fingerprint, firstLine } from "./fingerprint.ts";

export const hourMs = 3_600_000;
/** Seven days. */
export const hoursKept: number = 7 * 24;
/** Groups in memory. When there are more, the group with the oldest last error is dropped. */
const groupsMax = 500;
/** Names of workflows that a group remembers. */
const workflowsMax = 20;

/** A run that has ended. */
export interface FailedRun {
  readonly id: string;
  readonly workflow: string;
  readonly state: RunState;
  readonly error: string | null;
  readonly endedAt: number | null;
}

export interface ErrorGroup {
  readonly group: string;
  /** The first line of the newest error. */
  readonly error: string;
  readonly count: number;
  readonly firstAt: number;
  readonly lastAt: number;
  readonly workflows: readonly string[];
  /** The newest run. */
  readonly runId: string;
}

interface Group {
  error: string;
  firstAt: number;
  lastAt: number;
  runId: string;
  readonly workflows: Set<string>;
  readonly hours: Uint32Array;
  /** The newest hour, since the epoch. */
  hour: number;
}

export class ErrorGroups {
  readonly #groups = new Map<string, Group>();

  add(run: FailedRun): void {
    const { error, endedAt } = run;
    if (error === null || endedAt === null || isRunOpen(run.state) || run.state === "succeeded" || run.state === "cancelled") return;
    const group = this.#groupOf(fingerprint(error), endedAt);
    const hour = hourOf(endedAt);
    for (let each = Math.max(group.hour + 1, hour - hoursKept + 1); each <= hour; each++) group.hours[each % hoursKept] = 0;
    group.hour = Math.max(group.hour, hour);
    if (hour > group.hour - hoursKept) group.hours[hour % hoursKept] = (group.hours[hour % hoursKept] as number) + 1;
    if (group.workflows.size < workflowsMax) group.workflows.add(run.workflow);
    group.firstAt = Math.min(group.firstAt, endedAt);
    if (endedAt < group.lastAt) return;
    group.lastAt = endedAt;
    group.runId = run.id;
    group.error = firstLine(error);
  }

  /** Groups with an error in the last hours, the newest first. An hour that has begun counts completely. */
  groups(now: number, hours: number): ErrorGroup[] {
    const found: ErrorGroup[] = [];
    const first = hourOf(now) - hours + 1;
    for (const [group, { error, firstAt, lastAt, runId, workflows, ...kept }] of this.#groups) {
      let count = 0;
      for (let hour = Math.max(first, kept.hour - hoursKept + 1); hour <= kept.hour; hour++)
        count += kept.hours[hour % hoursKept] as number;
      if (count > 0) found.push({ group, error, count, firstAt, lastAt, workflows: [...workflows], runId });
    }
    return found.sort((a, b) => b.lastAt - a.lastAt);
  }

  #groupOf(name: string, at: number): Group {
    const known = this.#groups.get(name);
    if (known !== undefined) return known;
    if (this.#groups.size >= groupsMax) this.#makeRoom();
    const kept = { workflows: new Set<string>(), hours: new Uint32Array(hoursKept) };
    const group: Group = { error: "", firstAt: at, lastAt: 0, runId: "", ...kept, hour: hourOf(at) };
    this.#groups.set(name, group);
    return group;
  }

  #makeRoom(): void {
    let oldest: [string, number] | undefined;
    for (const [name, { lastAt }] of this.#groups) if (oldest === undefined || lastAt < oldest[1]) oldest = [name, lastAt];
    if (oldest !== undefined) this.#groups.delete(oldest[0]);
  }
}

function hourOf(at: number): number {
  return Math.floor(at / hourMs);
}
