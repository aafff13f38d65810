// The parts of one step, for a handler in this process that runs another step of the same run.

import type { StepPart } from "../core/context.ts";
import { refusal } from "../core/errors.ts";
import type { Json } from "../core/json/json.ts";
import type { EndState, TaskRow } from "../engine/board/task.ts";
import { nextPage } from "../engine/part/follow.ts";
import type { PartStore } from "../engine/part/store.ts";
import type { PartReader } from "../runner/transport.ts";

export interface LocalPartsOptions {
  parts: PartStore;
  taskOfStep(runId: string, stepId: string): Promise<string | undefined>;
}

/** The end states of a step after which its parts are complete. */
const fine: ReadonlySet<EndState> = new Set<EndState>(["done", "skipped"]);

export function localParts({ parts, taskOfStep }: LocalPartsOptions, { runId }: Pick<TaskRow, "runId">, stepId: string): PartReader {
  let source: string | undefined;
  let after = 0;
  return {
    async next(signal): Promise<readonly StepPart[] | undefined> {
      source ??= runId === null ? undefined : await taskOfStep(runId, stepId);
      if (source === undefined) throw refusal("LONGSHORE_NOT_FOUND", `There is no step ${JSON.stringify(stepId)} in this run.`);
      const page = await nextPage(parts, { source, after }, signal);
      after = page.parts.at(-1)?.sequence ?? after;
      if (page.parts.length > 0 || page.ended === null)
        return page.parts.map(({ uid, value }) => ({ uid, value: JSON.parse(value) as Json }));
      if (fine.has(page.ended)) return undefined;
      throw refusal("LONGSHORE_TASK_FAILED", `Step ${stepId} ended as ${page.ended} while its parts were read.`);
    },
  };
}
