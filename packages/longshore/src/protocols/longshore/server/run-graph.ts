// Serves the graph of a run and its timeline, as columns.

import { z } from "zod";
import type { Growth } from "../../../core/list-text.ts";
import { inTurns } from "../../../core/slices/slice-work.ts";
import { shownState } from "../../../engine/board/wait-reason.ts";
import { DefinitionCache } from "../../../engine/run/definition-cache.ts";
import type { Definition } from "../../../engine/run/dialect.ts";
import { functionGraph } from "../../../engine/run/function-graph.ts";
import type { Plan } from "../../../engine/run/plan.ts";
import type { AttemptTimes, RecordTimes, TimedRecord } from "../../../engine/run/record-times.ts";
import type { RunHead } from "../../../engine/run/run.ts";
import { planGraph, type RunGraph } from "../../../engine/run/run-graph.ts";
import type { ProtocolEngine } from "../../server-half.ts";
import { runGraphShape, runTimelineShape } from "../wire/graph-shapes.ts";
import { jsonText, type Operation, operation } from "./operation.ts";
import { position } from "./query.ts";
import { knownRun, runNotFound } from "./runs.ts";

const tag = "runs";
/** Attempts in one page of a timeline: it is read and written in a few slices. */
const timelineAttempts = 2_000;
/** Entries of a column that are written as JSON without a pause: less than a millisecond. */
const entriesAtOnce = 2_000;

type GraphDeps = Pick<ProtocolEngine, "clock" | "plan" | "reader" | "recordReader" | "slices">;

export function graphOperations(deps: GraphDeps): Operation[] {
  const { reader, recordReader, clock } = deps;
  const graphs = new PlanGraphs(deps);
  return [
    operation({
      ...{ id: "getRunGraph", tag, method: "GET", path: "/runs/:id/graph", action: "run.read", stored: true },
      summary: "Read the graph of a run as columns: its nodes, and the edges between them.",
      answers: { 200: { description: "For a durable function, the commands so far.", schema: runGraphShape }, ...runNotFound },
      async handle({ params }) {
        const { run, definition, plan } = await plannedRun(deps, params.id);
        const about = { runId: run.id, definitionId: run.definitionId, workflow: run.workflow, dialect: plan.dialect };
        const columns = plan.driven
          ? await columnsOf(deps, await inTurns(functionGraph(plan, await recordReader.records(run.id)), deps.slices))
          : await graphs.of(definition, plan);
        const head = JSON.stringify({ ...about, isFunction: plan.driven }).slice(0, -1);
        const text = await reader.longBody((growth) => counted(growth, [`${head},`, ...columns, "}"]));
        return { status: 200, headers: { "content-type": "application/json" }, body: text };
      },
    }),
    operation({
      ...{ id: "getRunTimeline", tag, method: "GET", path: "/runs/:id/timeline", action: "run.read", stored: true },
      summary: "Read when each attempt of each step was queued, started and ended, as columns.",
      query: z.strictObject({ after: position }),
      answers: {
        200: { description: `A page of about ${timelineAttempts} attempts, in no order.`, schema: runTimelineShape },
        ...runNotFound,
      },
      async handle({ params, query: { after } }) {
        const { run, plan } = await plannedRun(deps, params.id);
        const page = { limit: timelineAttempts, ...(after === undefined ? {} : { after }) };
        const { items, next } = await recordReader.timed(run.id, page);
        // Reading the records of this page may have used up this turn of the event loop.
        await deps.slices.turn(items.length);
        const shown = items.filter(({ record }) => !plan.nodes[record.node]?.hidden);
        const { id: runId, state, createdAt: t0, endedAt, retries } = run;
        const about = { runId, state, t0, now: endedAt === null ? clock.now() : null, endedAt, retries };
        return jsonText(
          200,
          JSON.stringify({ ...about, ...timelineOf(t0, shown, clock.now()), next: next === null ? null : String(next) }),
        );
      },
    }),
  ];
}

async function plannedRun({ reader, plan }: GraphDeps, id = ""): Promise<{ run: RunHead; definition: Definition; plan: Plan }> {
  const run = await knownRun((known) => reader.runHead(known), id);
  const definition = await reader.definitionById(run.definitionId);
  if (definition === undefined) throw new Error(`Run ${run.id} has no definition ${run.definitionId}.`);
  return { run, definition, plan: plan(definition) };
}

/** The graphs of plans as JSON text. All runs of a definition have the same graph. */
class PlanGraphs {
  readonly #deps: GraphDeps;
  readonly #known = new DefinitionCache<readonly string[]>();

  constructor(deps: GraphDeps) {
    this.#deps = deps;
  }

  async of(definition: Definition, plan: Plan): Promise<readonly string[]> {
    const known = this.#known.get(definition.id);
    if (known !== undefined) return known;
    const columns = await columnsOf(this.#deps, await inTurns(planGraph(plan), this.#deps.slices));
    const chars = columns.reduce((sum, { length }) => sum + length, 0);
    return this.#known.set(definition.id, columns, definition, chars);
  }
}

/** The JSON text of the fields of a graph, in pieces. */
async function columnsOf({ slices }: Pick<GraphDeps, "slices">, graph: RunGraph): Promise<string[]> {
  const pieces: string[] = [];
  for (const [name, column] of Object.entries(graph) as [string, unknown][]) {
    pieces.push(`${pieces.length === 0 ? "" : ","}"${name}":`);
    if (!Array.isArray(column)) pieces.push(JSON.stringify(column));
    else {
      for (let from = 0; from === 0 || from < column.length; from += entriesAtOnce) {
        await slices.turn(entriesAtOnce / 2);
        const text = JSON.stringify(column.slice(from, from + entriesAtOnce)).slice(1, -1);
        pieces.push(`${from === 0 ? "[" : ","}${text}`);
      }
      pieces.push("]");
    }
  }
  return pieces;
}

async function counted(growth: Growth, pieces: readonly string[]): Promise<readonly string[]> {
  for (const piece of pieces) {
    growth.count(piece.length);
    await growth.turn();
  }
  return pieces;
}

function timelineOf(t0: number, records: readonly TimedRecord[], now: number) {
  const states = new Names();
  const verbs = new Names();
  const holders = new Names();
  const attempts = {
    step: [] as number[],
    attempt: [] as number[],
    state: [] as (number | null)[],
    queued: [] as number[],
    due: [] as (number | null)[],
    start: [] as (number | null)[],
    end: [] as (number | null)[],
    closedBy: [] as (number | null)[],
    holder: [] as (number | null)[],
  };
  const sinceBegin = (time: number | null) => (time === null ? null : time - t0);
  const add = (node: number, times: Omit<AttemptTimes, "grant">, state: string | null) => {
    const { attempt, queuedAt, dueAt, startedAt, claimedAt, endedAt, closedBy, holder } = times;
    attempts.step.push(node);
    attempts.attempt.push(attempt + 1);
    attempts.state.push(states.of(state));
    attempts.queued.push(queuedAt - t0);
    attempts.due.push(dueAt > queuedAt ? dueAt - queuedAt : null);
    attempts.start.push(sinceBegin(claimedAt ?? startedAt));
    attempts.end.push(sinceBegin(endedAt));
    attempts.closedBy.push(verbs.of(endedAt === null ? null : closedBy));
    attempts.holder.push(holders.of(holder));
  };
  for (const { record, earlier } of records) {
    for (const times of earlier) add(record.node, times, null);
    if (isCurrent(record)) add(record.node, record, shownState(record, now));
  }
  return { states: states.all, verbs: verbs.all, holders: holders.all, attempts };
}

/** The record of a step that was started again has only its earlier attempts. */
function isCurrent({ state }: RecordTimes): boolean {
  return state !== "forgotten";
}

/** Replaces repeated names by numbers. */
class Names {
  readonly all: string[] = [];
  readonly #known = new Map<string, number>();

  of(name: string | null): number | null {
    if (name === null) return null;
    const known = this.#known.get(name);
    if (known !== undefined) return known;
    this.#known.set(name, this.all.length);
    return this.all.push(name) - 1;
  }
}
