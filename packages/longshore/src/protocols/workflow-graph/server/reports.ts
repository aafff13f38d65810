// Several reports in one request: results of jobs, and commands of durable functions. Each has the reply that it would have alone, and one that
// is refused does not affect the others. README.md, "Several reports in one request".

import { isClosing, isTransient, LongshoreError, toError } from "../../../core/errors.ts";
import { isObject } from "../../../core/json/json.ts";
import type { Parsed } from "../../../core/json/json-slices.ts";
import type { HttpReply } from "../../../net/http/http.ts";
import { traceHeader, turnHeader } from "../wire/codes.ts";
import { reportsMax } from "../wire/shapes.ts";
import { type Claim, nextClaimOf, parseObject } from "./parse.ts";
import { misshapen, Refused, textReply, wrongField, wrongType } from "./refuse.ts";
import { jsonHeaders } from "./replies.ts";

/** One report. `body` is the JSON text that it would have alone; `next`: its worker can take another job. */
export interface SingleReport {
  readonly lease: string;
  readonly verb: "complete" | "commands";
  readonly body: string;
  readonly key: string | undefined;
  readonly next: Claim | undefined;
}

export function parseReports(text: string, parsed?: Parsed): SingleReport[] {
  const body = parseObject(text, "Reports", parsed === undefined ? undefined : () => parsed.value);
  const { reports } = body;
  if (!Array.isArray(reports)) throw wrongField(text, [], "reports", reports, "a sequence");
  if (reports.length > reportsMax) throw misshapen(text, ["reports"], `${reports.length} reports, expected at most ${reportsMax}`);
  const next = nextClaimOf(text, body);
  return reports.map((report, at) => reportOf(text, report, ["reports", at], next));
}

function reportOf(text: string, report: unknown, path: readonly (string | number)[], claim: Claim | undefined): SingleReport {
  if (!isObject(report)) throw wrongType(text, path, report, "struct Report");
  const { lease, verb, body, key, next = false } = report;
  if (typeof lease !== "string") throw wrongField(text, path, "lease", lease, "a string");
  if (verb !== "complete" && verb !== "commands") throw wrongField(text, path, "verb", verb, "complete or commands");
  if (typeof body !== "string") throw wrongField(text, path, "body", body, "a string");
  if (key !== undefined && typeof key !== "string") throw wrongType(text, [...path, "key"], key, "a string");
  if (typeof next !== "boolean") throw wrongType(text, [...path, "next"], next, "a boolean");
  return { lease, verb, body, key, next: next ? claim : undefined };
}

/** Makes the replies of all reports, and one reply with all of them. */
export async function replyToAll(
  reports: readonly SingleReport[],
  replyTo: (report: SingleReport) => Promise<HttpReply>,
): Promise<HttpReply> {
  const replies = await Promise.all(reports.map((report) => replyTo(report).catch(refusal)));
  return {
    status: 200,
    headers: jsonHeaders,
    body: `{"replies":[${replies.map(replyText).join(",")}]}`,
    undelivered: () => {
      for (const { undelivered } of replies) undelivered?.();
    },
  };
}

/** When the store is unavailable, no report was accepted. A defect is one of the request, so that it is logged. */
function refusal(thrown: unknown): HttpReply {
  if (thrown instanceof Refused) return thrown.reply;
  const error = toError(thrown);
  if (!(error instanceof LongshoreError)) throw error;
  return textReply(isTransient(error) || isClosing(error) ? 503 : 400, error.message);
}

function replyText({ status, headers, body }: HttpReply): string {
  const trace = headers?.[traceHeader];
  const taken = headers?.[turnHeader] === undefined ? "" : ',"turn":true';
  const traced = trace === undefined ? taken : `${taken},"${traceHeader}":${JSON.stringify(trace)}`;
  if (typeof body !== "string" || body === "") return `{"status":${status}${taken}}`;
  const isJson = headers?.["content-type"] === jsonHeaders["content-type"];
  return `{"status":${status},${isJson ? `"body":${body}` : `"text":${JSON.stringify(body)}`}${traced}}`;
}
