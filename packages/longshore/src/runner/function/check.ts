// Checks the code of a durable function against the journal of a run. A test does this before a deployment, with the journals of open runs or
// of typical ones.

import { LongshoreError } from "../../core/errors.ts";
import type { Json } from "../../core/json/json.ts";
import type { JournalEntry } from "../../core/turn.ts";
import type { FunctionCode } from "./driver.ts";
import { FunctionReplay } from "./replay.ts";
import { makeScope, seededRandom } from "./scope.ts";

/** The journal of a run: the pages of `GET /runs/{id}/journal`, with their entries in one list. */
export interface JournalHistory {
  readonly runId?: string;
  readonly input?: Json;
  readonly startedAt?: number;
  readonly pass?: number;
  readonly entries: readonly JournalEntry[];
}

/** The result of a replay. */
export interface Replayed {
  /** `waiting` when the function waits for a result that the journal does not have, else how it ended. */
  readonly state: "waiting" | "done" | "failed" | "continued";
  /** The number of commands that were compared. */
  readonly commands: number;
}

/**
 * Runs the code of a durable function with the results of a journal. Nothing is started, and no side effect runs. Throws
 * LONGSHORE_CONFLICT when the code gives another command than the journal has; the message names the command.
 */
export async function replay(history: JournalHistory, workflow: { readonly name: string; readonly code: FunctionCode }): Promise<Replayed> {
  const { entries, input = null, startedAt = 0, pass = 0, runId = "replay" } = history;
  const results = entries.flatMap(({ result }) => (result === undefined ? [] : [result])).sort((one, other) => one.place - other.place);
  const journal = new Map(entries.map((entry) => [entry.node, entry]));
  const after = (results[0]?.place ?? 1) - 1;
  const played = new FunctionReplay({ input, startedAt, after, journal, isCheck: true });
  const { signal: cancelled } = new AbortController();
  const scope = makeScope({ runId, replay: played, random: seededRandom(`${runId} ${pass}`), cancelled, log: () => {} });
  played.isRepeating = true;
  await played.begin(() => workflow.code.call(scope, input as never));
  await played.receive(results);
  played.checkJournal();
  const { end } = played;
  if (end?.kind === "blocked") throw new LongshoreError("LONGSHORE_CONFLICT", `Workflow ${workflow.name}: ${end.error}`);
  return { state: end?.kind ?? "waiting", commands: journal.size };
}
