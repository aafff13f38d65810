// Requests of the worker that holds the turn of a durable function: it reads the journal of the run, and adds commands before the turn
// ends. README.md, "Durable functions".

import type { Board } from "../../../engine/board/board.ts";
import { fenceTurn } from "../../../engine/board/task.ts";
import type { JournalReader } from "../../../engine/run/journal.ts";
import type { HttpReply, HttpRequest } from "../../../net/http/http.ts";
import { statusOfVerdict } from "../wire/codes.ts";
import { expectJson } from "./parse.ts";
import { parseLeaseId } from "./render.ts";
import { conflict, jsonHeaders, ok } from "./replies.ts";

export interface FunctionDeps {
  readonly board: Board;
  readonly journal: JournalReader;
  readonly clock: { now(): number };
}

export async function readJournal({ board, journal, clock }: FunctionDeps, request: HttpRequest): Promise<HttpReply> {
  const hold = parseLeaseId(request.params.lease as string);
  const task = hold === undefined ? undefined : await board.task(hold.taskId);
  if (hold === undefined || task === undefined || task.runId === null || fenceTurn(task, hold, clock.now()) !== "current") return conflict;
  const after = Number(request.query.get("after") ?? 0);
  const page = await journal.page(task.runId, Number.isSafeInteger(after) && after >= 0 ? after : 0);
  return page === undefined ? conflict : { status: 200, headers: jsonHeaders, body: page };
}

export function addCommands(deps: FunctionDeps, request: HttpRequest): Promise<HttpReply> {
  expectJson(request.headers);
  return addReported(deps, request.params.lease as string, request.text);
}

/** `report` is JSON text. */
export async function addReported({ board }: Pick<FunctionDeps, "board">, lease: string, report: string): Promise<HttpReply> {
  const hold = parseLeaseId(lease);
  if (hold === undefined) return conflict;
  const { verdict, news } = await board.command(hold, report);
  if (statusOfVerdict[verdict] !== 200) return conflict;
  return news === null ? ok : { status: 200, headers: jsonHeaders, body: news };
}
