// Carries tasks from the board to the workers of their role. The number of waiting offers equals the free capacity of the announced
// workers. Each task is sent as a command, and its grant is the epoch of the command. When no worker claims a command in time, the command
// lapses: the task returns to its lane and is sent again with the next epoch. The new command may reach another reader of the topic.
//
// The capacity of a worker with several roles counts for each of them, so some commands wait for it until they lapse. If it counted only
// once, one command that no worker can take could block all others. Such a command is in the partition of a busy worker, or its role has
// reached its concurrency. It would be the only one that is sent, again and again.

import { pause } from "../../../../core/clock.ts";
import { isClosing, isRefused, toError } from "../../../../core/errors.ts";
import { isObject, type Json, type JsonObject } from "../../../../core/json/json.ts";
import { parseExact, writeExact } from "../../../../core/json/json-exact.ts";
import type { Hold, TaskRow, TaskRowHead } from "../../../../engine/board/task.ts";
import { taskIdOf } from "../../../../engine/run/run.ts";
import { dialectName } from "../../dialect/compile.ts";
import type { GraphNode } from "../../dialect/graph.ts";
import type { TopicNames } from "../../wire/shapes.ts";
import type { Place, Places, WireName } from "../task-addresses.ts";
import type { BatchRecords } from "./batches.ts";
import type { ForeignResults } from "./foreign-results.ts";
import type { InputCheck } from "./input-check.ts";
import { type Start, startMessage } from "./messages.ts";
import { type CoordinatorCounts, type CoordinatorEngine, type CoordinatorLog, type Outbox, tasksIn } from "./parts.ts";
import type { Registry } from "./registry.ts";

export interface DispatcherDeps extends Pick<CoordinatorEngine, "clock" | "board" | "reader"> {
  readonly places: Places;
  readonly batches: BatchRecords;
  readonly input: InputCheck;
  readonly registry: Pick<Registry, "room">;
  readonly outbox: Outbox;
  readonly topics: TopicNames;
  /** Whether the topics of a role exist. */
  isServed(role: string): boolean;
  /** Lease duration until the worker has reported its own. */
  readonly leaseMs: number;
  /** How long a command may stay unclaimed. */
  readonly offerMs: number;
  readonly results?: ForeignResults | undefined;
  /** How many workers currently read the commands of a role, if the bus reports it. */
  readers?(role: string): Promise<number>;
  readonly counts: CoordinatorCounts;
  readonly log: CoordinatorLog;
  failed(what: string, error: unknown): void;
}

/** Maximum number of waiting offers of one role. When many tasks become ready together, this many are sent together. */
const standingMax = 64;
/**
 * Maximum number of waiting offers of all roles; each role may have one more. The limit exists because workers choose roles, and all claims
 * of the server share one limit.
 */
const standingAllMax = 4_096;
/** A wait without a task ends after this time and begins again. */
const waitMs = 30_000;
/** The pause after an offer that failed because the store cannot be written. */
const retryMs = 500;
/** The pause before a node whose source is not running is checked again. */
const aheadMs = 1_000;
/** Maximum number of remembered tasks. Above it, the oldest task is forgotten, and its count begins at 0 again. */
const rememberedMax = 10_000;

interface Line {
  /** Waiting offers; each promise ends with its offer. */
  readonly standing: Map<AbortController, Promise<void>>;
  /** Commands that no worker has claimed, by task. */
  readonly unclaimed: Map<string, number>;
}

export class Dispatcher {
  readonly #deps: DispatcherDeps;
  readonly #lines = new Map<string, Line>();
  #standing = 0;
  readonly #lapses = new Map<string, number>();
  /**
   * Tasks whose end is in the database but was not reported. For each, the grant of the offer at which this end was first seen, and not
   * accepted.
   */
  readonly #doubted = new Map<string, number>();
  #closed = true;

  constructor(deps: DispatcherDeps) {
    this.#deps = deps;
  }

  /** Sends the commands of offers from before the restart again. The outbox leaves out those that were already sent. */
  async start(roles: ReadonlySet<string>): Promise<void> {
    this.#closed = false;
    for await (const task of tasksIn(this.#deps.reader, "offered")) {
      if (task.lane !== null && roles.has(task.lane.name)) await this.#handOver(task.lane.name, task, { sent: true });
    }
    this.fill([...roles]);
  }

  /** The free capacity of workers of these roles has changed. */
  fill(roles: readonly string[]): void {
    if (this.#closed) return;
    for (const role of roles) {
      // A worker may announce any role, even the name of a reserved lane.
      if (!this.#deps.isServed(role) || this.#deps.board.reserved.has(role)) continue;
      const line = this.#lineOf(role);
      const wanted = Math.min(standingMax, this.#deps.registry.room(role) - line.unclaimed.size);
      for (let count = line.standing.size; count < wanted && (count === 0 || this.#standing < standingAllMax); count++) {
        const offer = new AbortController();
        this.#standing++;
        line.standing.set(offer, this.#stand(role, line, offer));
      }
      let surplus = line.standing.size - Math.max(0, wanted);
      for (const offer of line.standing.keys()) {
        if (surplus-- <= 0) break;
        offer.abort();
      }
    }
  }

  /** Must be called for each task that a commit changed. */
  taskChanged(task: TaskRow): void {
    const role = task.lane?.name;
    const line = role === undefined ? undefined : this.#lines.get(role);
    const grant = line?.unclaimed.get(task.id);
    if (role === undefined || line === undefined || grant === undefined) return;
    if (task.state === "offered" && task.grant === grant) return;
    line.unclaimed.delete(task.id);
    if (task.closedGrant === grant && task.closedBy === "expire") this.#lapsed(task.id);
    else this.#forget(task.id);
    this.fill([role]);
  }

  /** Returns whether its command was sent, or is about to be sent. */
  carries({ id, grant, lane }: TaskRowHead): boolean {
    return lane !== null && this.#lines.get(lane.name)?.unclaimed.get(id) === grant;
  }

  async close(): Promise<void> {
    this.#closed = true;
    const offers = [...this.#lines.values()].flatMap(({ standing }) => [...standing]);
    for (const [offer] of offers) offer.abort();
    await Promise.all(offers.map(([, ended]) => ended));
  }

  async #stand(role: string, line: Line, offer: AbortController): Promise<void> {
    const { board, clock, leaseMs, offerMs } = this.#deps;
    try {
      const reach = { names: [role], labels: [] };
      const early = clock.now() + waitMs / 2;
      const [task] = await board.offer({ reach, termMs: leaseMs, offerMs, waitMs, signal: offer.signal });
      // The task may have been cancelled in the transaction that handed it out.
      if (task?.state === "offered") await this.#handOver(role, task);
      // The limit of waiting claims is reached: the next claim would not wait either.
      else if (task === undefined && clock.now() < early) await pause(clock, retryMs, offer.signal);
    } catch (error) {
      if (!isClosing(error)) this.#deps.failed("offer", error);
      await pause(clock, retryMs, offer.signal);
    } finally {
      line.standing.delete(offer);
      this.#standing--;
      this.fill([role]);
    }
  }

  /** `sent`: an earlier command for it may exist. */
  async #handOver(role: string, task: TaskRow, { sent = task.grant > 1 } = {}): Promise<void> {
    const { board, clock, counts, log, outbox, places, topics } = this.#deps;
    const hold = { taskId: task.id, grant: task.grant };
    this.#lineOf(role).unclaimed.set(task.id, task.grant);
    try {
      const place = await places.of(task);
      const { task_id, node_id } = place;
      if ((await this.#isAhead(task, place)) || (await this.#deps.input.mustWait(place, place))) {
        await board.defer(hold, aheadMs);
        return;
      }
      if (await this.#isOver(place, hold, sent)) return;
      if (await this.#isInVain(role, task)) return;
      // No claims exist before the first command.
      if (task.grant > 1) await this.#deps.results?.release({ task_id, node_id }, task.grant);
      // Workers of other implementations end when they find no more input. So all parts that the sources have produced must be in the
      // database before the command is sent.
      if ((place.node?.after.length ?? 0) > 0) await this.#deps.results?.caughtUp(task_id);
      const start = {
        input: inputOf(task, place),
        deadLetters: await this.#deadLetters(place),
        retry: this.#lapses.get(task.id) ?? 0,
      };
      const attempt = { task_id, node_id, step_type: role, attempt_epoch: task.grant };
      await outbox.enqueue(startMessage(topics, attempt, start, clock.now()));
      counts.started++;
      log.debug("A command was sent", { event: "coord.cmd.start", ...attempt });
    } catch (error) {
      await this.#refused(hold, error);
    }
  }

  /**
   * Returns whether the node has ended, or is about to end, according to the database of other workers. The events of its batches may still
   * be on their way, and they count only while the node is open. So the end of an earlier attempt is accepted only when one more offer has
   * brought no events.
   */
  async #isOver(place: WireName & Place, hold: Hold & { grant: number }, sent: boolean): Promise<boolean> {
    const { board, results, input } = this.#deps;
    const name = { task_id: place.task_id, node_id: place.node_id };
    const result = (await results?.completed(name)) ?? null;
    if (result === null) return false;
    if (sent && !this.#doubted.has(place.taskId)) {
      remember(this.#doubted, place.taskId, hold.grant);
      return true;
    }
    await results?.adopt(name, hold);
    const missed = await input.missed(name, place);
    if (missed !== null) return !(await input.takeBack(name, place, hold, missed));
    await board.complete(hold, writeExact(result));
    return true;
  }

  /**
   * Returns whether a lapsed command would lapse again, because no worker of the role reads commands. The earlier command waits on the bus
   * for the next worker, and each further command would be executed too. Meanwhile the offer stays open, and a worker that takes the
   * earlier command claims this offer.
   */
  async #isInVain(role: string, { id }: TaskRow): Promise<boolean> {
    const { readers } = this.#deps;
    if (readers === undefined || !this.#lapses.has(id)) return false;
    // A broker that does not answer accepts no command either.
    return (await readers(role).catch(() => 0)) === 0;
  }

  /**
   * Returns whether a source that streams to this node has lost its worker and waits for another one. Until then, this node would only use
   * the capacity that its source needs. If such nodes were on all workers, no task would ever progress.
   */
  async #isAhead({ runId }: TaskRow, { node }: Place): Promise<boolean> {
    for (const source of runId === null ? [] : (node?.onFirstPart ?? [])) {
      const task = await this.#deps.board.task(taskIdOf(runId as string, source));
      // An offered source may be in progress already: its acceptance has not arrived yet.
      if (task?.streamed && task.state === "queued") return true;
    }
    return false;
  }

  /** A command that the bus refuses, such as one that is too large, is always refused. Other failures are retried. */
  async #refused(hold: { taskId: string; grant: number }, error: unknown): Promise<void> {
    const { board, failed } = this.#deps;
    const isFinal = isRefused(error);
    if (!isFinal) failed("sending of a command", error);
    const report = isFinal ? board.fail(hold, { error: toError(error).message, retryable: false }) : board.retract(hold);
    // If the store cannot be written now, the offer expires by itself.
    await report.catch(() => {});
  }

  async #deadLetters({ taskId, plan, node }: Place): Promise<string[]> {
    if (plan?.dialect !== dialectName || !(node?.origin as GraphNode | undefined)?.retry_policy.batch) return [];
    return (await this.#deps.batches.of(taskId)).dead_letters.map(({ batch_uid }) => batch_uid);
  }

  #lapsed(taskId: string): void {
    this.#deps.counts.lapsed++;
    remember(this.#lapses, taskId, (this.#lapses.get(taskId) ?? 0) + 1);
  }

  #forget(taskId: string): void {
    this.#lapses.delete(taskId);
    this.#doubted.delete(taskId);
  }

  #lineOf(role: string): Line {
    let line = this.#lines.get(role);
    if (line === undefined) {
      line = { standing: new Map(), unclaimed: new Map() };
      this.#lines.set(role, line);
    }
    return line;
  }
}

function remember(known: Map<string, number>, taskId: string, value: number): void {
  const [oldest] = known.keys();
  if (oldest !== undefined && !known.has(taskId) && known.size >= rememberedMax) known.delete(oldest);
  known.set(taskId, value);
}

/** For a node, the input in its graph. Steps of other dialects pass their input; FlowKit's inputs are objects. */
function inputOf(task: TaskRow, { plan, node }: Place): Start["input"] {
  if (plan?.dialect === dialectName && node !== null) {
    const { input_ref, input_inline, batching } = (node.origin as GraphNode).io;
    return { input_ref, input_inline, batching };
  }
  const input = parseExact(task.input) as Json;
  return { input_ref: null, input_inline: isObject(input) ? (input as JsonObject) : { value: input }, batching: null };
}
