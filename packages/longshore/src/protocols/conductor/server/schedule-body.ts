// A schedule as the real server's scheduler shows it, and as its clients send it.

import { isObject, type JsonObject } from "../../../core/json/json.ts";
import { parseExact, writeExact } from "../../../core/json/json-exact.ts";
import { kindOf } from "../../../core/text.ts";
import type { Schedule } from "../../../engine/schedule/schedule.ts";
import { badRequest } from "./replies.ts";
import { flagIn, mapIn, numberIn, textIn } from "./request.ts";
import { fromSpring } from "./spring-cron.ts";

/** What a client sends, checked. */
export interface GivenSchedule {
  readonly name: string;
  readonly when: Extract<Schedule["when"], { kind: "crons" }>;
  readonly catchesUp: boolean;
  /** Undefined: it is not paused. */
  readonly paused: string | undefined;
  readonly request: JsonObject;
  /** The fields that are shown again as they were sent, as JSON text. */
  readonly note: string;
}

/** The reason of a pause without one, which the engine requires and this wire does not show. */
export const noReason = "no reason was given";

/** Throws for the first mistake, with the name of the field. */
export function givenSchedule(body: JsonObject): GivenSchedule {
  const request = mapIn(body, "startWorkflowRequest");
  if (request === undefined) throw badRequest("startWorkflowRequest is missing, expected the request that starts each run.");
  if (request.workflowDef) throw badRequest("startWorkflowRequest.workflowDef is set, but a schedule starts a stored workflow: name it.");
  const crons = cronsIn(body);
  const from = numberIn(body, "scheduleStartTime") ?? null;
  const until = numberIn(body, "scheduleEndTime") ?? null;
  const shown = {
    ...fieldOf(body, "cronExpression"),
    runCatchupScheduleInstances: flagIn(body, "runCatchupScheduleInstances"),
    startWorkflowRequest: { input: {}, taskToDomain: {}, priority: 0, ...request },
    zoneId: zoneIn(body),
    ...(from === null ? {} : { scheduleStartTime: from }),
    ...(until === null ? {} : { scheduleEndTime: until }),
    ...fieldOf(body, "description"),
    cronSchedules: listOf(body).map((each) => ({ ...each, zoneId: zoneIn(each) })),
  };
  return {
    name: textIn(body, "name") ?? "",
    when: { kind: "crons", crons, from, until },
    catchesUp: shown.runCatchupScheduleInstances,
    paused: flagIn(body, "paused") ? textIn(body, "pausedReason") || noReason : undefined,
    request,
    note: writeExact(shown),
  };
}

/** The list wins when it is not empty. */
function cronsIn(body: JsonObject): { cron: string; timezone: string }[] {
  const list = listOf(body);
  if (list.length > 0)
    return list.map((each, at) => {
      const path = `cronSchedules[${at}].cronExpression`;
      return { cron: fromSpring(textIn(each, "cronExpression") ?? "", path), timezone: zoneIn(each) };
    });
  const text = textIn(body, "cronExpression");
  if (text === undefined) throw badRequest("cronExpression is missing, expected a cron expression, or a list in cronSchedules.");
  return [{ cron: fromSpring(text, "cronExpression"), timezone: zoneIn(body) }];
}

function listOf(body: JsonObject): JsonObject[] {
  const list = body.cronSchedules ?? [];
  if (!Array.isArray(list)) throw badRequest(`JSON parse error: cronSchedules is ${kindOf(list)}, expected a list`);
  return list.map((each, at) => {
    if (isObject(each)) return each as JsonObject;
    throw badRequest(`JSON parse error: cronSchedules[${at}] is ${kindOf(each)}, expected an object`);
  });
}

function zoneIn(body: JsonObject): string {
  return textIn(body, "zoneId") || "UTC";
}

function fieldOf(body: JsonObject, field: string): JsonObject {
  const text = textIn(body, field);
  return text === undefined ? {} : { [field]: text };
}

/** Also a schedule of another API of this server, as far as this wire has words for it. */
export function shownSchedule(row: Schedule): JsonObject {
  const { name, paused, createdAt, updatedAt } = row;
  const { pausedReason, ...rest } = row.run === undefined ? ofAnotherApi(row) : (parseExact(row.run.note) as JsonObject);
  return {
    name,
    paused: paused !== null,
    ...(paused === null || paused === noReason ? {} : { pausedReason: paused }),
    ...rest,
    createTime: createdAt,
    updatedTime: updatedAt,
    createdBy: "",
    updatedBy: "",
  } as JsonObject;
}

function ofAnotherApi({ when, workflow, input, catchUp }: Schedule): JsonObject {
  const given = parseExact(input);
  return {
    // Here the expressions of other schedules have no seconds.
    ...(when.kind === "cron"
      ? { cronExpression: when.cron.startsWith("@") ? when.cron : `0 ${when.cron}`, zoneId: when.timezone }
      : { zoneId: "UTC" }),
    runCatchupScheduleInstances: catchUp === "all",
    startWorkflowRequest: { name: workflow, input: isObject(given) ? given : {}, taskToDomain: {}, priority: 0 },
    cronSchedules: [],
  } as JsonObject;
}
