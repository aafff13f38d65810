// Checks whether a node that its worker reports as done has results for all parts of its sources. Workers of other implementations learn
// the end of a source from MongoDB, where it may be written before the last parts. Another worker may also have claimed some parts and be
// gone. The two adapters make the names of batches from the names of the parts, so the parts of the node show which input is missing.
//
// A node with missing input is not done. It runs again when its sources have ended and all input is stored. If it still misses some input,
// it fails.

import { type Hold, isOpen } from "../../../../engine/board/task.ts";
import type { Part } from "../../../../engine/part/store.ts";
import { dialectName } from "../../dialect/compile.ts";
import type { GraphNode } from "../../dialect/graph.ts";
import { argDefaults, checkAdapterArgs, type PullArgs, type RechunkArgs } from "../../wire/adapter-args.ts";
import { namedBySource } from "../../wire/adapters/pull.ts";
import { itemsOf } from "../../wire/adapters/rechunk.ts";
import { dedupIds } from "../../wire/hash.ts";
import { metaOf } from "../artifacts/part-artifacts.ts";
import { partUidOf } from "../part-groups.ts";
import type { Place, Places, WireName } from "../task-addresses.ts";
import type { BatchRecords } from "./batches.ts";
import type { ForeignResults } from "./foreign-results.ts";
import type { CoordinatorEngine, CoordinatorLog } from "./parts.ts";

export interface InputCheckDeps extends Pick<CoordinatorEngine, "board" | "parts"> {
  readonly places: Places;
  readonly batches: BatchRecords;
  readonly log: CoordinatorLog;
  readonly results?: ForeignResults | undefined;
}

export interface Missed {
  readonly source: string;
  /** Null when the source has not ended, because its number of parts is not known yet. */
  readonly parts: { readonly missing: number; readonly of: number } | null;
}

/** Parts of a source that are checked together: some milliseconds of work, with a pause after each page. */
const pageParts = 100;
/**
 * How often a node runs again because it missed input. The first repeat has all input. The second is for the case that a lost worker
 * disturbed the first.
 */
const againMax = 2;

export class InputCheck {
  readonly #deps: InputCheckDeps;

  constructor(deps: InputCheckDeps) {
    this.#deps = deps;
  }

  /** Null when nothing is missing, or the node does not use one of the two adapters. */
  async missed(name: WireName, place: Place): Promise<Missed | null> {
    const route = this.#deps.results === undefined ? null : routeOf(place);
    if (route === null) return null;
    const { dead_letters } = await this.#deps.batches.of(place.taskId);
    const aside = new Set(dead_letters.map(({ batch_uid }) => partUidOf(batch_uid)));
    for (const source of route.fromNodes) {
      const found = await this.#deps.places.find({ task_id: name.task_id, node_id: source });
      const task = found === undefined ? undefined : await this.#deps.board.task(found.taskId);
      if (task === undefined) continue;
      if (isOpen(task.state)) return { source, parts: null };
      if (task.state !== "done") continue;
      const parts = await this.#countMissing(place.taskId, { id: task.id, node: source }, route, aside);
      if (parts.missing > 0) return { source, parts };
    }
    return null;
  }

  /**
   * Returns whether a node must wait before it starts, because one of its sources has not ended. This applies to a node that missed input.
   * It also applies when a source is marked as complete in MongoDB before its last parts are written.
   */
  async mustWait({ task_id }: WireName, place: Place): Promise<boolean> {
    const { batches, board, results, places } = this.#deps;
    const route = routeOf(place);
    if (route === null) return false;
    const isAgain = ((await batches.of(place.taskId)).missed ?? 0) > 0;
    if (!isAgain && results === undefined) return false;
    for (const node_id of route.fromNodes) {
      const found = await places.find({ task_id, node_id });
      const task = found === undefined ? undefined : await board.task(found.taskId);
      if (task === undefined || !isOpen(task.state)) continue;
      if (isAgain || (await results?.completed({ task_id, node_id })) !== null) return true;
    }
    return false;
  }

  /** Marks the node as not complete. Returns true when it runs again, false when it has failed. */
  async takeBack(name: WireName, { taskId }: Place, hold: Hold, missed: Missed): Promise<boolean> {
    const { batches, board, log, results } = this.#deps;
    const why = sentenceOf(name, missed);
    const record = await batches.of(taskId);
    const times = (record.missed ?? 0) + 1;
    await batches.keep(taskId, { ...record, missed: times });
    await results?.reopen({ task_id: name.task_id, node_id: name.node_id });
    log.warn(why, { event: "coord.input.missed", ...name });
    if (times <= againMax) return true;
    await board.fail(hold, { error: `input_missed: ${why}`, retryable: false });
    return false;
  }

  async #countMissing(reader: string, source: { id: string; node: string }, route: Route, aside: ReadonlySet<string>) {
    const { parts } = this.#deps;
    let missing = 0;
    let of = 0;
    for (let after = 0; ; ) {
      const page = await parts.read(source.id, after, pageParts);
      const last = page.parts.at(-1);
      if (last === undefined) return { missing, of };
      after = last.sequence;
      of += page.parts.length;
      missing += await this.#absent(reader, namesOf(source.node, page.parts, route), aside);
    }
  }

  /** The number of these batches that have neither a result nor a dead letter. Each batch may have one of several names. */
  async #absent(reader: string, batches: readonly (readonly string[])[], aside: ReadonlySet<string>): Promise<number> {
    const absent = new Set(await this.#deps.parts.absent(reader, batches.flat()));
    return batches.filter((names) => names.every((uid) => absent.has(uid) && !aside.has(uid))).length;
  }
}

type Route = PullArgs & Partial<RechunkArgs>;

function routeOf({ plan, node }: Place): Route | null {
  const inline = plan?.dialect === dialectName ? (node?.origin as GraphNode | undefined)?.io.input_inline : null;
  if (typeof inline?.input_adapter !== "string") return null;
  const checked = checkAdapterArgs(inline.input_adapter, inline.input_args, argDefaults);
  // An adapter that continues after the end of its sources ends only by a cancel.
  return checked?.ok && checked.args.eofOnTaskDone ? checked.args : null;
}

/**
 * For each part, the possible names of its batch; none for a part without a batch. When a part has several pieces, the last piece is
 * checked, because it comes after all others.
 */
function namesOf(source: string, parts: readonly Part[], { size, metaListKey = null }: Route): string[][] {
  if (size === undefined) return parts.map(({ uid }) => [uid, partUidOf(namedBySource(source, uid))]);
  return parts.flatMap(({ uid, value }) => {
    const pieces = Math.ceil(itemsOf(metaOf(value), metaListKey).length / size);
    return pieces === 0 ? [] : [[dedupIds.chunk(source, uid, pieces - 1)]];
  });
}

function sentenceOf({ task_id, node_id }: WireName, { source, parts }: Missed): string {
  const what = `${node_id} of task ${task_id} was reported as complete`;
  if (parts === null) return `${what} before its source ${source} was complete. It runs again when the source has ended.`;
  const hint =
    parts.of > 200 ? " Workers of the reference read the first 200 parts of a source: make larger batches, or let ours do it." : "";
  return `${what}, but it has no result for ${parts.missing} of the ${parts.of} parts of ${source}.${hint}`;
}
