// Runs a stream task on a protocol without batches. The handler makes its batches itself, and the result of each is emitted. The output is
// the final metrics with the number of batches.

import { systemClock } from "../../../core/clock.ts";
import type { Context, StepPart } from "../../../core/context.ts";
import { TerminalError } from "../../../core/errors.ts";
import { isObject, type Json, type JsonObject } from "../../../core/json/json.ts";
import { argDefaults } from "../wire/adapter-args.ts";
import { adaptersWith } from "../wire/adapters/adapter.ts";
import type { PartRef, UpstreamPart } from "../wire/artifacts/artifacts.ts";
import { drive, type StreamWork } from "./drive.ts";
import type { BatchOutput } from "./generate.ts";
import { makeRunContext, type RunState } from "./run-context.ts";
import { RunFailed } from "./run-failure.ts";

export async function driveHere(role: string, work: StreamWork, input: unknown, context: Context): Promise<JsonObject> {
  const { ids, attempt, signal } = context;
  const out = new Emitted(context);
  const state: RunState = {
    taskId: ids.runId || ids.taskId,
    nodeId: ids.stepId,
    attemptEpoch: attempt,
    workerId: "",
    clock: systemClock,
    cancel: () => (signal.aborted ? { reason: String((signal.reason as Error)?.message ?? "cancelled"), deadlineMs: null } : undefined),
    keepPartial: (uid, meta) => context.emit(meta, { uid }),
  };
  const { ctx, final, cleanup } = makeRunContext(context, state);
  const { taskId, nodeId } = state;
  try {
    const { metrics } = await drive({
      work,
      info: { task_id: taskId, node_id: nodeId, attempt_epoch: attempt, worker_id: "", role },
      ...inputOf(input),
      deadLetters: new Set(),
      adapters: adaptersWith(),
      defaults: argDefaults,
      upstream: { taskId, signal, read: (nodes) => partsOf(context, nodes) },
      out,
      ctx,
      draining: () => false,
      log: () => {},
    });
    return { ...(final() as JsonObject), ...metrics, batches: out.count };
  } catch (error) {
    // On other protocols, this class of error means that a retry is useless.
    if (error instanceof RunFailed && error.permanent) throw new TerminalError(error.message, { cause: error });
    throw error;
  } finally {
    await cleanup();
  }
}

/** The input of a node of a graph has both, as in the command. The input of any other step is inline. */
function inputOf(input: unknown): { readonly inputRef: JsonObject | null; readonly inputInline: JsonObject | null } {
  if (input === undefined || input === null) return { inputRef: null, inputInline: null };
  if (!isObject(input)) return { inputRef: null, inputInline: { input: input as Json } };
  if (Object.keys(input).sort().join() !== nodeInputKeys) return { inputRef: null, inputInline: input as JsonObject };
  const { input_ref, input_inline } = input as { input_ref: JsonObject | null; input_inline: JsonObject | null };
  return { inputRef: input_ref, inputInline: input_inline };
}

/** The fields of a graph node's input on the board. */
const nodeInputKeys = "batching,input_inline,input_ref";

/** Maximum number of parts in flight; the next one waits. */
const underWayMax = 500;

/** Emits parts through the context, in order. */
class Emitted implements BatchOutput {
  readonly #context: Context;
  #underWay = 0;
  #last: Promise<void> = Promise.resolve();
  count = 0;

  constructor(context: Context) {
    this.#context = context;
  }

  ok(uid: string, metrics: JsonObject, _finishes: readonly PartRef[] = []): Promise<void> | undefined {
    this.count++;
    this.#underWay++;
    const sent = this.#context.emit(metrics, { uid }).finally(() => this.#underWay--);
    // A caller that waits gets the error; the runner gets it too and fails the task.
    sent.catch(() => {});
    this.#last = sent;
    return this.#underWay >= underWayMax ? sent : undefined;
  }

  async failed(uid: string, reason: string, permanent: boolean, error: string | null): Promise<void> {
    this.#context.log({ batch_uid: uid, reason_code: reason, permanent, error }, "stderr");
  }

  async flush(): Promise<void> {
    await this.#last;
  }
}

/** The parts of several steps, as they arrive. */
async function* partsOf(context: Context, fromNodes: readonly string[]): AsyncIterable<UpstreamPart> {
  const next = async (fromNode: string, parts: AsyncIterator<StepPart>) => ({ fromNode, parts, read: await parts.next() });
  const waiting = new Map(fromNodes.map((node) => [node, next(node, context.parts(node)[Symbol.asyncIterator]())]));
  while (waiting.size > 0) {
    const { fromNode, parts, read } = await Promise.race(waiting.values());
    if (read.done === true) waiting.delete(fromNode);
    else {
      waiting.set(fromNode, next(fromNode, parts));
      yield {
        fromNode,
        uid: read.value.uid,
        meta: isObject(read.value.value) ? (read.value.value as JsonObject) : { result: read.value.value },
      };
    }
  }
}
