// Tasks that the server itself performs. They are ordinary tasks of the board: stored before they run, given back after a crash, retried by
// their definitions. Their code is loaded with the first of them.

import type { Json } from "../../../../core/json/json.ts";
import { LaneFailure, type LaneWork, LaneWorker } from "../../../../engine/board/lane-worker.ts";
import type { Lane, TaskRow } from "../../../../engine/board/task.ts";
import type { AddressGuard } from "../../../../net/http/address-guard.ts";
import type { ProtocolEngine } from "../../../server-half.ts";
import type { WorkflowTask } from "../../dialect/model.ts";
import { callLane, evaluateLane } from "../../dialect/operators.ts";
import { Evaluator } from "../evaluate/evaluator.ts";
import { systemHolder } from "../render-task.ts";
import { performExpression } from "./expressions.ts";
import { HttpCalls } from "./http.ts";

export interface SystemTasksDeps {
  readonly engine: Pick<ProtocolEngine, "board" | "workers" | "clock" | "reader" | "plan" | "listen">;
  /** Targets of HTTP tasks that are not public. */
  readonly targets: AddressGuard;
  secret(name: string): string | null;
  failed(what: string, error: unknown): void;
}

/** Tasks that are evaluated or wait for a thread. Each may have megabytes of input. */
const evaluateSlots = 32;
/** Calls that wait for other servers at the same time. */
const callSlots = 64;

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
    this.#add(callLane, callSlots, (_task, work) => this.#http.perform(work));
    this.#add(evaluateLane, evaluateSlots, (task, work) => performExpression(task, work, this.#evaluator));
  }

  #add(lane: string, slots: number, perform: (task: WorkflowTask, work: LaneWork) => Promise<Json>): void {
    const { engine, failed } = this.#deps;
    const { board, workers, clock } = engine;
    const options = { board, workers, clock, lane, holder: systemHolder, protocol: "local", own: true, slots, failed };
    this.#lanes.set(lane, new LaneWorker({ ...options, perform: async (work) => perform(await this.#taskOf(work.task), work) }));
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

  async #taskOf({ id, runId, node }: TaskRow): Promise<WorkflowTask> {
    const { reader, plan } = this.#deps.engine;
    const run = runId === null ? undefined : await reader.runHead(runId);
    const definition = run === undefined ? undefined : await reader.definitionById(run.definitionId);
    const found = definition === undefined ? undefined : plan(definition).nodes[node];
    // The evaluation of a condition is a hidden node of its loop.
    const task = found?.origin as WorkflowTask | null | undefined;
    if (task === undefined || task === null) throw new LaneFailure({ error: `task ${id} is in no definition`, retryable: false });
    return task;
  }
}
