// Components that this server runs or calls: a lane worker (engine/board/lane-worker.ts) with Stepflow's inputs and failures.

import { isTransient, toError } from "../../../core/errors.ts";
import type { Json } from "../../../core/json/json.ts";
import { parseExact } from "../../../core/json/json-exact.ts";
import { LaneFailure, type LaneOptions, LaneWorker, NoRoomToWait, NotBegun } from "../../../engine/board/lane-worker.ts";
import type { TaskRow } from "../../../engine/board/task.ts";
import { type FlowError, failureReport } from "../dialect/result.ts";
import type { ComponentTask } from "../dialect/router.ts";

export interface ComponentLaneOptions extends Omit<LaneOptions, "perform" | "cancelled"> {
  /** Returns the component's output. Throws a StepFailure with the error to report; any other error is a bug of this server. */
  perform(work: ComponentWork): Promise<Json>;
}

export interface ComponentWork {
  readonly task: TaskRow;
  readonly component: string;
  readonly input: Json;
  /** Aborted when the step is cancelled, the hold is lost, or the lane is closed. */
  readonly signal: AbortSignal;
  /** Frees the slot while the component waits for other work of this server. Otherwise that work could wait for this slot. */
  lend<T>(wait: () => Promise<T>): Promise<T>;
}

/** The failure of a step. With `final` it is not retried, for any code. Our own views show `shown` instead of the message. */
export class StepFailure extends LaneFailure {
  override readonly name: string = "StepFailure";
  readonly error: FlowError;
  readonly final: boolean;

  constructor(error: FlowError, options: { cause?: unknown; final?: boolean; shown?: string } = {}) {
    const { final = false, shown = error.message, cause } = options;
    super({ ...failureReport(error), error: shown, ...(final ? { retryable: false } : {}) }, { cause });
    this.error = error;
    this.final = final;
  }
}

export function componentLane({ perform, ...options }: ComponentLaneOptions): LaneWorker {
  return new LaneWorker({
    ...options,
    cancelled: failureReport({ code: "CANCELLED", message: "the step was cancelled" }),
    async perform({ task, signal, lend }) {
      try {
        const { component, input } = parseExact(task.input) as ComponentTask;
        return await perform({ task, component, input, signal, lend });
      } catch (error) {
        throw error instanceof StepFailure || error instanceof NotBegun ? error : inWords(error);
      }
    },
  });
}

function inWords(error: unknown): StepFailure {
  const code = error instanceof NoRoomToWait ? "RESOURCE_UNAVAILABLE" : isTransient(error) ? "UNREACHABLE" : "ORCHESTRATOR_ERROR";
  return new StepFailure({ code, message: toError(error).message }, { cause: error });
}
