// Assignments that workers leave with. How large a message a worker takes is not on the wire; one that is sent more ends its stream, and
// comes back to be sent the same again. So a large assignment that streams keep ending on is taken for too large, before it has cost
// every worker of the queue its patience: those of Python give up permanently after fifteen streams.

import type { FlowError } from "../../dialect/result.ts";

/** What libraries of gRPC take by default. Nothing smaller is suspected. */
const suspectBytes = 4 * 1024 * 1024;
/** Streams end for other reasons too, but hardly so often on one task. */
const dropsMax = 3;
/** Tasks that are counted at once; the oldest are forgotten first. */
const countedMax = 1_000;

export class DroppedAssignments {
  readonly #counts = new Map<string, number>();

  /** Counts once more. An error when the task is not to be sent again. */
  again(taskId: string, bytes: number): FlowError | undefined {
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
