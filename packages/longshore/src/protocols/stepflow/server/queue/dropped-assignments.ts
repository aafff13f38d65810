// Assignments on which workers disconnect. The wire does not say how large a message a worker accepts. A worker that receives a larger one
// ends its stream, reconnects and would get the same message again. So a large assignment on which several streams have ended is treated as
// too large. The Python worker would give up permanently after fifteen streams.

import type { FlowError } from "../../dialect/result.ts";

/** The default limit of gRPC libraries. Smaller assignments are never suspected. */
const suspectBytes = 4 * 1024 * 1024;
/** The number of ended streams that makes a task suspect. Streams end for other reasons too, but rarely so often on one task. */
const dropsMax = 3;
/** Maximum number of tasks that are counted; the oldest are forgotten first. */
const countedMax = 1_000;

export class DroppedAssignments {
  readonly #counts = new Map<string, number>();

  /** Counts one more disconnection. Returns an error when the task must not be sent again. */
  countDrop(taskId: string, bytes: number): FlowError | undefined {
    if (bytes <= suspectBytes) return undefined;
    const count = (this.#counts.get(taskId) ?? 0) + 1;
    this.#counts.delete(taskId);
    if (count >= dropsMax) return { code: "INVALID_INPUT", message: messageFor(bytes) };
    this.#counts.set(taskId, count);
    if (this.#counts.size > countedMax) this.#counts.delete(this.#counts.keys().next().value as string);
    return undefined;
  }
}

function messageFor(bytes: number): string {
  const seen = `the assignment has ${bytes} bytes, and ${dropsMax} streams of workers ended on it`;
  return `${seen}: gRPC takes ${suspectBytes} bytes by default. Keep large inputs as blobs`;
}
