// How far the readers of a run's parts are. For each step that produces parts: what it has given, and what each reader has finished with.

import { z } from "zod";
import type { PartTime } from "../../../engine/part/store.ts";
import type { Plan } from "../../../engine/run/plan.ts";
import type { RecordTimes } from "../../../engine/run/record-times.ts";
import { taskIdOf } from "../../../engine/run/run.ts";
import type { ProtocolEngine } from "../../server-half.ts";
import { type streamShape, streamsShape } from "../wire/stream-shapes.ts";
import { json, type Operation, operation } from "./operation.ts";
import { position } from "./query.ts";
import { knownRun, runNotFound } from "./runs.ts";

/** Attempts that one page visits. Most steps produce no parts, and each takes a short search in an index. */
const attemptsMax = 500;
/** Steps after a producer that are looked at. */
const readersMax = 100;
/** The weight of a reader in a turn of the event loop: its row is read without texts, and then its stretches. */
const readerWeight = 2;

type StreamDeps = Pick<ProtocolEngine, "parts" | "plan" | "reader" | "recordReader" | "slices">;
type Stream = z.output<typeof streamShape>;

export function streamOperations(deps: StreamDeps): Operation[] {
  const { reader, recordReader, parts, plan, slices } = deps;
  return [
    operation({
      ...{ id: "listRunStreams", tag: "runs", method: "GET", path: "/runs/:id/streams", action: "run.read" },
      summary: "Show which steps of a run produce parts, and how far their readers are.",
      query: z.strictObject({ after: position }),
      answers: {
        200: { description: "A page; it may be short, even empty, and still have a next.", schema: streamsShape },
        ...runNotFound,
      },
      async handle({ params, query: { after } }) {
        const run = await knownRun((known) => reader.runHead(known), params.id as string);
        const definition = await reader.definitionById(run.definitionId);
        if (definition === undefined) throw new Error(`Run ${run.id} has no definition ${run.definitionId}.`);
        const known = plan(definition);
        const page = { limit: attemptsMax, ...(after === undefined ? {} : { after }) };
        const { items, next } = await recordReader.timed(run.id, page);
        const records = items.map(({ record }) => record).filter(({ state }) => state !== "forgotten");
        await slices.turn(records.length);
        const newest = await parts.newest(records);
        const streams: Stream[] = [];
        for (const [at, record] of records.entries()) {
          const last = newest[at];
          if (last) streams.push(await streamOf(deps, { plan: known, runId: run.id, record, last }));
        }
        return json(200, { items: streams, next: next === null ? null : String(next) });
      },
    }),
  ];
}

interface Source {
  readonly plan: Plan;
  readonly runId: string;
  readonly record: RecordTimes;
  readonly last: PartTime;
}

async function streamOf(deps: StreamDeps, { plan, runId, record, last }: Source): Promise<Stream> {
  const early = plan.onFirstPart.get(record.node);
  // Commands of a durable function are not in its plan.
  const after = plan.driven ? [] : (plan.dependents[record.node] ?? []);
  const readers: Stream["readers"] = [];
  for (const node of after.slice(0, readersMax)) {
    await deps.slices.turn(readerWeight);
    const head = await deps.reader.taskHead(taskIdOf(runId, node));
    const [progress] = head === undefined ? [null] : await deps.parts.progress([{ reader: head, source: record }]);
    if (!progress && !early?.has(node)) continue;
    const read = progress?.read ?? null;
    readers.push({
      ...{ step: plan.nodes[node]?.id ?? "", read, isWhole: progress?.isWhole ?? true },
      // Parts may have arrived since the newest one was read.
      ...{ behind: read === null ? null : Math.max(0, last.sequence - read), oldest: progress?.oldest ?? null },
    });
  }
  const { sequence: given, at: newestAt } = last;
  return { step: record.step, given, newestAt, readers, hasMoreReaders: after.length > readersMax };
}
