// Another life of a run that has ended: which records and counters it keeps, and which nodes start.

import type { TaskRow } from "../board/task.ts";
import type { Draft } from "./draft.ts";
import type { Joins } from "./joins.ts";
import { countsAlways, requiredOf } from "./plan.ts";
import { recordHeads } from "./records-view.ts";
import { dueIn } from "./remaining-work.ts";
import { backlogOf } from "./run.ts";
import type { Skips } from "./skips.ts";

/** `from`: the step of a rerun, with its input. `reopen`: the step whose child run lives again. */
export interface Again {
  readonly from?: number;
  readonly input?: string;
  readonly reopen?: number;
}

interface Restarted {
  readonly start: readonly number[];
  readonly records: ReadonlyMap<number, TaskRow>;
}

export class NextLife {
  readonly #draft: Draft;
  readonly #joins: Joins;
  readonly #skips: Skips;

  constructor(draft: Draft, joins: Joins, skips: Skips) {
    this.#draft = draft;
    this.#joins = joins;
    this.#skips = skips;
  }

  /** All steps start as if there had been no life before. Returns false when the rows must be loaded first. */
  restart(): boolean {
    const records = this.#draft.frontier.records();
    if (records === undefined) {
      this.#draft.need.all = true;
      return false;
    }
    this.#draft.spendOnRecords(records.size);
    for (const [node, task] of recordHeads(records)) if (task.state !== "forgotten") this.#draft.forget(node);
    this.#draft.plan.nodes.forEach((node, at) => {
      const counts = countsAlways(node) || (this.#draft.plan.lazy && node.demanded);
      if (counts) this.#joins.set(at, { left: requiredOf(node), begun: false, missed: 0 });
    });
    this.#skips.clear();
    // This is a new start, not a retry: its time counts from the beginning of the run, however much later this is decided.
    this.#draft.revive({ skips: null, backlog: null, recorded: 0, countedFrom: this.#draft.run.createdAt });
    return true;
  }

  /**
   * Makes the records ready for a retry. Returns the nodes that start, or "begin" when the run starts from its beginning. Returns null when
   * rows must be loaded first.
   */
  again(how: Again): "begin" | Restarted | null {
    const records = this.#draft.frontier.records();
    if (records === undefined) {
      this.#draft.need.all = true;
      return null;
    }
    // The run ended before it had begun, so there is nothing to keep.
    if (records.size === 0 && how.from === undefined) return this.restart() ? "begin" : null;
    const begun = this.#begunBefore();
    if (begun === null) return null;
    if (how.from !== undefined) this.#unskip(how.from);
    const due = dueIn(this.#draft.run, this.#draft.plan);
    const { from, reopen } = how;
    const options = { from, reopen, skips: this.#skips, begun: new Set([...begun, ...due]), due };
    const again = this.#draft.frontier.restart(options);
    if (again === undefined) {
      this.#draft.need.restart = options;
      return null;
    }
    this.#draft.spendOnRecords(records.size);
    this.#skips.leave(again.all);
    this.#draft.revive({ backlog: null, skips: this.#skips.text });
    this.#draft.update({ left: again.all.size });
    for (const node of again.permitted) {
      const { error, fault, overdue, attempt } = records.get(node) as TaskRow;
      this.#draft.countFailure(node, { state: "failed", error, fault, overdue, attempt });
    }
    for (const node of again.forget) this.#draft.forget(node);
    // The named step starts as if it had never been tried; a join only waits again.
    const kept = [...again.forget, ...again.reopen];
    if (how.from !== undefined && records.has(how.from) && !kept.includes(how.from)) this.#draft.forget(how.from);
    this.#endJoins(again.all);
    for (const [node, counter] of again.joins) this.#joins.set(node, counter);
    for (const node of again.reopen) this.#draft.reopen(node, again.passed.has(node));
    return { start: again.start, records };
  }

  /** Removes the wait of joins that a report ended during a pause. The run ended before it handled the report. */
  #endJoins(all: ReadonlySet<number>): void {
    for (const { node } of backlogOf(this.#draft.frontier.run))
      if (node !== undefined && this.#draft.plan.nodes[node]?.kind === "join" && !all.has(node))
        this.#joins.set(node, { left: -1, begun: true, missed: 0 });
  }

  /** A step that the caller names runs, although an earlier order skipped it. So do the steps that were skipped together with it. */
  #unskip(node: number): void {
    const { nodes, starters } = this.#draft.plan;
    const before = (starters.get(node) ?? []).filter((at) => nodes[at]?.skipsWith?.includes(node));
    const all = [node, ...(nodes[node]?.skipsWith ?? []), ...before];
    if (all.filter((at) => this.#skips.delete(at)).length > 0) this.#draft.update({ skips: this.#skips.text });
  }

  /** The nodes that were wanted in the run's last life; null when they have to be loaded first. */
  #begunBefore(): ReadonlySet<number> | null {
    const { plan, frontier, need } = this.#draft;
    const begun = new Set<number>();
    if (!plan.lazy) return begun;
    plan.nodes.forEach((node, at) => {
      if (!node.demanded) return;
      const join = frontier.join(at);
      if (join === undefined) need.joins.push(at);
      else if (join?.begun) begun.add(at);
    });
    return need.joins.length > 0 ? null : begun;
  }
}
