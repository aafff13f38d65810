// Converts a task of the board to the assignment for its worker.

import { parseExact } from "../../../../core/json/json-exact.ts";
import type { SpanIds } from "../../../../core/trace.ts";
import type { TaskRow } from "../../../../engine/board/task.ts";
import type { Run } from "../../../../engine/run/run.ts";
import type { Encodable } from "../../../../net/protobuf/protobuf.ts";
import type { ComponentTask } from "../../dialect/router.ts";
import { settingsOf } from "../../dialect/settings.ts";
import { deferredParams } from "../../wire/deferral.ts";
import type { TaskAssignment } from "../../wire/messages.ts";
import { wireTaskId } from "../../wire/task-id.ts";
import { flowIdOf } from "../api/render.ts";
import { findComponent, type RegisteredComponent } from "../config/registered-components.ts";
import { wireRunId } from "../run-id.ts";

/** The heartbeat interval of workers, as in the reference: five of them fit into a lease. */
const heartbeatSecs = 1;

export interface Surroundings {
  /** Undefined for a task without a run, or whose run was removed. */
  readonly run: Run | undefined;
  /** The registered components of the worker; null when they are not known. */
  readonly components: readonly RegisteredComponent[] | null;
  readonly orchestratorServiceUrl: string;
  /** The span of this attempt, on a server that writes spans. */
  readonly span?: SpanIds | undefined;
  /** The component and input, when the task's own input does not have them. */
  readonly given?: ComponentTask | undefined;
}

export function assignmentOf(task: TaskRow, surroundings: Surroundings): Encodable<typeof TaskAssignment> {
  const { run, components, orchestratorServiceUrl, span } = surroundings;
  const given = surroundings.given ?? (parseExact(task.input) as ComponentTask);
  const found = components === null ? null : findComponent(components, given.component);
  return {
    taskId: wireTaskId(task),
    execute: {
      // An unregistered component is called by its path: the worker may have it, and otherwise reports the error itself.
      componentId: found?.component.id ?? given.component,
      input: given.input,
      attempt: task.attempt + 1,
      observability: { ...span, ...(run === undefined ? {} : { runId: wireRunId(run.id), flowId: flowIdOf(run) }), stepId: task.step },
      pathParams: { ...found?.params, ...deferredParams(task) },
    },
    context: { orchestratorServiceUrl, rootRunId: run === undefined ? "" : wireRunId(settingsOf(run).rootRunId ?? run.id) },
    heartbeatIntervalSecs: heartbeatSecs,
  };
}
