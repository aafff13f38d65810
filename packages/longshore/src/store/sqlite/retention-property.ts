// How long the server that last opened a data file keeps runs after their end, as a fact about the file: a checker needs it to distinguish
// what retention removed from what was lost.

import { type Keep, keepOf } from "../../engine/run/retention.ts";
import type { Database } from "./driver.ts";
import { readProperty, writeProperty } from "./properties.ts";

const keptProperty = "kept";

export function writeRetention(db: Database, runs: Keep): void {
  const text = JSON.stringify(runs);
  if (readProperty(db, keptProperty) !== text) writeProperty(db, keptProperty, text);
}

/** Undefined for a file of a server that did not note it. */
export function readRetention(db: Database): Keep | undefined {
  const text = readProperty(db, keptProperty);
  return text === null ? undefined : keepOf(JSON.parse(text) as Keep);
}
