// Renewals of holds. Most change only memory: between batches, memory is the committed state.

import type { Clock } from "../../core/clock.ts";
import { isTransient } from "../../core/errors.ts";
import type { Verdict } from "../../core/verdict.ts";
import type { Rows } from "../cached-rows.ts";
import type { GroupCommit } from "../commit.ts";
import type { Tx } from "../tx.ts";
import { begun, termOf } from "./ready-queues.ts";
import type { Extending, Extension } from "./store.ts";
import { cell, fence, type Hold, type ReportVerb, type TaskRow, type Verb } from "./task.ts";
import { copyOf } from "./task-copy.ts";

/** A report of a worker, as the fence checks it. */
export interface Fenced {
  readonly hold: Hold;
  readonly verb: ReportVerb;
  readonly now: number;
  readonly closedBy?: (grant: number) => Verb | null;
}

export interface RenewalDeps {
  readonly tasks: Rows<TaskRow>;
  readonly commit: GroupCommit;
  readonly clock: Clock;
  fence(tx: Tx, task: TaskRow | undefined, fenced: Fenced): Verdict | "current";
}

export class LocalRenewals {
  readonly #deps: RenewalDeps;

  constructor(deps: RenewalDeps) {
    this.#deps = deps;
  }

  extend(hold: Hold, options: Extending): Promise<Extension> {
    const { commit, clock } = this.#deps;
    const plain = options.output === undefined;
    const renewed = plain ? this.#renewInMemory(hold, { lately: true, termMs: options.termMs }) : null;
    if (renewed !== null) return Promise.resolve(renewed);
    const written = commit.run((tx) => this.#extendNow(tx, hold, options, clock.now()));
    if (!plain) return written;
    // A full disk must not end the holds of healthy workers. After a restart, the hold would get its full term as well.
    return written.catch((error: unknown) => {
      const unwritten = isTransient(error) ? this.#renewInMemory(hold, { lately: false }) : null;
      if (unwritten === null) throw error;
      return unwritten;
    });
  }

  /**
   * Returns null when the renewal needs an operation: the task does not have this hold, or gets another term. Also, with `lately`, when its
   * last written renewal is too old.
   */
  #renewInMemory(hold: Hold, { lately, termMs }: { lately: boolean; termMs?: number }): Extension | null {
    const { tasks, clock } = this.#deps;
    const now = clock.now();
    const task = tasks.kept(hold.taskId);
    if (task?.state !== "held" || task.holdUntil === null) return null;
    if (termMs !== undefined && termOf(task, termMs) !== task.termMs) return null;
    if (lately && now - (task.holdUntil - task.termMs) >= task.termMs / 3) return null;
    if (fence(task, hold, "extend", now, () => null) !== "current") return null;
    const renewed = copyOf(task);
    const holdUntil = now + task.termMs;
    renewed.holdUntil = holdUntil;
    return tasks.refresh(task.id, renewed) ? { verdict: "ok", holdUntil } : null;
  }

  #extendNow(tx: Tx, hold: Hold, options: Extending, now: number): Extension {
    const { tasks } = this.#deps;
    const task = tasks.get(tx, hold.taskId) ?? undefined;
    const verdict = this.#deps.fence(tx, task, { hold, verb: "extend", now });
    if (verdict !== "current" || task === undefined) return { verdict: verdict as Verdict, holdUntil: null };
    const next = cell(task.state, "extend");
    if (next?.to === "same") return { verdict: next.verdict, holdUntil: task.holdUntil };
    const termMs = options.termMs === undefined || task.state === "queued" ? task.termMs : termOf(task, options.termMs);
    const holdUntil = task.state === "queued" || termMs === 0 ? null : now + termMs;
    const taken = task.state === "offered" ? begun(task, now) : task;
    const holder = task.state === "queued" ? null : (task.holder ?? options.holder ?? null);
    tasks.put(tx, task.id, { ...taken, termMs, holdUntil, holder, output: options.output ?? task.output });
    return { verdict: "ok", holdUntil };
  }
}
