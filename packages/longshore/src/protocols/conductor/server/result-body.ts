// A task result as a worker sends it: its required and optional fields.

import type { JsonObject } from "../../../core/json/json.ts";
import { writeExact } from "../../../core/json/json-exact.ts";
import { payloadBytesMax } from "../../../core/payload-size.ts";
import type { LogChunk } from "../../../engine/log/store.ts";
import type { HttpRequest } from "../../../net/http/http.ts";
import { badRequest, invalid } from "./replies.ts";
import { flagIn, mapIn, numberIn, objectOf, textIn } from "./request.ts";

/** A report about a try of a task. */
export interface Report {
  readonly taskId: string;
  readonly workflowInstanceId: string;
  readonly status: ReportStatus;
  readonly workerId: string | undefined;
  readonly reason: string | undefined;
  readonly callbackSeconds: number;
  /** JSON text of an object. */
  readonly output: string;
  /** Merged into the output so far, instead of replacing it. */
  readonly merge: boolean;
  readonly logs: readonly JsonObject[];
  readonly extendLease: boolean;
}

export type ReportStatus = (typeof reportStatuses)[number];
export const reportStatuses = ["IN_PROGRESS", "FAILED", "FAILED_WITH_TERMINAL_ERROR", "COMPLETED", "CANCELED"] as const;

/** Longer reasons are cut, as Conductor does. */
const reasonCharsMax = 500;
/** Maximum number of log lines that are stored from one result: its first lines. `/log` accepts any number. */
const logsMax = 10;
/** Maximum delay of a callback. With a longer delay, the task is as good as forgotten. */
const callbackSecondsMax = 366 * 86_400;

export function parseResult(request: HttpRequest): Report {
  const body = objectOf(request, "the task result");
  const workflowInstanceId = textIn(body, "workflowInstanceId") ?? "";
  const taskId = textIn(body, "taskId") ?? "";
  const missing = [
    ...(workflowInstanceId === "" ? [{ path: "updateTask.arg0.workflowInstanceId", message: "Workflow Id cannot be null or empty" }] : []),
    ...(taskId === "" ? [{ path: "updateTask.arg0.taskId", message: "Task ID cannot be null or empty" }] : []),
  ];
  if (missing.length > 0) throw invalid(missing);
  const extendLease = flagIn(body, "extendLease");
  const status = extendLease ? "IN_PROGRESS" : statusOf(textIn(body, "status"));
  const whole: Omit<Report, "output"> = {
    taskId,
    workflowInstanceId,
    status,
    workerId: textIn(body, "workerId") || undefined,
    reason: textIn(body, "reasonForIncompletion")?.slice(0, reasonCharsMax),
    callbackSeconds: Math.min(Math.max(numberIn(body, "callbackAfterSeconds") ?? 0, 0), callbackSecondsMax),
    merge: false,
    logs: logEntries(body.logs),
    extendLease,
  };
  const output = mapIn(body, "outputData") ?? {};
  return extendLease ? { ...whole, output: "{}" } : withOutput(whole, output, request);
}

/** Maximum size of a report without its output: mostly its reason and logs. */
const aroundBytesMax = 1_048_576;

/** An output that is too large ends its task permanently, with an empty output: README.md, "Limits". */
export function withOutput(report: Omit<Report, "output">, output: JsonObject, request: Pick<HttpRequest, "text">): Report {
  // When the size of the body already shows that the output is too large, the output is not serialised.
  const isHuge = request.text.length > payloadBytesMax + aroundBytesMax;
  const text = isHuge ? "{}" : writeExact(output);
  const bytes = isHuge ? request.text.length : Buffer.byteLength(text);
  if (bytes <= payloadBytesMax) return { ...report, output: text };
  const reason = `The task output payload size: ${bytes} is greater than the permissible limit: ${payloadBytesMax} bytes`;
  return { ...report, status: "FAILED_WITH_TERMINAL_ERROR", reason, output: "{}" };
}

export function statusOf(text: string | undefined): ReportStatus {
  const status = reportStatuses.find((each) => each === text);
  if (status !== undefined) return status;
  const given = text === undefined ? "missing" : JSON.stringify(text.slice(0, 100));
  throw badRequest(`The status is ${given}, expected one of ${reportStatuses.join(", ")}.`);
}

function logEntries(value: unknown): JsonObject[] {
  if (value === undefined || value === null) return [];
  if (!Array.isArray(value)) throw badRequest("JSON parse error: logs is not a list, expected a list of {log, taskId, createdTime}");
  return value
    .slice(0, logsMax)
    .filter((entry): entry is JsonObject => typeof entry === "object" && entry !== null && !Array.isArray(entry));
}

export function logsOf(entries: readonly JsonObject[], now: number): LogChunk[] {
  return entries.map((entry, sequence) => {
    const said = entry.log ?? entry.message ?? "";
    const data = typeof said === "string" ? said : JSON.stringify(said);
    const at = typeof entry.createdTime === "number" && Number.isFinite(entry.createdTime) ? Math.trunc(entry.createdTime) : now;
    return { stream: "stdout", sequence, data, at };
  });
}
