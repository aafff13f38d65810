// Lists runs without their texts, newest first. A list walks the board's index of runs and reads a bounded number of rows. In this index
// the items of a run are next to the run, so the walk skips all items of a run at once.

import type { Reader } from "../../../../engine/run/reader.ts";
import type { RunHead, RunState } from "../../../../engine/run/run.ts";
import { settingsOf } from "../../dialect/settings.ts";
import { invalid } from "../refuse.ts";
import { itemPrefix, ownRunId, wireRun } from "../run-id.ts";
import { statesOf } from "./render.ts";

export interface ListFilter {
  readonly status?: number;
  readonly flowName?: string;
  readonly rootRunId?: string;
  readonly parentRunId?: string;
  readonly rootsOnly: boolean;
  readonly maxDepth?: number;
  readonly limit?: number;
  readonly offset?: number;
}

const limitDefault = 100;
const limitMax = 1_000;
/** Maximum offset: the walk begins again for each page, so pages cannot reach far back. */
const offsetMax = 100_000;
/** How many rows one list reads: some tens of milliseconds. A filter that matches almost nothing finds only runs within these rows. */
const looksMax = 20_000;
/** Runs per read. */
const pageSize = 100;
/** Runs of one family that are read. */
const familyMax = 5_000;

export async function listRuns(reader: Reader, filter: ListFilter): Promise<RunHead[]> {
  const { limit = limitDefault, offset = 0 } = filter;
  if (limit > limitMax) throw invalid("limit", `is ${limit}, expected at most ${limitMax}`);
  if (offset > offsetMax) throw invalid("offset", `is ${offset}, expected at most ${offsetMax}`);
  const runs: RunHead[] = [];
  let skipped = 0;
  const matches = filterOf(filter);
  if (matches === null) return [];
  const walk = filter.rootRunId === undefined && filter.parentRunId === undefined ? newest(reader, filter) : family(reader, filter);
  for await (const run of walk) {
    if (runs.length >= limit) break;
    if (!matches(run)) continue;
    if (skipped < offset) skipped++;
    else runs.push(run);
  }
  return runs;
}

/** Null when no run can match. */
function filterOf(filter: ListFilter): ((run: RunHead) => boolean) | null {
  const states = filter.status === undefined || filter.status === 0 ? null : new Set<RunState>(statesOf(filter.status));
  if (states?.size === 0) return null;
  const parent = filter.parentRunId === undefined ? undefined : ownRunId(filter.parentRunId);
  const root = filter.rootRunId === undefined ? undefined : ownRunId(filter.rootRunId);
  return (run) => {
    const { item, parentRunId, rootRunId = run.id, depth = 0 } = settingsOf(run);
    if (item !== undefined || (states !== null && !states.has(run.state))) return false;
    if (filter.flowName !== undefined && run.workflow !== filter.flowName) return false;
    if (root !== undefined && rootRunId !== root) return false;
    if (parent !== undefined && parentRunId !== parent) return false;
    if (filter.rootsOnly && parentRunId !== undefined) return false;
    return filter.maxDepth === undefined || depth <= filter.maxDepth;
  };
}

/** All runs, or those of one flow or state, newest first. Several states may have one status on the wire. */
async function* newest(reader: Reader, { flowName, status }: ListFilter): AsyncGenerator<RunHead> {
  const states = status === undefined || status === 0 ? [undefined] : statesOf(status);
  const walks = states.map((state) => walk(reader, flowName, state));
  const heads = await Promise.all(walks.map((each) => each.next()));
  for (;;) {
    const ids = heads.map(({ done, value }) => (done ? "" : (value as RunHead).id));
    const best = ids.indexOf(ids.toSorted().at(-1) ?? "");
    if (ids[best] === "") return;
    yield heads[best]?.value as RunHead;
    heads[best] = await (walks[best] as AsyncGenerator<RunHead>).next();
  }
}

async function* walk(reader: Reader, workflow: string | undefined, state: RunState | undefined): AsyncGenerator<RunHead> {
  const query = { limit: pageSize, ...(workflow === undefined ? {} : { workflow }), ...(state === undefined ? {} : { state }) };
  let looked = 0;
  for (let before: string | undefined; looked < looksMax; ) {
    const page = await reader.runHeads({ ...query, ...(before === undefined ? {} : { before }) });
    const item = page.items.findIndex((run) => settingsOf(run).item !== undefined);
    const shown = item < 0 ? page.items : page.items.slice(0, item);
    looked += shown.length + 1;
    yield* shown;
    // Continue before all items of that run, at the run itself.
    if (item >= 0) before = itemPrefix(wireRun((page.items[item] as RunHead).id).runId);
    else if (page.next === null) return;
    else before = page.next;
  }
}

/** The runs of one family, including its root, newest first. */
async function* family(reader: Reader, filter: ListFilter): AsyncGenerator<RunHead> {
  const of = ownRunId((filter.rootRunId ?? filter.parentRunId) as string);
  const named = await reader.runHead(of);
  const root = named === undefined ? of : (settingsOf(named).rootRunId ?? named.id);
  const found = await reader.search({ aliases: [root], offset: 0, limit: familyMax });
  yield* found.heads;
  const first = root === of ? named : await reader.runHead(root);
  if (first !== undefined) yield first;
}
