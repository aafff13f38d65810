// Reads the journal of a run for a replay, page by page. The server decides what it sends, and a faulty one may send pages without an end. So a worker
// checks each page, and stops at the size that a journal may have.

import type { Context } from "../../core/context.ts";
import { LongshoreError } from "../../core/errors.ts";
import { isObject, type Json } from "../../core/json/json.ts";
import { sizeOf, type ValueSize } from "../../core/text-size.ts";
import { type JournalEntry, type JournalPage, journalMax, journalQuestion } from "../../core/turn.ts";

/**
 * The size of all inputs and results of one journal. A replay has all of them in memory, where they take several times as much; a function with larger
 * results stores them elsewhere, or uses continueAs.
 */
const journalSizeMax: ValueSize = { chars: 268_435_456, values: 16_777_216 };

type Beginning = Pick<JournalPage, "input" | "startedAt" | "pass">;

/** The whole journal. `sizeMax` is replaced in tests. */
export async function readJournal(
  context: Pick<Context, "ask">,
  sizeMax: ValueSize = journalSizeMax,
): Promise<Beginning & { entries: JournalEntry[] }> {
  const entries: JournalEntry[] = [];
  let begin: Beginning = {};
  let [chars, values] = [0, 0];
  for (let after: number | undefined = 0; after !== undefined; ) {
    const answer = await context.ask(journalQuestion, after);
    if (answer === null) throw new LongshoreError("LONGSHORE_NOT_FOUND", "The run of this function was removed.");
    const size = sizeOf(answer, { chars: sizeMax.chars - chars, values: sizeMax.values - values });
    chars += size.chars;
    values += size.values;
    if (chars > sizeMax.chars || values > sizeMax.values)
      throw bad(`is larger than ${sizeMax.chars} characters or ${sizeMax.values} values. Store large results elsewhere, or use continueAs`);
    const page = checkedPage(answer, after);
    if (after === 0) begin = { input: page.input, startedAt: page.startedAt, pass: page.pass };
    for (const entry of page.entries) entries.push(entry);
    if (entries.length > journalMax) throw bad(`has more than ${journalMax} commands`);
    after = page.next;
  }
  return { ...begin, entries };
}

function checkedPage(answer: Json, after: number): JournalPage {
  if (!isObject(answer) || !Array.isArray(answer.entries))
    throw bad(`has, after command ${after}, a page that is not an object with a list of entries`);
  const { entries, next } = answer;
  const wrong = entries.findIndex((entry) => !isEntry(entry));
  if (wrong >= 0) throw bad(`has an entry that cannot be read: number ${wrong + 1} after command ${after}`);
  if (next !== undefined && !(isCount(next) && next > after && next <= journalMax))
    throw bad(
      `says that the page after command ${after} is followed by the page after command ${JSON.stringify(next).slice(0, 100)}, expected a later one, at most ${journalMax}`,
    );
  return answer as unknown as JournalPage;
}

function isEntry(value: unknown): boolean {
  if (!isObject(value) || !isCount(value.node) || value.node > journalMax || typeof value.command !== "string") return false;
  const { result } = value;
  return result === undefined || (isObject(result) && isCount(result.place) && typeof result.state === "string");
}

/** A whole number from 1. */
function isCount(value: unknown): value is number {
  return Number.isSafeInteger(value) && (value as number) >= 1;
}

function bad(what: string): LongshoreError {
  return new LongshoreError("LONGSHORE_LIMIT", `The journal that the server sends ${what}.`);
}
