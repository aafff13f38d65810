// The coordinator functions that read the results of nodes, and those of the user. Functions for variables are part of the plan and never
// run here.

import { isObject, type Json, type JsonObject } from "../../../../core/json/json.ts";
import type { TaskRow } from "../../../../engine/board/task.ts";
import { type PartStore, pagePartsMax } from "../../../../engine/part/store.ts";
import type { Places } from "../task-addresses.ts";
import type { CoordinatorEngine } from "./parts.ts";

/** The context of a user's function besides its arguments. */
export interface FunctionContext {
  readonly taskId: string;
  readonly nodeId: string;
  /** Aborted when the task is cancelled or the server closes. */
  readonly signal: AbortSignal;
}

/** Its result is the node's output. Errors are retried by the node's `retry_policy`. */
export type CoordinatorFunction = (args: JsonObject, context: FunctionContext) => Json | Promise<Json>;

export interface FunctionsDeps extends Pick<CoordinatorEngine, "clock" | "board" | "parts"> {
  readonly places: Places;
  readonly own?: { readonly [name: string]: CoordinatorFunction };
}

export class Functions {
  readonly #deps: FunctionsDeps;

  constructor(deps: FunctionsDeps) {
    this.#deps = deps;
  }

  /** `task.input` is the function and its arguments, from the plan. Rejects when the function does. */
  async perform(task: TaskRow, signal: AbortSignal): Promise<Json> {
    const { fn, fn_args } = JSON.parse(task.input) as { fn: string; fn_args: JsonObject };
    const { task_id: taskId, node_id: nodeId } = await this.#deps.places.of(task);
    if (fn === "merge.generic") return this.#merge(taskId, fn_args, signal);
    if (fn === "metrics.aggregate") return this.#aggregate(taskId, fn_args, signal);
    const own = this.#deps.own ?? {};
    if (Object.hasOwn(own, fn)) return (own[fn] as CoordinatorFunction)(fn_args, { taskId, nodeId, signal });
    throw new Error(`There is no function ${fn} on this server any more.`);
  }

  /** Counts the results of the nodes; the counts are this node's own result. */
  async #merge(taskId: string, { from_nodes }: JsonObject, signal: AbortSignal): Promise<Json> {
    const nodes = from_nodes as string[];
    const complete: string[] = [];
    const uids = new Set<string>();
    let partial = 0;
    for (const node of nodes) {
      const source = await this.#source(taskId, node);
      if (source?.state === "done") complete.push(node);
      if (source === undefined) continue;
      for await (const { uid } of partsOf(this.#deps.parts, source.id, signal)) {
        partial++;
        uids.add(uid);
      }
    }
    return {
      merged_from: nodes,
      complete_nodes: complete.sort(),
      partial_batches: partial,
      distinct_batch_uids: uids.size,
      merged_at: new Date(this.#deps.clock.now()).toISOString(),
    };
  }

  /** Each batch counts once, even after several attempts, because a uid is stored once. */
  async #aggregate(taskId: string, { node_id, mode = "sum" }: JsonObject, signal: AbortSignal): Promise<Json> {
    const source = await this.#source(taskId, node_id as string);
    const sums = new Map<string, { sum: number; count: number }>();
    const add = (metrics: unknown) => {
      if (!isObject(metrics)) return;
      for (const [name, value] of Object.entries(metrics)) {
        const number = numberIn(value);
        if (number === null) continue;
        const before = sums.get(name) ?? { sum: 0, count: 0 };
        sums.set(name, { sum: before.sum + number, count: before.count + 1 });
      }
    };
    if (source !== undefined) {
      for await (const { value } of partsOf(this.#deps.parts, source.id, signal)) add(JSON.parse(value));
      if (source.state === "done" && source.output !== null) add(JSON.parse(source.output));
    }
    const stats: JsonObject = {};
    for (const [name, { sum, count }] of sums) stats[name] = mode === "mean" ? sum / count : sum;
    return { ok: true, mode: mode as string, stats };
  }

  async #source(taskId: string, node: string): Promise<TaskRow | undefined> {
    const place = await this.#deps.places.find({ task_id: taskId, node_id: node });
    return place === undefined ? undefined : this.#deps.board.task(place.taskId);
  }
}

/** All current parts. */
async function* partsOf(store: PartStore, taskId: string, signal: AbortSignal) {
  for (let after = 0; ; ) {
    signal.throwIfAborted();
    const { parts } = await store.read(taskId, after, pagePartsMax);
    const last = parts.at(-1);
    if (last === undefined) return;
    yield* parts;
    after = last.sequence;
  }
}

/** Numbers, booleans and numeric texts, which the reference can convert. */
function numberIn(value: unknown): number | null {
  const number = typeof value === "string" && value.trim() !== "" ? Number(value) : typeof value === "boolean" ? Number(value) : value;
  return typeof number === "number" && Number.isFinite(number) ? number : null;
}
