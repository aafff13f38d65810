// All routes of our own API, as one group. Each topic has a file in this folder.

import { turnRows } from "../../../core/slices/slices.ts";
import type { RouteGroup } from "../../../net/http/http.ts";
import { refuse } from "../../../net/http/problem.ts";
import type { ProtocolEngine, Serving } from "../../server-half.ts";
import { aboutOperations } from "./about.ts";
import { auditOperations } from "./audit.ts";
import { blobOperations } from "./blobs.ts";
import { bulkOperations } from "./bulk.ts";
import type { Changes } from "./changes.ts";
import { dataOperations } from "./data.ts";
import { deadLetterOperations } from "./dead-letters.ts";
import { definitionOperations } from "./definitions.ts";
import { emitOperations } from "./emit.ts";
import { eventOperations } from "./events.ts";
import { haltOperations } from "./halts.ts";
import { HealthCheck } from "./health.ts";
import { hintOperations } from "./hints.ts";
import { historyOperations } from "./history.ts";
import { limitOperations } from "./limits.ts";
import { logOperations } from "./logs.ts";
import { nodeOperations } from "./nodes.ts";
import { openApi } from "./openapi.ts";
import type { Operation } from "./operation.ts";
import { partOperations } from "./parts.ts";
import { graphOperations } from "./run-graph.ts";
import { runOrderOperations } from "./run-orders.ts";
import { runOperations } from "./runs.ts";
import { scheduleOperations } from "./schedules.ts";
import { signalOperations } from "./signals.ts";
import { statsOperations } from "./stats.ts";
import { streamOperations } from "./streams.ts";
import { systemOperations } from "./system.ts";
import { taskOperations } from "./tasks.ts";
import { Ticks } from "./ticks.ts";
import { workerOperations } from "./workers.ts";
import { workflowOperations } from "./workflows.ts";

export interface OwnGroup extends RouteGroup {
  readonly routes: readonly Operation[];
}

export interface OwnDeps {
  readonly engine: ProtocolEngine;
  readonly serving: Pick<Serving, "metrics" | "version" | "hasPages" | "readDefinition" | "definitionFiles" | "tokens" | "workerPrograms">;
  readonly changes: Changes;
}

export function ownRoutes({ engine, serving, changes }: OwnDeps): OwnGroup {
  const { audit, board, carriers, catalogue, clock, facts, foreseePruning, makeId, plan, reader, runs, schedules, slices, statistics } =
    engine;
  const { storage, summaries, tableSizes, workers } = engine;
  const { metrics, version, hasPages, readDefinition, definitionFiles: files, tokens, workerPrograms } = serving;
  const defining = { catalogue, clock, makeId, plan, reader, runs, schedules, readDefinition, files };
  const health = new HealthCheck({ storage, clock, version, closing: board.dismissed });
  let document: Promise<string> | undefined;
  const routes: Operation[] = [
    ...definitionOperations(defining),
    ...workflowOperations({ ...defining, carriers, slices, statistics, summaries, workers }),
    ...runOperations(engine),
    ...runOrderOperations(engine),
    ...graphOperations(engine),
    ...streamOperations(engine),
    ...taskOperations(engine),
    ...dataOperations(engine),
    ...historyOperations(engine),
    ...logOperations(engine),
    ...partOperations(engine),
    ...signalOperations(engine),
    ...emitOperations(engine),
    ...scheduleOperations(engine),
    ...statsOperations(engine),
    ...workerOperations(engine),
    ...haltOperations(engine),
    ...limitOperations(engine),
    ...nodeOperations(engine),
    ...aboutOperations({ clock, facts, reader, storage, version, tokens }),
    ...auditOperations({ audit, facts, foreseePruning, tableSizes, tokens }),
    ...bulkOperations(engine),
    ...deadLetterOperations(engine),
    ...hintOperations({ workerPrograms, tokens }),
    ...blobOperations(engine),
    ...eventOperations({ changes, ticks: new Ticks(engine), slices }),
    ...systemOperations({
      health,
      metrics,
      hasPages,
      // Created at the first read: most servers never need it.
      document: () => {
        document ??= openApi(routes, version, () => slices.turn(turnRows)).then((made) => JSON.stringify(made));
        return document;
      },
    }),
  ];
  return { name: "longshore", routes, refuse };
}
