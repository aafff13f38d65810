// Checks what runs may know about each other. A message about an earlier life must never end a run that was restarted. Every decision is
// compared with the other run's row on disk.

import { isOpen, type TaskRow } from "../../src/engine/board/task.ts";
import type { RunEvent } from "../../src/engine/run/decide.ts";
import type { Plan } from "../../src/engine/run/plan.ts";
import { isRunOpen, type Run, taskIdOf } from "../../src/engine/run/run.ts";
import type { Brain } from "../../src/engine/run/store.ts";
import { broken } from "./simulation-model.ts";

export class Lives {
  readonly #runs = new Map<string, { life: number; since: number }>();
  readonly #children = new Map<string, Run>();
  /** The newest attempt of each record, the commit in which an attempt last ended or may have, and the attempts that have ended now. */
  readonly #attempts = new Map<string, number>();
  readonly #endedIn = new Map<string, number>();
  readonly #ended = new Set<string>();
  /** The life in which the child of a record had ended when the record began to wait for it again. */
  readonly #waitedAgain = new Map<string, number>();
  #commits = 0;
  /** Called when a child has begun another life. */
  revived: (run: Run) => void = () => {};

  /** Rows that a commit has changed follow. */
  nextCommit(): void {
    this.#commits++;
  }

  run(run: Run): void {
    if (this.#runs.get(run.id)?.life !== run.retries) {
      this.#runs.set(run.id, { life: run.retries, since: this.#commits });
      if (run.parentTaskId !== null && run.retries > 0) this.revived(run);
    }
    if (run.parentTaskId !== null) this.#children.set(childKey(run.parentTaskId, run.parentAttempt), run);
  }

  task({ id, lane, state, attempt }: TaskRow): void {
    if (lane !== null) return;
    const isKnown = this.#attempts.get(id) === attempt;
    this.#attempts.set(id, attempt);
    const key = childKey(id, attempt);
    // A record that ended, waited again and ended again in one commit only shows that it was written. So does one that waited before and after.
    if (!isOpen(state)) {
      this.#endedIn.set(key, this.#commits);
      this.#ended.add(key);
    } else if (this.#ended.delete(key)) {
      const child = this.#children.get(key);
      if (child !== undefined && !isRunOpen(child.state)) this.#waitedAgain.set(key, child.retries);
    } else if (isKnown) this.#endedIn.set(key, this.#commits);
  }

  /** A decider with checks. Faults are passed to `failed`, because nothing may throw in the middle of a commit. */
  watch(brain: Brain, failed: (error: unknown) => void): Brain {
    return {
      plan: (definition) => brain.plan(definition),
      planInTurns: (definition) => brain.planInTurns(definition),
      decide: (plan, frontier, event) => {
        const wrong = this.#endOfChild(plan, frontier.run, event) ?? this.#endOfParent(frontier.run, event);
        if (wrong !== null) failed(broken(wrong));
        return brain.decide(plan, frontier, event);
      },
    };
  }

  /**
   * A run gets the end of its child only while the child has ended. It does not get the end of a life after which it began to wait for the
   * next one.
   */
  #endOfChild(plan: Plan, run: Run, event: RunEvent): string | null {
    const told =
      event.kind === "done" || (event.kind === "closed" && event.closure.kind === "failed") || (event.kind === "ended" && event.fault);
    if (!told || !("node" in event) || plan.nodes[event.node]?.kind !== "run") return null;
    const taskId = taskIdOf(run.id, event.node);
    const key = childKey(taskId, this.#attempts.get(taskId) ?? 0);
    const child = this.#children.get(key);
    if (child === undefined) return null;
    const isOld = child.state !== "succeeded" && child.retries === this.#waitedAgain.get(key);
    if (!isRunOpen(child.state) && !isOld) return null;
    return `run ${run.id} was told that ${child.id} has ended, which is ${child.state} in life ${child.retries}`;
  }

  /**
   * A run is stopped because of its parent only when something happened to the parent's step in the run's own life. The step may wait again
   * already: then it waits for the next life.
   */
  #endOfParent({ id, retries, parentTaskId, parentAttempt }: Run, event: RunEvent): string | null {
    if (event.kind !== "cancel" || event.parent === undefined || parentTaskId === null) return null;
    const life = this.#runs.get(id);
    const endedIn = this.#endedIn.get(childKey(parentTaskId, parentAttempt)) ?? 0;
    if (retries === 0 || (life?.life === retries && endedIn >= life.since)) return null;
    return `run ${id} was cancelled in life ${retries} by what had happened to ${parentTaskId} before that life`;
  }
}

function childKey(parentTaskId: string, attempt: number): string {
  return `${parentTaskId}/${attempt}`;
}
