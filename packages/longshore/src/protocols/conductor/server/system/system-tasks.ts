// Tasks that the server itself performs. They are ordinary tasks of the board: stored before they run, given back after a crash, and
// retried. Their code is loaded with the first of them.

import type { Json } from "../../../../core/json/json.ts";
import { type LaneOptions, type LaneWork, LaneWorker, LeftOpen } from "../../../../engine/board/lane-worker.ts";
import type { Lane } from "../../../../engine/board/task.ts";
import type { AddressGuard } from "../../../../net/http/address-guard.ts";
import type { ProtocolEngine } from "../../../server-half.ts";
import type { WorkflowTask } from "../../dialect/model.ts";
import { callLane, callSlots, evaluateLane, handlerLane, startLane } from "../../dialect/operators.ts";
import { Evaluator } from "../evaluate/evaluator.ts";
import { systemHolder } from "../render-task.ts";
import type { Starter } from "../start.ts";
import { EventActions } from "./event-actions.ts";
import { sendEvent } from "./events.ts";
import { performExpression } from "./expressions.ts";
import { HttpCalls } from "./http.ts";
import { type Origin, originOf } from "./origin.ts";
import { startWorkflow } from "./start-workflow.ts";

export interface SystemTasksDeps {
  readonly engine: Pick<ProtocolEngine, "board" | "workers" | "clock" | "reader" | "plan" | "listen" | "events" | "documents" | "makeId">;
  /** Targets of HTTP tasks that are not public. */
  readonly targets: AddressGuard;
  secret(name: string): string | null;
  starter(): Promise<Starter>;
  failed(what: string, error: unknown): void;
}

/** Tasks that are evaluated or wait for a thread. Each may have megabytes of input. */
const evaluateSlots = 32;
/** Starts and events of this server, which share commits. */
const startSlots = 32;
const handlerSlots = 32;

export class SystemTasks {
  readonly #deps: SystemTasksDeps;
  readonly #lanes = new Map<string, LaneWorker>();
  readonly #evaluator: Evaluator;
  readonly #http: HttpCalls;
  #unlisten = () => {};

  constructor(deps: SystemTasksDeps) {
    this.#deps = deps;
    this.#evaluator = new Evaluator(deps.engine.clock);
    this.#http = new HttpCalls(deps.targets, deps.secret);
    const actions = new EventActions({ engine: deps.engine, expressions: this.#evaluator, starter: deps.starter });
    this.#add(callLane, callSlots, (_origin, work) => this.#http.perform(work));
    this.#add(evaluateLane, evaluateSlots, (origin, work) => performExpression(origin, work, this.#evaluator));
    this.#add(startLane, startSlots, async (origin, { task }) =>
      origin.task.type === "EVENT" ? sendEvent(origin, task, deps.engine) : startWorkflow(origin, task, await deps.starter()),
    );
    this.#open(handlerLane, handlerSlots, { perform: ({ task, signal }) => actions.perform(task, signal) });
  }

  /** A lane for tasks of definitions. */
  #add(lane: string, slots: number, perform: (origin: Origin, work: LaneWork) => Promise<Json>): void {
    const { engine } = this.#deps;
    this.#open(lane, slots, {
      perform: async (work) => {
        const origin = await originOf(engine, work.task);
        const output = await perform(origin, work);
        if (isCompletedElsewhere(origin.task)) throw new LeftOpen(output);
        return output;
      },
      // The work is done. The output of a task that has not ended is stored only then.
      isLeftOpen: async (task) => task.output !== null && isCompletedElsewhere((await originOf(engine, task)).task),
    });
  }

  #open(lane: string, slots: number, fields: Pick<LaneOptions, "perform" | "isLeftOpen">): void {
    const { engine, failed } = this.#deps;
    const { board, workers, clock } = engine;
    const options = { board, workers, clock, lane, holder: systemHolder, protocol: "local", own: true, slots, failed };
    this.#lanes.set(lane, new LaneWorker({ ...options, ...fields }));
  }

  /** Takes back what the last process held. Then each lane begins with its first task. */
  async start(): Promise<void> {
    const { reader, listen } = this.#deps.engine;
    for (const lane of this.#lanes.values()) await lane.recover(reader);
    const resting = new Set(this.#lanes.keys());
    const resume = (lane: string) => {
      if (resting.delete(lane)) this.#lanes.get(lane)?.resume();
    };
    this.#unlisten = listen({
      task: (task) => {
        const lane = task.lane === null ? undefined : this.#lanes.get(task.lane.name);
        lane?.changed(task);
        if (lane !== undefined && resting.size > 0) resume((task.lane as Lane).name);
      },
    });
    const queued = await reader.queued();
    for (const name of this.#lanes.keys()) if (queued.has(name)) resume(name);
  }

  async close(): Promise<void> {
    this.#evaluator.close();
    await Promise.all([...this.#lanes.values()].map((lane) => lane.close(0)));
    this.#unlisten();
    await this.#http.close();
  }
}

/** Tasks that may stay IN_PROGRESS after their work, until a client reports their end. */
const asynchronous = new Set(["HTTP", "EVENT"]);

function isCompletedElsewhere({ type, asyncComplete }: WorkflowTask): boolean {
  return asyncComplete === true && asynchronous.has(type);
}
