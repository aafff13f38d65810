// The port between a queue and the backends that carry its tasks to workers: PullTasks streams, JetStream, or another one. A backend takes
// the next task and delivers its assignment. The life of a task is the same with every backend: offered when it is delivered, held from its
// first heartbeat on, and back in its lane when no worker claims it.

import type { Clock } from "../../../../core/clock.ts";
import type { Json } from "../../../../core/json/json.ts";
import { parseExact } from "../../../../core/json/json-exact.ts";
import type { Board } from "../../../../engine/board/board.ts";
import type { Reach } from "../../../../engine/board/lanes.ts";
import type { Lane, TaskRow } from "../../../../engine/board/task.ts";
import type { DocumentStore } from "../../../../engine/run/documents.ts";
import type { Runs } from "../../../../engine/run/runs.ts";
import type { Encodable } from "../../../../net/protobuf/protobuf.ts";
import type { ProtocolEngine } from "../../../server-half.ts";
import { type FlowError, failureReport } from "../../dialect/result.ts";
import type { ComponentTask } from "../../dialect/router.ts";
import { TaskAssignment } from "../../wire/messages.ts";
import { wireTaskId } from "../../wire/task-id.ts";
import { queueLane } from "../config/queues.ts";
import type { RegisteredComponent } from "../config/registered-components.ts";
import { queueHoldMs } from "../config/router.ts";
import { assignmentOf } from "./assignment.ts";
import type { Discoveries, Question } from "./discovery.ts";
import type { DroppedAssignments } from "./dropped-assignments.ts";
import { Registrations } from "./registrations.ts";
import type { Outcome, UnclaimedOffers } from "./unclaimed-offers.ts";

/** One task on its way to a worker. */
export interface Delivery {
  /** The task's id on the wire. */
  readonly id: string;
  readonly assignment: Encodable<typeof TaskAssignment>;
  /** Settles once, with one of: taken, lapsed, or `left` after one of the methods below. */
  readonly outcome: Promise<Outcome | "left">;
  /** The task has not reached a worker: it returns to its lane at once. A worker that has claimed it meanwhile keeps it. */
  giveBack(): Promise<void>;
  /**
   * The worker has disconnected without claiming the task. The task returns to its lane, or fails when it seems too large for every worker.
   */
  drop(): Promise<void>;
  /** Stops waiting for the outcome. A worker may still claim the task. */
  leave(): void;
  /** The task can never be delivered: it fails with this error. */
  refuse(error: FlowError): Promise<void>;
}

export interface NextOptions {
  readonly signal: AbortSignal;
  /** How long the task may stay unclaimed. */
  readonly offerMs: number;
  /** The address to which the worker reports. */
  readonly orchestratorServiceUrl: string;
  /** Identifies a connected worker, to find the components that it registered. */
  readonly worker?: object;
}

export interface TaskQueue {
  readonly name: string;
  /** The lane of its tasks. */
  readonly lane: Lane;
  /**
   * Waits a limited time for the next task. Returns undefined when none came or `signal` aborted. Rejects with LONGSHORE_SHUTDOWN when the
   * server is closing, and with LONGSHORE_STORE_UNAVAILABLE while nothing can be written.
   */
  next(options: NextOptions): Promise<Delivery | undefined>;
  /** An assignment that requests a worker's components. Deliver it like any other. */
  discover(options: { orchestratorServiceUrl: string; patienceMs: number; worker?: object }): Question;
  readonly registrations: Registrations;
}

/** A wait without a task ends after this time and begins again: the list of workers stays current. */
const waitMs = 30_000;
/** Maximum number of components of one worker whose lanes are searched as well. Each lane adds a little to the cost of every task. */
const sharedLanesMax = 200;

export interface QueueDeps {
  readonly clock: Clock;
  readonly board: Pick<Board, "offer" | "retract" | "fail" | "reserved">;
  readonly runs: Pick<Runs, "run">;
  readonly unclaimed: UnclaimedOffers;
  readonly discoveries: Discoveries;
  readonly dropped: DroppedAssignments;
  readonly spanOf: ProtocolEngine["spanOf"];
}

/** A queue whose tasks are on a lane of the board. */
export class BoardQueue implements TaskQueue {
  readonly name: string;
  readonly lane: Lane;
  readonly registrations: Registrations;
  readonly #deps: QueueDeps;
  readonly #shared: boolean;
  readonly #own: Reach;
  /** The lanes of a worker, which follow from its list of components. */
  readonly #reaches = new WeakMap<readonly RegisteredComponent[], Reach>();

  /** `shared`: its workers also take tasks from the lanes of their components. Workers of other protocols may take from these lanes, too. */
  constructor(name: string, deps: QueueDeps, documents: DocumentStore, shared = false) {
    this.name = name;
    this.lane = { name: queueLane(name), labels: [] };
    this.registrations = new Registrations(documents, this.lane.name);
    this.#deps = deps;
    this.#shared = shared;
    this.#own = { names: [this.lane.name], labels: [] };
  }

  async next({ signal, offerMs, orchestratorServiceUrl, worker }: NextOptions): Promise<Delivery | undefined> {
    const { board, runs, unclaimed, dropped, spanOf } = this.#deps;
    const reach = this.#shared ? await this.#reachOf(worker) : this.#own;
    const [task] = await board.offer({ reach, serves: this.lane.name, termMs: queueHoldMs, offerMs, waitMs, signal });
    // The task may have been cancelled in the transaction that handed it out.
    if (task?.state !== "offered") return undefined;
    const watched = new Watched(task, board, unclaimed, dropped);
    try {
      const [run, components] = await Promise.all([
        task.runId === null ? undefined : runs.run(task.runId),
        this.registrations.known(worker),
      ]);
      const given = task.lane?.name === this.lane.name ? undefined : componentOnLane(task);
      return watched.as(assignmentOf(task, { run, components, orchestratorServiceUrl, given, span: spanOf(task) }));
    } catch (error) {
      await watched.giveBack();
      throw error;
    }
  }

  async #reachOf(worker: object | undefined): Promise<Reach> {
    const components = await this.registrations.known(worker);
    if (components === null) return this.#own;
    let reach = this.#reaches.get(components);
    if (reach === undefined) {
      const names = components
        .map(({ path }) => path.slice(1))
        .filter((name) => !name.includes("{") && !this.#deps.board.reserved.has(name));
      reach = { names: [this.lane.name, ...names.slice(0, sharedLanesMax)], labels: [] };
      this.#reaches.set(components, reach);
    }
    return reach;
  }

  discover({ orchestratorServiceUrl, patienceMs, worker }: Parameters<TaskQueue["discover"]>[0]): Question {
    return this.#deps.discoveries.ask(orchestratorServiceUrl, patienceMs, (components) => this.registrations.tell(components, worker));
  }
}

/**
 * The call of a component for a task from the lane of the component instead of the lane of the queue. The step was queued there before this
 * worker registered the component. So the input of the task is only the input of the component.
 */
function componentOnLane({ lane, input }: TaskRow): ComponentTask {
  return { component: `/${lane?.name ?? ""}`, input: parseExact(input) as Json };
}

/** A hand-out that is watched for its outcome. */
class Watched {
  readonly id: string;
  readonly outcome: Promise<Outcome | "left">;
  readonly #board: QueueDeps["board"];
  readonly #hold: { taskId: string; grant: number };
  #settle: (outcome: Outcome | "left") => void = () => {};
  readonly #unwatch: () => void;
  readonly #dropped: DroppedAssignments;

  constructor(task: TaskRow, board: QueueDeps["board"], unclaimed: UnclaimedOffers, dropped: DroppedAssignments) {
    this.id = wireTaskId(task);
    this.#dropped = dropped;
    this.#board = board;
    this.#hold = { taskId: task.id, grant: task.grant };
    this.outcome = new Promise((resolve) => {
      this.#settle = resolve;
    });
    this.#unwatch = unclaimed.watch(task, this.#settle);
  }

  as(assignment: Delivery["assignment"]): Delivery {
    const { id, outcome } = this;
    return {
      ...{ id, outcome, assignment },
      giveBack: () => this.giveBack(),
      drop: () => this.#drop(assignment),
      leave: () => this.#leave(),
      refuse: (error) => this.#refuse(error),
    };
  }

  async giveBack(): Promise<void> {
    this.#leave();
    // If the store cannot be written now, the offer expires by itself.
    await this.#board.retract(this.#hold).catch(() => {});
  }

  #drop(assignment: Delivery["assignment"]): Promise<void> {
    const error = this.#dropped.countDrop(this.#hold.taskId, TaskAssignment.encode(assignment).length);
    return error === undefined ? this.giveBack() : this.#refuse(error);
  }

  #leave(): void {
    this.#unwatch();
    this.#settle("left");
  }

  async #refuse(error: FlowError): Promise<void> {
    this.#leave();
    // If the store cannot be written now, the task is offered and refused again later.
    await this.#board.fail(this.#hold, failureReport(error)).catch(() => {});
  }
}
