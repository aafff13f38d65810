// Serves the statistics of the server, for pages that show whether it works well.

import { z } from "zod";
import { LongshoreError } from "../../../core/errors.ts";
import type { RunState } from "../../../engine/run/run.ts";
import { type RunCount, type Window, windows } from "../../../engine/stats/statistics.ts";
import type { ProtocolEngine } from "../../server-half.ts";
import { countsShape, errorGroupsShape, statsShape } from "../wire/stats-shapes.ts";
import { json, type Operation, operation } from "./operation.ts";
import { listOf } from "./query.ts";

const tag = "statistics";
/** Workflows in one answer: those with the most runs. */
const workflowsMax = 1_000;

const by = listOf(z.enum(["state", "workflow"]), 2)
  .default(["state"])
  .describe("state, workflow, or both with a comma between them; state when absent");
const name = z.string().min(1).max(512);
const window = z
  .enum(Object.keys(windows) as [Window, ...Window[]])
  .default("15m")
  .describe(`${Object.keys(windows).join(", ")}; 15m when absent`);
const hours = { "1h": 1, "24h": 24, "7d": 168 } as const;
const errorWindow = z
  .enum(Object.keys(hours) as [keyof typeof hours])
  .default("24h")
  .describe(`${Object.keys(hours).join(", ")}; 24h when absent`);

type StatsDeps = Pick<ProtocolEngine, "statistics">;

export function statsOperations({ statistics }: StatsDeps): Operation[] {
  return [
    operation({
      ...{ id: "countRuns", tag, method: "GET", path: "/counts", action: "run.read" },
      summary: "Count the stored runs by state, by workflow, or by both.",
      query: z.strictObject({ by }),
      answers: { 200: { description: "Only counts above 0, the largest first.", schema: countsShape } },
      handle: async ({ query }) => json(200, countsBody(await statistics.counts(), query.by)),
    }),
    operation({
      ...{ id: "getStats", tag, method: "GET", path: "/stats", action: "run.read" },
      summary: "Read figures over time: of the server, of a lane or of a workflow.",
      query: z
        .strictObject({ window, lane: name.optional(), workflow: name.optional() })
        .refine(({ lane, workflow }) => lane === undefined || workflow === undefined, {
          path: ["workflow"],
          error: "not together with lane",
        }),
      answers: {
        200: { description: "Samples of 1 s, 10 s or 5 min; of a lane or workflow: 10 s, 5 min or 1 h.", schema: statsShape },
        404: { description: "Nothing was counted under this name lately." },
      },
      handle({ query: { window, lane, workflow } }) {
        const of = lane !== undefined ? { lane } : workflow !== undefined ? { workflow } : undefined;
        const columns = statistics.series(window, of);
        if (columns === undefined) throw uncounted(lane === undefined ? "workflow" : "lane", lane ?? workflow ?? "");
        return json(200, { ...columns, since: statistics.since });
      },
    }),
    operation({
      ...{ id: "listErrors", tag, method: "GET", path: "/errors", action: "run.read" },
      summary: "List the errors of runs that ended lately, in groups of similar errors.",
      query: z.strictObject({ window: errorWindow }),
      answers: { 200: { description: "The newest first, at most 500.", schema: errorGroupsShape } },
      async handle({ query }) {
        const items = await statistics.errors(hours[query.window]);
        return json(200, { items, runs: items.reduce((sum, { count }) => sum + count, 0) });
      },
    }),
  ];
}

function countsBody(counts: readonly RunCount[], by: readonly ("state" | "workflow")[]) {
  const total = counts.reduce((sum, { count }) => sum + count, 0);
  const sums = new Map<string, { workflow?: string; state?: RunState; count: number }>();
  const ofWorkflow = new Map<string, number>();
  for (const { workflow, state, count } of counts) {
    const key = by.map((field) => (field === "state" ? state : workflow)).join("\u0000");
    const sum = sums.get(key) ?? { ...(by.includes("workflow") && { workflow }), ...(by.includes("state") && { state }), count: 0 };
    sums.set(key, { ...sum, count: sum.count + count });
    ofWorkflow.set(workflow, (ofWorkflow.get(workflow) ?? 0) + count);
  }
  const items = [...sums.values()].sort((a, b) => b.count - a.count);
  if (!by.includes("workflow") || ofWorkflow.size <= workflowsMax) return { items, total, left: 0 };
  const listed = new Set(
    [...ofWorkflow]
      .sort((a, b) => b[1] - a[1])
      .slice(0, workflowsMax)
      .map(([workflow]) => workflow),
  );
  const left = ofWorkflow.size - listed.size;
  return { items: items.filter(({ workflow }) => listed.has(workflow as string)), total, left };
}

function uncounted(field: string, name: string): LongshoreError {
  return new LongshoreError("LONGSHORE_NOT_FOUND", `Nothing was counted lately for the ${field} ${name}.`, { detail: { field } });
}
