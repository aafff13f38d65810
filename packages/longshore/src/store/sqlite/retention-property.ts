// How long the server that last opened a data file keeps runs after their end, as a fact about the file: a checker needs it to distinguish
// what retention removed from what was lost.

import { type Keep, keepOf, keptProperty } from "../../engine/run/retention.ts";
import type { Database } from "./driver.ts";
import { readProperty } from "./properties.ts";

/** Undefined for a file of a server that did not note it. */
export function readRetention(db: Database): Keep | undefined {
  const text = readProperty(db, keptProperty);
  return text === null ? undefined : keepOf(JSON.parse(text) as Keep);
}
