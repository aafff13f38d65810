// The answers of the API, from the shapes that the server documents. Types only: nothing of the server is bundled.

import type { z } from "zod";
import type {
  auditEntryShape,
  pruningShape,
  storageShape,
  tokensShape,
} from "../../../longshore/src/protocols/longshore/wire/audit-shapes.ts";
import type { bulkShape } from "../../../longshore/src/protocols/longshore/wire/bulk-shapes.ts";
import type { deadLettersShape } from "../../../longshore/src/protocols/longshore/wire/dead-letter-shapes.ts";
import type { runGraphShape, runTimelineShape } from "../../../longshore/src/protocols/longshore/wire/graph-shapes.ts";
import type { foreseenShape } from "../../../longshore/src/protocols/longshore/wire/order-shapes.ts";
import type { RunListBody, RunSummaryBody } from "../../../longshore/src/protocols/longshore/wire/run-list-shapes.ts";
import type { scheduleShape, wholeScheduleShape } from "../../../longshore/src/protocols/longshore/wire/schedule-shapes.ts";
import type { hintsShape, infoShape, whoamiShape } from "../../../longshore/src/protocols/longshore/wire/server-shapes.ts";
import type {
  attemptShape,
  chunkShape,
  definitionShape,
  journalShape,
  runShape,
  stepShape,
  taskShape,
} from "../../../longshore/src/protocols/longshore/wire/shapes.ts";
import type { signalShape } from "../../../longshore/src/protocols/longshore/wire/signal-shapes.ts";
import type { countsShape, errorGroupsShape, statsShape } from "../../../longshore/src/protocols/longshore/wire/stats-shapes.ts";
import type { streamShape, streamsShape } from "../../../longshore/src/protocols/longshore/wire/stream-shapes.ts";
import type { limitShape, queueShape, workerShape } from "../../../longshore/src/protocols/longshore/wire/worker-shapes.ts";
import type {
  checkShape,
  diffShape,
  problemShape,
  versionShape,
  wholeWorkflowShape,
  workflowShape,
} from "../../../longshore/src/protocols/longshore/wire/workflow-shapes.ts";

export type RunSummary = RunSummaryBody;
export type RunList = RunListBody;
export type Run = z.output<typeof runShape>;

export type Step = z.output<typeof stepShape>;
export type TaskView = z.output<typeof taskShape>;
export type Attempt = z.output<typeof attemptShape>;
export type Counts = z.output<typeof countsShape>;
export type Stats = z.output<typeof statsShape>;
export type ErrorGroups = z.output<typeof errorGroupsShape>;
export type Foreseen = z.output<typeof foreseenShape>;
export type Waiting = NonNullable<Step["waiting"]>;
export type RunGraph = z.output<typeof runGraphShape>;
export type RunTimeline = z.output<typeof runTimelineShape>;
export type Journal = z.output<typeof journalShape>;
export type Stream = z.output<typeof streamShape>;
export type Streams = z.output<typeof streamsShape>;
export type Signal = z.output<typeof signalShape>;
export interface LogPage extends Page<LogChunk> {
  readonly looked?: number | undefined;
}
export type AuditEntry = z.output<typeof auditEntryShape>;
export type Hints = z.output<typeof hintsShape>;
export type LogChunk = z.output<typeof chunkShape>;
export type Definition = z.output<typeof definitionShape>;
export type Workflow = z.output<typeof workflowShape>;
export type WholeWorkflow = z.output<typeof wholeWorkflowShape>;
export type WorkflowVersion = z.output<typeof versionShape>;
export type WorkflowDiff = z.output<typeof diffShape>;
export type WorkflowCheck = z.output<typeof checkShape>;
export type DefinitionProblem = z.output<typeof problemShape>;
export type Queue = z.output<typeof queueShape>;
export type Limit = z.output<typeof limitShape>;
export type Worker = z.output<typeof workerShape>;
export type Schedule = z.output<typeof scheduleShape>;
export type WholeSchedule = z.output<typeof wholeScheduleShape>;
export type Whoami = z.output<typeof whoamiShape>;
export type Info = z.output<typeof infoShape>;
export type BulkJob = z.output<typeof bulkShape>;
export type DeadLetters = z.output<typeof deadLettersShape>;
export type Tokens = z.output<typeof tokensShape>;
export type Storage = z.output<typeof storageShape>;
export type Pruning = z.output<typeof pruningShape>;

export interface Page<Item> {
  readonly items: Item[];
  readonly next: string | null;
}

export interface Health {
  readonly status: "ok" | "unavailable";
  readonly version: string;
  readonly store: string;
  readonly message?: string;
  readonly uptimeSeconds: number;
}
