// Log lines of a task by its id.

import type { Clock } from "../../../core/clock.ts";
import type { Board } from "../../../engine/board/board.ts";
import type { Logs } from "../../../engine/log/log.ts";
import type { StoredChunk } from "../../../engine/log/store.ts";
import type { Reader } from "../../../engine/run/reader.ts";
import type { HttpReply, HttpRequest } from "../../../net/http/http.ts";
import { parseAttemptId } from "../dialect/ids.ts";
import { jsonText, noContent, nothing } from "./replies.ts";

/** Maximum number of entries in one response; beyond it the newest are left out. */
const entriesMax = 10_000;

interface TaskLogsDeps {
  readonly board: Board;
  readonly logs: Logs;
  readonly clock: Clock;
  readonly reader: Reader;
}

export class TaskLogs {
  readonly #deps: TaskLogsDeps;

  constructor(deps: TaskLogsDeps) {
    this.#deps = deps;
  }

  /** The body is a JSON text, or the plain line. An unknown task is not an error on this wire. */
  append = async (request: HttpRequest): Promise<HttpReply> => {
    const id = parseAttemptId(request.params.task as string);
    const task = id === undefined ? undefined : await this.#deps.board.task(id.taskId);
    if (id === undefined || task === undefined) return nothing;
    const now = this.#deps.clock.now();
    // The sequence number is the time, so a line that is sent twice is stored as two lines.
    const chunk = { stream: "stdout" as const, sequence: now, data: lineOf(request.text), at: now };
    await this.#deps.logs.append({ taskId: task.id, runId: task.runId, attempt: id.attempt, grant: task.grant, chunks: [chunk] });
    return nothing;
  };

  list = async (request: HttpRequest): Promise<HttpReply> => {
    const taskId = request.params.task as string;
    const id = parseAttemptId(taskId);
    if (id === undefined) return noContent;
    const body = await this.#deps.reader.listBody(() => this.#entries(taskId, id), { alone: true });
    return body === "[]" ? noContent : jsonText(body);
  };

  /** Sorted by time, which needs all entries. */
  async *#entries(shownId: string, { taskId, attempt }: { taskId: string; attempt: number }): AsyncGenerator<string, void, void> {
    const own: StoredChunk[] = [];
    let count = 0;
    for await (const chunk of this.#deps.logs.all(taskId)) {
      if (chunk.attempt === attempt) own.push(chunk);
      if (++count === entriesMax) break;
    }
    own.sort((a, b) => a.at - b.at || a.position - b.position);
    for (const { data, at } of own) yield JSON.stringify({ log: data.replace(/\n$/, ""), taskId: shownId, createdTime: at });
  }
}

function lineOf(body: string): string {
  if (!body.startsWith('"')) return body;
  try {
    const value: unknown = JSON.parse(body);
    return typeof value === "string" ? value : body;
  } catch {
    // A plain line that starts with a quotation mark.
    return body;
  }
}
