// Every request that both servers receive, in this order. Chapters share one server, so each uses its own names. The two chapters about
// definitions come first, because they list all definitions of the server.

import type { Chapter } from "../../src/differential/script.ts";
import { dynamic, forks, switches } from "./chapters/branches.ts";
import { calls } from "./chapters/calls.ts";
import { children } from "./chapters/children.ts";
import { bulk, control, removal, retries } from "./chapters/control.ts";
import { dynamicForks } from "./chapters/dynamic-forks.ts";
import { eventHandlers, eventTasks, startWorkflows } from "./chapters/events.ts";
import { decisions, inlines, lambdas, scripts, transforms } from "./chapters/expressions.ts";
import { exclusiveJoins, scriptedJoins } from "./chapters/joins.ts";
import { loops, nestedLoops } from "./chapters/loops.ts";
import { taskDefinitions, workflowDefinitions } from "./chapters/metadata.ts";
import { failures, simpleTask, subWorkflows, terminates, variables, waits } from "./chapters/operators.ts";
import { evaluating, executing, searching } from "./chapters/reading.ts";
import { idempotency, misc, starts } from "./chapters/starts.ts";
import { byReference, logs, polls, queues, updates, updatesV2 } from "./chapters/tasks.ts";

export const chapters: readonly Chapter[] = [
  taskDefinitions,
  workflowDefinitions,
  misc,
  starts,
  idempotency,
  polls,
  queues,
  updates,
  updatesV2,
  byReference,
  logs,
  simpleTask,
  dynamic,
  switches,
  inlines,
  lambdas,
  transforms,
  scripts,
  decisions,
  forks,
  exclusiveJoins,
  scriptedJoins,
  loops,
  nestedLoops,
  dynamicForks,
  calls,
  startWorkflows,
  eventTasks,
  eventHandlers,
  subWorkflows,
  terminates,
  variables,
  waits,
  failures,
  control,
  retries,
  children,
  removal,
  bulk,
  searching,
  executing,
  evaluating,
];
