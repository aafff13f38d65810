// Applies a worker's events about one attempt to the board: heartbeats extend the hold, batches become parts of the task, and the last
// event ends it. A worker whose attempt has ended gets a stop signal, unless it has just reported that it stopped.

import type { Json, JsonObject } from "../../../../core/json/json.ts";
import { writeExact } from "../../../../core/json/json-exact.ts";
import type { Verdict } from "../../../../core/verdict.ts";
import { type Hold, isOpen } from "../../../../engine/board/task.ts";
import type { NewPart } from "../../../../engine/part/store.ts";
import { dialectName } from "../../dialect/compile.ts";
import type { GraphNode } from "../../dialect/graph.ts";
import { backoffMsOf, type RetrySettings } from "../../dialect/retry-policy.ts";
import type { StatusEvent } from "../../wire/shapes.ts";
import { partGroups, partUidOf } from "../part-groups.ts";
import type { Place, Places, WireName } from "../task-addresses.ts";
import { type BatchRecords, judge, withDeadLetters, withFailing } from "./batches.ts";
import type { ForeignResults } from "./foreign-results.ts";
import type { InputCheck } from "./input-check.ts";
import type { LateAccepts } from "./late-accepts.ts";
import type { WireAttempt } from "./messages.ts";
import type { CoordinatorCounts, CoordinatorEngine } from "./parts.ts";
import type { Signals } from "./signals.ts";

export interface AttemptEvents extends WireAttempt {
  readonly worker_id: string;
  /** The duration of the worker's lease by its own report; null when it sent none. */
  termMs: number | null;
  readonly events: readonly AttemptEvent[];
}

export type AttemptEvent = StatusEvent | ToldBatch;

/** A finished batch, read from the beginning of its record. The rest is read only when the batch is not stored yet. */
export interface ToldBatch {
  readonly kind: "BATCH_TOLD";
  readonly batch_uid: string;
  /** Null when the rest cannot be read, which is then reported. */
  metrics(): JsonObject | null;
}

export interface AttemptsDeps extends Pick<CoordinatorEngine, "board" | "parts"> {
  readonly places: Places;
  readonly batches: BatchRecords;
  readonly late: LateAccepts;
  readonly input: InputCheck;
  readonly signals: Pick<Signals, "cancel">;
  readonly counts: CoordinatorCounts;
  readonly results?: ForeignResults | undefined;
}

type Of<Kind extends StatusEvent["kind"]> = Extract<StatusEvent, { kind: Kind }>;
type Last = Of<"TASK_DONE" | "TASK_FAILED" | "CANCELLED">;
type FullHold = Hold & { grant: number; holder: string };

/** A shorter or longer lease is a mistake of the worker's clock. */
const termMsMin = 10;
const termMsMax = 86_400_000;
/** The worker stops on request: another worker gets the task, and no attempt is counted. */
const handedBack: ReadonlySet<string> = new Set(["shutdown"]);
/** The task had begun, and it did not cause the failure: this counts as a lost worker. */
const workerLost: ReadonlySet<string> = new Set(["worker_restarted"]);

export class Attempts {
  readonly #deps: AttemptsDeps;

  constructor(deps: AttemptsDeps) {
    this.#deps = deps;
  }

  async apply(attempt: AttemptEvents): Promise<void> {
    const { counts, late } = this.#deps;
    const { task_id, node_id, attempt_epoch: epoch, worker_id: holder, events } = attempt;
    const place = await this.#deps.places.find({ task_id, node_id });
    const last = events.findLast(isLast);
    // The task may belong to another coordinator. Epochs begin with 1, so there are no events with epoch 0.
    if (place === undefined || epoch === 0) {
      counts.stale += events.length;
      return;
    }
    let hold: FullHold = { taskId: place.taskId, grant: late.grantOf(place.taskId, epoch, holder), holder };
    let verdict = await this.#extend(hold, attempt.termMs);
    const grant = verdict === "stale" ? await this.#lateGrant(attempt, place, last) : null;
    if (grant !== null) {
      hold = { ...hold, grant };
      verdict = await this.#extend(hold, attempt.termMs);
      if (verdict === "ok") await late.keep(place.taskId, { epoch, holder, grant });
    }
    if (last !== undefined) late.ended(place.taskId, epoch);
    if (verdict !== "ok" && verdict !== "cancel") {
      counts.stale += events.length;
      return this.#stop(attempt, place, last, verdict === "busy" ? "another worker has it" : "this attempt is over");
    }
    if (verdict === "ok") await this.#keepBatches(hold, events);
    if (last === undefined) return;
    if (verdict === "ok" && last.kind === "TASK_DONE") await this.#done(hold, place, last, attempt);
    else await this.#end(hold, place, last);
  }

  /**
   * The newest offer, if a worker may take it over although its own attempt has expired: it still works, and no worker has claimed the
   * newest offer. Null otherwise. Only workers of other implementations need this; ours notice that they are late.
   */
  async #lateGrant({ attempt_epoch: epoch }: AttemptEvents, { taskId }: Place, last: Last | undefined): Promise<number | null> {
    const { results, board, late } = this.#deps;
    if (results === undefined || last?.kind === "CANCELLED" || late.hasEnded(taskId, epoch)) return null;
    const task = await board.task(taskId);
    if (task?.state !== "offered" || task.grant <= epoch) return null;
    return task.closedGrant === epoch && task.closedBy !== "expire" ? null : task.grant;
  }

  async #extend(hold: FullHold, requestedMs: number | null): Promise<Verdict> {
    const { board } = this.#deps;
    const termMs = requestedMs === null ? null : await this.#termMs(hold, requestedMs);
    return (await board.extend(hold, { holder: hold.holder, ...(termMs === null ? {} : { termMs }) })).verdict;
  }

  /** Null keeps the current term. As in the reference, a heartbeat never shortens a lease. */
  async #termMs({ taskId, grant }: Hold & { grant: number }, requestedMs: number): Promise<number | null> {
    if (requestedMs <= 0) return null;
    const termMs = Math.min(termMsMax, Math.max(termMsMin, requestedMs));
    const task = await this.#deps.board.task(taskId);
    return task?.state === "held" && task.grant === grant && termMs < task.termMs ? null : termMs;
  }

  async #keepBatches(hold: Hold & { grant: number }, events: readonly AttemptEvent[]): Promise<void> {
    const { counts, parts } = this.#deps;
    const unkept = await this.#unkept(hold, events);
    const found: NewPart[] = [];
    const keep = (uid: string, metrics: JsonObject) => found.push({ uid: partUidOf(uid), value: writeExact(metrics) });
    let failed: Of<"BATCH_FAILED"> | undefined;
    for (const event of events) {
      if (event.kind === "BATCH_OK") keep(event.batch_uid, event.metrics);
      else if (event.kind === "BATCH_TOLD") {
        const metrics = unkept.has(partUidOf(event.batch_uid)) ? event.metrics() : null;
        if (metrics !== null) keep(event.batch_uid, metrics);
      } else if (event.kind === "BATCH_FAILED") {
        counts.batchesFailed++;
        failed = event;
      }
    }
    for (const group of partGroups(found)) await parts.put(hold, group);
    counts.batches += found.length;
    if (failed !== undefined) await this.#noteFailing(hold.taskId, failed, hold.grant);
  }

  /** Returns the batches that are not stored yet. A worker that uses this server's store has stored its batches before it reports them. */
  async #unkept(hold: Hold, events: readonly AttemptEvent[]): Promise<ReadonlySet<string>> {
    const { counts, parts } = this.#deps;
    const uids = events.filter((event) => event.kind === "BATCH_TOLD").map(({ batch_uid }) => partUidOf(batch_uid));
    if (uids.length === 0) return new Set();
    const unkept = new Set(await parts.unkept(hold, uids));
    const kept = uids.filter((uid) => !unkept.has(uid)).length;
    counts.events += kept;
    counts.batches += kept;
    return unkept;
  }

  /** Remembers which batch failed until the worker reports the end of its attempt: both may arrive in different calls. */
  async #noteFailing(taskId: string, failed: Of<"BATCH_FAILED">, epoch: number): Promise<void> {
    const { batches } = this.#deps;
    await batches.keep(taskId, withFailing(await batches.of(taskId), failed, epoch));
  }

  async #done(hold: FullHold, place: Place, last: Of<"TASK_DONE">, { task_id, node_id }: WireName): Promise<void> {
    const { board, input } = this.#deps;
    const name = { task_id, node_id };
    await this.#deps.results?.adopt(name, hold);
    const missed = await input.missed(name, place);
    if (missed === null) await this.#end(hold, place, last);
    else if (await input.takeBack(name, place, hold, missed)) await board.defer(hold, 0);
  }

  async #end(hold: FullHold, place: Place, last: Last): Promise<void> {
    const { board } = this.#deps;
    const by = hold.holder;
    switch (last.kind) {
      case "TASK_DONE":
        await board.complete(hold, writeExact(await this.#outputOf(place, last)), { by });
        break;
      case "CANCELLED":
        await this.#cancelled(hold, last.reason);
        break;
      case "TASK_FAILED":
        await this.#failed(hold, place, last);
        break;
    }
  }

  /** For a node of a graph: its final metrics. For any other step: the handler's output, if the worker sends it. */
  async #outputOf(place: Place, { metrics, ...more }: Of<"TASK_DONE">): Promise<Json> {
    if (place.plan?.dialect !== dialectName) return (more as { output?: Json }).output ?? metrics;
    return settingsOf(place)?.batch ? withDeadLetters(metrics, await this.#deps.batches.of(place.taskId)) : metrics;
  }

  async #cancelled(hold: Hold & { holder: string }, reason: string): Promise<void> {
    const { board } = this.#deps;
    const task = await board.task(hold.taskId);
    if (task?.state === "cancelling") await board.withdraw(hold, { error: reason, by: hold.holder });
    else if (handedBack.has(reason)) await board.defer(hold, 0);
    else await board.fail(hold, { error: `cancelled by its worker: ${reason}`, retryable: true, spends: "lost", delayMs: 0 });
  }

  async #failed(hold: Hold & { grant: number }, place: Place, { reason_code, permanent, error }: Of<"TASK_FAILED">): Promise<void> {
    const { board, batches } = this.#deps;
    const settings = settingsOf(place);
    const text = error === null || error === "" ? reason_code : `${reason_code}: ${error}`;
    if (workerLost.has(reason_code)) {
      await board.fail(hold, { error: text, retryable: true, spends: "lost", delayMs: 0 });
      return;
    }
    const judged = judge(await batches.of(place.taskId), settings?.batch ?? null, hold.grant);
    if (judged !== null) await batches.keep(place.taskId, judged);
    if (settings !== null && judged !== null && judged.judged.next !== "fail") {
      await board.defer(hold, judged.judged.next === "again" ? backoffMsOf(settings) : 0);
      return;
    }
    // With a budget for batches, a batch that has used it up is final. Without one, the node's own budget counts.
    const spent = judged !== null && settings !== null && settings.batch !== null;
    const isFinal = permanent || spent || settings?.permanent_on.includes(reason_code) === true;
    const output = judged === null ? {} : { output: writeExact(withDeadLetters({}, judged)) };
    await board.fail(hold, { error: text, retryable: !isFinal, ...output });
  }

  /** A worker that has sent its last event has nothing to stop. */
  async #stop(attempt: AttemptEvents, { taskId }: Place, last: Last | undefined, reason: string): Promise<void> {
    if (last === undefined && !(await this.#isSpared(taskId))) await this.#deps.signals.cancel(attempt, attempt.worker_id, reason);
  }

  /**
   * A worker of another implementation that waits for input takes a cancel for the end of the input, and marks its node as complete.
   * Readers of the node would believe that. So such a worker gets no signal while the node is open or done. Our workers notice themselves
   * that their attempt has ended.
   */
  async #isSpared(taskId: string): Promise<boolean> {
    if (this.#deps.results === undefined) return false;
    const task = await this.#deps.board.task(taskId);
    return task !== undefined && (isOpen(task.state) || task.state === "done");
  }
}

function isLast(event: AttemptEvent): event is Last {
  return event.kind === "TASK_DONE" || event.kind === "TASK_FAILED" || event.kind === "CANCELLED";
}

/** Null for a step that is not a node of a graph. */
function settingsOf({ plan, node }: Place): RetrySettings | null {
  return plan?.dialect === dialectName ? ((node?.origin as GraphNode | undefined)?.retry_policy ?? null) : null;
}
