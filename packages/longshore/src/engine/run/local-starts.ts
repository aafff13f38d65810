// Starts runs. A start whose key, id or parent belongs to an earlier run returns that run.

import type { Clock } from "../../core/clock.ts";
import { LongshoreError } from "../../core/errors.ts";
import { isSameJson } from "../../core/json/json-same.ts";
import type { TaskRow } from "../board/task.ts";
import { Additions, type Rows } from "../cached-rows.ts";
import type { GroupCommit } from "../commit.ts";
import type { RowStore, TableRows } from "../rows.ts";
import { runIdTable, runKeyTable, type StartKey } from "../tables/run.ts";
import type { Tx } from "../tx.ts";
import type { Decisions } from "./decisions.ts";
import type { Definitions } from "./definitions.ts";
import { Families } from "./local-families.ts";
import { countOpenRuns, OpenRuns } from "./local-open.ts";
import type { Messages } from "./messages.ts";
import { newRun } from "./new-run.ts";
import { keyTaken, refuseUnfit } from "./refuse-input.ts";
import { isRunOpen, type Run } from "./run.ts";
import type { NewRun } from "./store.ts";

export interface LocalStartsDeps {
  readonly store: RowStore;
  readonly commit: GroupCommit;
  readonly clock: Clock;
  readonly tasks: Pick<Rows<TaskRow>, "get">;
  readonly runs: Rows<Run>;
  readonly definitions: Pick<Definitions, "byId" | "plan">;
  readonly decisions: Pick<Decisions, "decide" | "planOf">;
  readonly messages: Pick<Messages, "childOf">;
  /** Maximum number of open runs below one root. */
  readonly familyRunsMax?: number | undefined;
}

export class LocalStarts {
  readonly #deps: LocalStartsDeps;
  readonly #ids: TableRows<Pick<Run, "id">>;
  readonly #open = new OpenRuns();
  readonly #keyed: TableRows<StartKey>;
  readonly #keys: Additions<StartKey>;
  readonly #families: Families;

  constructor(deps: LocalStartsDeps) {
    this.#deps = deps;
    this.#ids = deps.store.table(runIdTable);
    this.#keyed = deps.store.table(runKeyTable);
    this.#keys = new Additions(deps.commit, (key) => this.#keyed.insert([key]));
    this.#families = new Families(deps.store, deps.familyRunsMax);
  }

  recover(): Promise<void> {
    return countOpenRuns(this.#deps.store, this.#deps.commit, (workflow, _state, count) => this.#open.add(workflow, count));
  }

  /** Must be called for each run that a commit changed, with the run before that commit. */
  changed(run: Run, before: Run | undefined): void {
    this.#families.changed(run, before);
    this.#open.changed(run, before);
  }

  /** Starts a run in the operation of the caller, which has checked the texts of `wanted`. */
  start(tx: Tx, wanted: NewRun): { run: Run; created: boolean } {
    const earlier = this.#earlier(tx, wanted);
    if (earlier !== null) return { run: earlier, created: false };
    const definition = this.#deps.definitions.byId(tx, wanted.definitionId);
    if (definition === null) throw new LongshoreError("LONGSHORE_NOT_FOUND", `There is no definition ${wanted.definitionId}.`);
    const { timeoutMs, nodes, driven, inputSchema } = this.#deps.definitions.plan(tx, definition);
    if (inputSchema !== undefined) refuseUnfit(wanted, inputSchema);
    const now = this.#deps.clock.now();
    const rootId = this.#rootOf(tx, wanted);
    if (rootId !== null) this.#families.admit(tx, rootId);
    const run = { ...newRun({ ...wanted, rootId }, now, timeoutMs), left: driven ? 0 : nodes.length };
    this.#deps.runs.put(tx, run.id, run, true);
    if (wanted.key) this.#keys.add(tx, { workflow: wanted.workflow, key: wanted.key, runId: run.id });
    if (run.startAt === null) this.#deps.decisions.decide(tx, run, { kind: "start" });
    return { run: this.#deps.runs.get(tx, run.id) as Run, created: true };
  }

  /** Begins a run whose delay is over. */
  begin(tx: Tx, run: Run): void {
    const { timeoutMs } = this.#deps.decisions.planOf(tx, run);
    const now = this.#deps.clock.now();
    const begun: Run = { ...run, startAt: null, countedFrom: now, endBy: timeoutMs === null ? null : now + timeoutMs };
    this.#deps.runs.put(tx, run.id, begun);
    this.#deps.decisions.decide(tx, begun, { kind: "start" });
  }

  #rootOf(tx: Tx, { rootId, parentTaskId }: NewRun): string | null {
    if (rootId !== undefined || parentTaskId == null) return rootId ?? null;
    const parentId = this.#deps.tasks.get(tx, parentTaskId)?.runId ?? null;
    return parentId === null ? null : (this.#deps.runs.get(tx, parentId)?.rootId ?? parentId);
  }

  /** The existing run that an id, a key, a parent or `unlessRunning` finds, in this batch or before it. */
  #earlier(tx: Tx, wanted: NewRun): Run | null {
    const same = wanted.unlessThere ? this.#deps.runs.get(tx, wanted.id) : null;
    if (same !== null) return same;
    if (wanted.key) {
      const pending = this.#keys.pending(tx).find((row) => row.workflow === wanted.workflow && row.key === wanted.key)?.runId;
      const id = pending ?? this.#keyed.get(tx, wanted.workflow, wanted.key)?.runId;
      const keyed = id === undefined ? undefined : this.#deps.runs.get(tx, id);
      if (keyed != null && wanted.sameInput && !isSameJson(keyed.input, wanted.input)) throw keyTaken(wanted.key, keyed);
      if (keyed !== undefined) return keyed;
    }
    if (wanted.parentTaskId) {
      const child = this.#deps.messages.childOf(tx, wanted.parentTaskId, wanted.parentAttempt ?? 0);
      if (child !== null) return child;
    }
    return wanted.unlessRunning ? this.#openRun(tx, wanted.workflow) : null;
  }

  /** An open run of this workflow. */
  #openRun(tx: Tx, workflow: string): Run | null {
    const fresh = this.#deps.runs.pending(tx).find((run) => run.workflow === workflow && isRunOpen(run.state));
    if (fresh !== undefined) return fresh;
    if (!this.#open.has(workflow)) return null;
    // Usually the first one is open; others follow only when this batch has ended it.
    for (let above: string[] | undefined; ; ) {
      const scan = { by: ["workflow", "id"], equal: [workflow], without: "ended_at", above, limit: 1 };
      const [found] = this.#ids.scan(tx, scan);
      if (found === undefined) return null;
      const run = this.#deps.runs.get(tx, found.id);
      if (run !== null && isRunOpen(run.state)) return run;
      above = [found.id];
    }
  }
}
