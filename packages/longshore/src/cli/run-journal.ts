// The journal of a run of a durable function: from the server, or from a file that `longshore history` has saved.

import { existsSync } from "node:fs";
import { toError } from "../core/errors.ts";
import { isObject } from "../core/json/json.ts";
import { readNamedFile } from "../core/read-named-file.ts";
import type { JournalPage } from "../core/turn.ts";
import type { JournalHistory } from "../runner/function/check.ts";
import type { Run } from "./api.ts";
import type { Client } from "./client.ts";
import { CommandFailure } from "./failure.ts";

/** A journal with the names that a file needs. */
export interface RecordedHistory extends JournalHistory {
  readonly runId: string;
  readonly workflow: string;
}

export async function recordedHistory(client: Client, runId: string): Promise<RecordedHistory> {
  const path = `/runs/${encodeURIComponent(runId)}`;
  const { workflow } = await client.get<Run>(path);
  const first = await client.get<JournalPage>(`${path}/journal`);
  if (first.input === undefined) throw new CommandFailure(`run ${runId} of ${workflow} has no journal: it is not a durable function.`);
  const { entries: firstEntries, next: second, ...begin } = first;
  const entries = [...firstEntries];
  for (let next = second; next !== undefined; ) {
    const page: JournalPage = await client.get(`${path}/journal`, { after: next });
    entries.push(...page.entries);
    next = page.next;
  }
  return { ...begin, runId, workflow, entries };
}

/** Undefined when there is no such file: then the text is the id of a run. */
export function savedHistory(path: string): RecordedHistory | undefined {
  if (!existsSync(path)) return undefined;
  let value: unknown;
  try {
    value = JSON.parse(readNamedFile(path).toString("utf8"));
  } catch (error) {
    throw new CommandFailure(`cannot read ${path}: ${toError(error).message}`, undefined, { cause: error });
  }
  if (isObject(value) && typeof value.workflow === "string" && typeof value.runId === "string" && Array.isArray(value.entries))
    return value as unknown as RecordedHistory;
  throw new CommandFailure(`${path} is not a history of a run, expected a file that \`longshore history RUN --out FILE\` has written.`);
}
