// What Conductor's statuses mean: a task's status for its worker, and an HTTP status for an update.

import type { Verdict } from "../../../core/verdict.ts";
import { type ErrorBody, parseErrorBody, type TaskStatus } from "./shapes.ts";

/** What a task's status at the server means for a worker that still runs it. Unknown statuses change nothing. */
export function verdictOfStatus(status: TaskStatus): Verdict {
  if (status === "CANCELED") return "cancel";
  return endedStatuses.has(status) ? "gone" : "ok";
}

/** Statuses of a task that has ended at the server for another reason: another worker, an operator, a timeout. */
const endedStatuses: ReadonlySet<string> = new Set([
  "COMPLETED",
  "COMPLETED_WITH_ERRORS",
  "FAILED",
  "FAILED_WITH_TERMINAL_ERROR",
  "SKIPPED",
  "TIMED_OUT",
]);

/**
 * What the response to an update means.
 *   taken 2xx without a page. (The login page of a proxy also has the status 200, although the server has not received the result.)
 *   refused     400 or 413 in Conductor's own error format: the server will never accept this result.
 *   no-endpoint 405, 501, or a 404 that names neither the task nor its workflow: the server does not have this path.
 *   failed      Everything else, such as 401, 403, a 404 that names the task, or an error of a proxy: another try may help.
 */
export type UpdateAnswer = "taken" | "refused" | "no-endpoint" | "failed";

export function updateAnswer(status: number, body: string): UpdateAnswer {
  if (status >= 200 && status < 300) return isPage(body) ? "failed" : "taken";
  const error = parseErrorBody(body);
  if ((status === 400 || status === 413) && error !== undefined) return "refused";
  if (status === 405 || status === 501) return "no-endpoint";
  if (status === 404) return namesTask(error) ? "failed" : "no-endpoint";
  return "failed";
}

/** HTML or XML. Conductor answers an update with an id, with a task as JSON or with nothing. */
function isPage(body: string): boolean {
  return body.trimStart().startsWith("<");
}

/** `No such task found by id: X`, `No such workflow found by id: X`; but not `No static resource api/tasks/update-v2.`. */
function namesTask(error: ErrorBody | undefined): boolean {
  return error !== undefined && /\b(task|workflow)\b.*\bfound\b|no such (task|workflow)/i.test(error.message);
}

/** 401 and 403: the caller is unknown, or not allowed. */
export function isAuthStatus(status: number): boolean {
  return status === 401 || status === 403;
}

/** The token has expired, or is malformed: a new one may help. */
export function wantsNewToken(status: number, body: string): boolean {
  if (!isAuthStatus(status)) return false;
  const match = /"error"\s*:\s*"([A-Z_]+)"/.exec(body);
  return match !== null && (match[1] === "EXPIRED_TOKEN" || match[1] === "INVALID_TOKEN");
}
