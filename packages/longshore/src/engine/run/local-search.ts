// Searches runs from the newest on, in slices, so that other requests are served meanwhile. It visits a bounded number of runs.

import { inTurns } from "../../core/slices/slice-work.ts";
import { type Slices, wholeRow } from "../../core/slices/slices.ts";
import { sortInSlices } from "../../core/slices/sort-slices.ts";
import { hasTextInSlices } from "../../core/text-search.ts";
import { readAll, type Scan, type TableRows, type TableSpec } from "../rows.ts";
import type { ReadDeps } from "../sliced-reads.ts";
import { runHeadTable, runTable } from "../tables/run.ts";
import { byId, sizesOf, turnsOf, walkRuns } from "./local-walk.ts";
import { type RunSearch, searchMax } from "./reader.ts";
import type { Run, RunHead, RunState } from "./run.ts";

type Value = string | number;

/** A run that was found, with the value by which the result is sorted. */
interface Hit {
  readonly id: string;
  readonly key: Value | null;
}

export interface FoundRuns {
  total: number;
  runs: AsyncIterable<Run>;
  heads: AsyncIterable<RunHead>;
}

export async function searchRuns({ store, read, slices }: ReadDeps, search: RunSearch): Promise<FoundRuns> {
  const { by, down } = search.order ?? { by: "created", down: true };
  const hits: Hit[] = [];
  const matches = matching(search);
  const candidates = store.table(search.text === undefined ? candidateTable : candidateTextTable);
  for await (const ids of idsInSlices({ store, read, slices }, search)) {
    for (const candidate of await read((tx) => readAll(ids, (id) => candidates.get(tx, id)))) {
      // The run may have been removed since.
      if (candidate === null || !matches(candidate)) continue;
      if (search.text !== undefined && !(await hasAnywhere(candidate.texts, search.text, slices))) continue;
      hits.push({ id: candidate.id, key: by === "created" ? null : candidate[orders[by]] });
    }
  }
  const ordered = await inOrder(hits, slices, by !== "created", down);
  const wanted = ordered.slice(search.offset, search.offset + search.limit);
  const each = <R>(rows: TableRows<R>, spent: (row: R) => number): AsyncIterable<R> => ({
    /** Rows are read one by one, because together they may have gigabytes. */
    async *[Symbol.asyncIterator]() {
      for (const { id } of wanted) {
        await slices.turn(wholeRow);
        const row = await read((tx) => rows.get(tx, id));
        if (row === null) continue;
        slices.spent(spent(row));
        yield row;
      }
    },
  });
  return {
    total: hits.length,
    runs: each(store.table(runTable), ({ input, output }) => input.length + (output?.length ?? 0)),
    heads: each(store.table(runHeadTable), () => 0),
  };
}

/** A run that may match. */
interface Candidate {
  readonly id: string;
  readonly workflow: string;
  readonly state: RunState;
  readonly alias: string | null;
  readonly createdAt: number;
  readonly endedAt: number | null;
  /** The texts that are searched. */
  readonly texts: readonly (string | null)[];
}

const orders = { ended: "endedAt", workflow: "workflow", state: "state" } as const;

function candidates(more: readonly string[]): TableSpec<Candidate> {
  return {
    ...{ name: "run", key: ["id"] },
    columns: ["id", "workflow", "state", "alias", "created_at", "ended_at", ...more].map((column) => [column, () => null] as const),
    of: (row) => ({
      ...{ id: row.id as string, workflow: row.workflow as string, state: row.state as RunState, alias: row.alias as string | null },
      ...{ createdAt: row.created_at as number, endedAt: row.ended_at as number | null },
      texts: ["id", "workflow", "alias", ...more].map((column) => row[column] as string | null),
    }),
  };
}

const candidateTable = candidates([]);
const candidateTextTable = candidates(["input", "output", "error"]);

/** Ids in the order of the search. Each list is a slice whose rows may be read now. */
async function* idsInSlices(deps: ReadDeps, search: RunSearch): AsyncGenerator<readonly string[]> {
  if (search.ids !== undefined) {
    const named = [...new Set(search.ids)].sort().reverse().slice(0, searchMax);
    for await (const rows of sizesOf(deps, named))
      for await (const { ids } of turnsOf(deps.slices, rows, search.text !== undefined)) yield ids;
    return;
  }
  let looked = 0;
  for await (const { ids } of walkRuns(deps, { order: byId, scans: [indexOf(search)], searched: search.text !== undefined })) {
    yield ids;
    looked += ids.length;
    if (looked >= searchMax) return;
  }
}

/** The index that fits the search best. */
function indexOf({ workflows, aliases }: RunSearch): Scan {
  if (aliases?.length === 1) return { by: ["alias", "id"], equal: [aliases[0] as string] };
  return workflows?.length === 1 ? { by: ["workflow", "id"], equal: [workflows[0] as string] } : { by: ["id"] };
}

async function hasAnywhere(texts: readonly (string | null)[], text: string, slices: Slices): Promise<boolean> {
  for (const value of texts) if (value !== null && (await inTurns(hasTextInSlices(value, text), slices))) return true;
  return false;
}

function matching({ workflows, states, aliases, like = {}, created = {}, ended = {} }: RunSearch): (run: Candidate) => boolean {
  const oneOf = <T>(wanted: readonly T[] | undefined) => {
    const set = wanted === undefined ? null : new Set(wanted);
    return (value: T | null) => set === null || (value !== null && set.has(value));
  };
  const within = ({ after, before }: { readonly after?: number; readonly before?: number }) => {
    if (after === undefined && before === undefined) return () => true;
    return (at: number | null) => at !== null && (after === undefined || at > after) && (before === undefined || at < before);
  };
  const [isWorkflow, isState, isAlias] = [oneOf(workflows), oneOf(states), oneOf(aliases)];
  const [isCreated, isEnded] = [within(created), within(ended)];
  const [likeId, likeWorkflow, likeAlias] = [patternOf(like.id), patternOf(like.workflow), patternOf(like.alias)];
  return ({ id, workflow, state, alias, createdAt, endedAt }) =>
    isWorkflow(workflow) &&
    isState(state) &&
    isAlias(alias) &&
    isCreated(createdAt) &&
    isEnded(endedAt) &&
    likeId(id) &&
    likeWorkflow(workflow) &&
    likeAlias(alias);
}

/**
 * A pattern in which `*` stands for any text; upper and lower case are the same. Each part is searched for after the one before, so that
 * nothing is compared twice.
 */
function patternOf(pattern: string | undefined): (value: string | null) => boolean {
  if (pattern === undefined) return () => true;
  const [first = "", ...rest] = pattern.toLowerCase().split("*");
  const final = rest.pop();
  return (value) => {
    if (value === null) return false;
    const text = value.toLowerCase();
    if (final === undefined) return text === first;
    if (!text.startsWith(first)) return false;
    let at = first.length;
    for (const piece of rest) {
      const found = text.indexOf(piece, at);
      if (found === -1) return false;
      at = found + piece.length;
    }
    return text.length - final.length >= at && text.endsWith(final);
  };
}

/** Hits are newest first. Ids rise with time, so the order by creation needs no sorting, in either direction. */
async function inOrder(hits: Hit[], slices: Slices, byKey: boolean, down: boolean): Promise<Hit[]> {
  const ordered = byKey ? await sortInSlices(hits, down ? (a, b) => compare(b, a) : compare, slices) : hits;
  return byKey || down ? ordered : ordered.reverse();
}

/** Absent values come first. Equal values are sorted by the id. */
function compare(a: Hit, b: Hit): number {
  if (a.key !== b.key) {
    if (a.key === null) return -1;
    return b.key === null || a.key > b.key ? 1 : -1;
  }
  return a.id < b.id ? -1 : 1;
}
