// How runs begin: at a start, after a delay, in their turn at a gate, or again after their end.

import type { Clock } from "../../core/clock.ts";
import type { DebounceSource } from "../../core/debounce.ts";
import { LongshoreError } from "../../core/errors.ts";
import { isSameJson } from "../../core/json/json-same.ts";
import type { CheckedLimit } from "../../core/start-limit.ts";
import type { TaskRow } from "../board/task.ts";
import { Additions, type Rows } from "../cached-rows.ts";
import type { GroupCommit } from "../commit.ts";
import type { RowStore, TableRows } from "../rows.ts";
import { runIdTable, runKeyTable, type StartKey } from "../tables/run.ts";
import type { Tx } from "../tx.ts";
import type { Decisions } from "./decisions.ts";
import type { Definitions } from "./definitions.ts";
import { gateName, limitText } from "./gate.ts";
import { WaitCircles } from "./local-circles.ts";
import { LocalDebounce } from "./local-debounce.ts";
import { Families } from "./local-families.ts";
import { type Entry, LocalGates } from "./local-gates.ts";
import { countOpenRuns, OpenRuns } from "./local-open.ts";
import type { Messages } from "./messages.ts";
import { newRun } from "./new-run.ts";
import { keyTaken, refuseUnfit } from "./refuse-input.ts";
import type { Remains } from "./remains.ts";
import { hasBegun, isRunOpen, type Run, rootFrom } from "./run.ts";
import type { NewRun, Started } from "./store.ts";

export interface LocalStartsDeps {
  readonly store: RowStore;
  readonly commit: GroupCommit;
  readonly clock: Clock;
  readonly tasks: Pick<Rows<TaskRow>, "get">;
  readonly runs: Rows<Run>;
  readonly remains: Pick<Remains, "refuse">;
  readonly definitions: Definitions;
  readonly decisions: Decisions;
  readonly messages: Pick<Messages, "childOf" | "leave">;
  readonly cancel: (tx: Tx, runId: string, reason: string) => void;
  readonly familyRunsMax?: number | undefined;
}

export class LocalStarts {
  readonly gates: LocalGates;
  readonly #deps: LocalStartsDeps;
  readonly #ids: TableRows<Pick<Run, "id">>;
  readonly #open = new OpenRuns();
  readonly #keyed: TableRows<StartKey>;
  readonly #keys: Additions<StartKey>;
  readonly #families: Families;
  readonly #debounce: LocalDebounce;
  readonly #circles: WaitCircles;

  constructor(deps: LocalStartsDeps) {
    const { store, commit, runs, definitions, cancel, messages } = deps;
    this.#deps = deps;
    this.#ids = store.table(runIdTable);
    this.#keyed = store.table(runKeyTable);
    this.#keys = new Additions(commit, (key) => this.#keyed.write(key));
    this.#families = new Families(store, deps.familyRunsMax);
    this.#debounce = new LocalDebounce({ store, commit, runs });
    this.gates = new LocalGates({
      ...{ store, commit, runs, definitions, cancel, messages },
      begin: (tx, run) => this.#beginInTurn(tx, run),
    });
    this.#circles = new WaitCircles({
      ...{ store, runs, tasks: deps.tasks },
      openBelow: (tx, rootId) => this.#families.openBelow(tx, rootId),
      gateOf: (tx, name) => this.gates.of(tx, name),
    });
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
  start(tx: Tx, wanted: NewRun): Started {
    const { runs, definitions, clock, decisions } = this.#deps;
    const earlier = this.#earlier(tx, wanted);
    if (earlier !== null) return { run: earlier, created: false };
    this.#deps.remains.refuse(tx, wanted.id);
    const definition = definitions.byId(tx, wanted.definitionId);
    if (definition === null) throw new LongshoreError("LONGSHORE_NOT_FOUND", `There is no definition ${wanted.definitionId}.`);
    const { timeoutMs, nodes, driven, inputSchema, limit, debounce } = definitions.plan(tx, definition);
    if (inputSchema !== undefined) refuseUnfit(wanted, inputSchema);
    const now = clock.now();
    if (debounce !== undefined && !hasTime(wanted)) return this.#debounced(tx, wanted, debounce, now);
    const rootId = this.#rootOf(tx, wanted);
    if (rootId !== null) this.#families.admit(tx, rootId);
    const gate = limit === undefined ? null : gateName(wanted, limit);
    const entry = gate === null || limit === undefined ? begins : this.#enter(tx, wanted, gate, limit);
    if (entry.kind === "skipped") return { run: runs.get(tx, entry.by) as Run, created: false, skipped: true };
    const turn = entry.kind === "waits" ? entry.turn : null;
    // The transaction of an event may start many runs, each of which may begin with many steps: the rest begin in transactions of their own.
    const startAt = wanted.startAt ?? (tx.isSpent && limit === undefined ? now : null);
    const begun = newRun({ ...wanted, rootId, startAt }, now, turn === null ? timeoutMs : null);
    const run = { ...begun, left: driven ? 0 : nodes.length, gate, turn };
    runs.put(tx, run.id, run, true);
    if (wanted.key) this.#keys.add(tx, { workflow: wanted.workflow, key: wanted.key, runId: run.id });
    if (hasBegun(run)) decisions.decide(tx, run, { kind: "start" });
    return { run: runs.get(tx, run.id) as Run, created: true };
  }

  /** The first of several starts makes a run that waits for the others; each of these replaces its input. */
  #debounced(tx: Tx, wanted: NewRun, debounce: DebounceSource, now: number): Started {
    const { runs, decisions } = this.#deps;
    const { periodMs, atMostMs = Number.POSITIVE_INFINITY } = debounce;
    const waiting = this.#debounce.waiting(tx, wanted, debounce);
    if (waiting === null) {
      const started = this.start(tx, { ...wanted, startAt: now + Math.min(periodMs, atMostMs) });
      this.#debounce.add(tx, wanted, debounce);
      return started;
    }
    const { input, definitionId, key, priority = 0, settings = null, variables = null } = wanted;
    const begunBy = Math.min(now + periodMs, waiting.createdAt + atMostMs);
    const replaced: Run = { ...waiting, input, definitionId, priority, settings, variables, startAt: begunBy };
    const { limit, nodes, driven } = decisions.planOf(tx, replaced);
    const gate = limit === undefined ? null : gateName(replaced, limit);
    if (gate !== null && limit !== undefined) this.gates.refuseFull(tx, gate, limit);
    if (key) this.#keys.add(tx, { workflow: wanted.workflow, key, runId: waiting.id });
    runs.put(tx, waiting.id, { ...replaced, gate, left: driven ? 0 : nodes.length }, true);
    return { run: runs.get(tx, waiting.id) as Run, created: false };
  }

  /** Called in the operation that has changed a run with a start limit or a delay, with the run as it was. */
  counted(tx: Tx, before: Run): void {
    this.gates.changed(tx, before);
    const run = before.startAt === null ? null : this.#deps.runs.get(tx, before.id);
    if (run === null || isRunOpen(run.state)) return;
    const { debounce } = this.#deps.decisions.planOf(tx, run);
    if (debounce !== undefined) this.#debounce.remove(tx, run, debounce);
  }

  /** The delay of the run is over. */
  begin(tx: Tx, run: Run): void {
    const { runs, decisions } = this.#deps;
    const { limit, debounce } = decisions.planOf(tx, run);
    if (debounce !== undefined) this.#debounce.remove(tx, run, debounce);
    const entry = run.gate === null || limit === undefined ? begins : this.gates.enter(tx, run.id, run.gate, limit);
    if (entry.kind === "begins") return this.#begin(tx, run);
    if (entry.kind === "waits") return runs.put(tx, run.id, { ...run, startAt: null, turn: entry.turn });
    decisions.decide(tx, run, { kind: "cancel", error: `skipped because run ${entry.by} is open: ${ruleOf(run, limit)}` });
  }

  /** Gives a run that begins another life the gate of its new input. Throws LONGSHORE_CONFLICT when the limit of its workflow is reached. */
  again(tx: Tx, run: Run): Run {
    const { limit } = this.#deps.decisions.planOf(tx, run);
    const gate = limit === undefined ? null : gateName(run, limit);
    if (gate === run.gate && gate === null) return run;
    const again = gate === run.gate ? run : { ...run, gate };
    const { open = [] } = gate === null ? {} : this.gates.of(tx, gate);
    if (limit === undefined || open.length < limit.runs) return again;
    const message = `Run ${open[0]} is open (${ruleOf(again, limit)}): wait for its end, or cancel it.`;
    throw new LongshoreError("LONGSHORE_CONFLICT", message, { detail: { run: open[0] as string } });
  }

  /** An open run of this workflow. */
  #openRun(tx: Tx, workflow: string): Run | null {
    const { runs } = this.#deps;
    const fresh = runs.pending(tx).find((run) => run.workflow === workflow && isRunOpen(run.state));
    if (fresh !== undefined) return fresh;
    if (!this.#open.has(workflow)) return null;
    // Usually the first one is open; others follow only when this batch has ended it.
    for (let above: string[] | undefined; ; ) {
      const scan = { by: ["workflow", "id"], equal: [workflow], without: "ended_at", above, limit: 1 };
      const [found] = this.#ids.scan(tx, scan);
      if (found === undefined) return null;
      const run = runs.get(tx, found.id);
      if (run !== null && isRunOpen(run.state)) return run;
      above = [found.id];
    }
  }

  /** A run with a delay enters the gate when the delay is over. Throws LONGSHORE_LIMIT before anything has changed. */
  #enter(tx: Tx, wanted: NewRun, gate: string, limit: CheckedLimit): Entry {
    const { id, parentTaskId = null, startAt = null } = wanted;
    this.gates.refuseFull(tx, gate, limit);
    if (parentTaskId !== null) this.#refuseCircle(tx, parentTaskId, gate, limit);
    if (startAt !== null) return begins;
    const entry = this.gates.enter(tx, id, gate, limit);
    if (entry.kind === "skipped" && parentTaskId !== null)
      throw new LongshoreError(
        "LONGSHORE_LIMIT",
        `it was skipped because run ${entry.by} is open: ${limitText({ name: gate, runs: limit.runs })}`,
      );
    return entry;
  }

  /** Throws LONGSHORE_LIMIT when a child run of this step would wait without end, or would cancel a run that waits for it. */
  #refuseCircle(tx: Tx, parentTaskId: string, gate: string, { runs, overlap }: CheckedLimit): void {
    const { open } = this.gates.of(tx, gate);
    if (open.length < runs || overlap === "skip") return;
    const above = this.#circles.ancestors(tx, parentTaskId);
    const cancelled = overlap === "queue" ? undefined : open.slice(0, open.length + 1 - runs).find((id) => above.has(id));
    const stuck = overlap === "queue" ? this.#circles.closing(tx, parentTaskId, gate, runs) : undefined;
    if (cancelled === undefined && stuck === undefined) return;
    const what = cancelled === undefined ? `wait for run ${stuck}` : `cancel run ${cancelled}`;
    throw new LongshoreError("LONGSHORE_LIMIT", `it would ${what}, which waits for it: ${limitText({ name: gate, runs })}`);
  }

  /** A paused run takes its turn, and begins when it is resumed, as after a delay. */
  #beginInTurn(tx: Tx, run: Run): void {
    const { runs, clock } = this.#deps;
    if (run.state === "paused") runs.put(tx, run.id, { ...run, turn: null, startAt: clock.now() }, true);
    else this.#begin(tx, run);
  }

  #begin(tx: Tx, run: Run): void {
    const { runs, clock, decisions } = this.#deps;
    const { timeoutMs } = decisions.planOf(tx, run);
    const now = clock.now();
    const begun: Run = { ...run, startAt: null, turn: null, countedFrom: now, endBy: timeoutMs === null ? null : now + timeoutMs };
    // The name of the gate is written only with the whole row.
    runs.put(tx, run.id, begun, run.turn !== null && run.gate === null);
    decisions.decide(tx, begun, { kind: "start" });
  }

  #rootOf(tx: Tx, { rootId, parentTaskId }: NewRun): string | null {
    const { tasks, runs } = this.#deps;
    if (rootId !== undefined || parentTaskId == null) return rootId ?? null;
    const parentId = tasks.get(tx, parentTaskId)?.runId ?? null;
    return parentId === null ? null : rootFrom(runs.get(tx, parentId) ?? { id: parentId, rootId: null });
  }

  /** The existing run that an id, a key, a parent or `unlessRunning` finds, in this batch or before it. */
  #earlier(tx: Tx, wanted: NewRun): Run | null {
    const { runs, messages } = this.#deps;
    const same = wanted.unlessThere ? runs.get(tx, wanted.id) : null;
    if (same !== null) return same;
    if (wanted.key) {
      const pending = this.#keys.pending(tx).findLast((row) => row.workflow === wanted.workflow && row.key === wanted.key)?.runId;
      const id = pending ?? this.#keyed.get(tx, wanted.workflow, wanted.key)?.runId;
      const keyed = id === undefined ? undefined : runs.get(tx, id);
      const isOther = keyed != null && wanted.sameInput && !isSameJson(keyed.input, wanted.input);
      // A further start has replaced the input of a debounced run.
      if (isOther && this.#deps.decisions.planOf(tx, keyed).debounce === undefined) throw keyTaken(wanted.key, keyed);
      if (keyed != null && (!wanted.keyWhileOpen || isRunOpen(keyed.state))) return keyed;
    }
    if (wanted.parentTaskId) {
      const child = messages.childOf(tx, wanted.parentTaskId, wanted.parentAttempt ?? 0);
      if (child !== null) return child;
    }
    return wanted.unlessRunning ? this.#openRun(tx, wanted.workflow) : null;
  }
}

/** Whether the start has a time of its own, and is not debounced. */
function hasTime({ startAt, parentTaskId, atOnce, rerunOf }: NewRun): boolean {
  return startAt != null || parentTaskId != null || atOnce === true || rerunOf !== undefined;
}

const begins: Entry = { kind: "begins" };

function ruleOf({ gate }: Run, limit: CheckedLimit | undefined): string {
  return gate === null || limit === undefined ? "" : limitText({ name: gate, runs: limit.runs });
}
