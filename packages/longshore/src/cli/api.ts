// The response types of the API. Types only: the commands load no server code for them.

import type { z } from "zod";
import type { bulkShape } from "../protocols/longshore/wire/bulk-shapes.ts";
import type { scheduleShape, tickShape, wholeScheduleShape } from "../protocols/longshore/wire/schedule-shapes.ts";
import type { nodeShape } from "../protocols/longshore/wire/server-shapes.ts";
import type { chunkShape, listedDefinitionShape, runShape, stepShape, taskShape } from "../protocols/longshore/wire/shapes.ts";
import type { sentSignalShape, signalShape } from "../protocols/longshore/wire/signal-shapes.ts";
import type { queueShape, workerShape } from "../protocols/longshore/wire/worker-shapes.ts";

export type BulkJob = z.output<typeof bulkShape>;
export type Run = z.output<typeof runShape>;
export type Step = z.output<typeof stepShape>;
export type TaskView = z.output<typeof taskShape>;
export type Signal = z.output<typeof signalShape>;
export type SentSignal = z.output<typeof sentSignalShape>;
export type Definition = z.output<typeof listedDefinitionShape>;
export type LogChunk = z.output<typeof chunkShape>;
export type Worker = z.output<typeof workerShape>;
export type Queue = z.output<typeof queueShape>;
export type Schedule = z.output<typeof scheduleShape>;
export type WholeSchedule = z.output<typeof wholeScheduleShape>;
export type Tick = z.output<typeof tickShape>;
export type Node = z.output<typeof nodeShape>;

export interface Page<Item> {
  readonly items: readonly Item[];
  readonly next: string | null;
}
