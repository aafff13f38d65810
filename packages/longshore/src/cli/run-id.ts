// Finds a run by the beginning of its id: a person types the first characters, as for a commit of git.

import type { Page, Run } from "./api.ts";
import type { Client } from "./client.ts";
import { CommandFailure } from "./failure.ts";

/** A shorter text is more often a typing mistake than the beginning of an id. */
const charsMin = 4;
/** The length of a whole id. */
const idChars = 26;
/** How many runs are named when several ids begin alike. */
const namedMax = 4;
/** Sorts after every character of an id. */
const last = "~";

/**
 * The id of the run that `given` names: `given` itself, or the only id that begins with it. Without any such id, returns the text: the
 * server then reports that there is no such run. Throws when several ids begin with it.
 */
export async function runIdOf(client: Client, given: string): Promise<string> {
  if (given.length < charsMin || given.length >= idChars || !/^[\dA-Za-z]+$/.test(given)) return given;
  const prefix = given.toUpperCase();
  // Runs are listed by their ids, from the end: those that begin with the prefix are the first below it.
  const { items } = await client.get<Page<Run>>("/runs", { before: prefix + last, limit: namedMax + 1 });
  const found = items.filter(({ id }) => id.startsWith(prefix));
  const [only] = found;
  if (only === undefined) return given;
  if (found.length === 1) return only.id;
  const named = found.slice(0, namedMax).map(({ id, workflow, state }) => `  ${id}  ${workflow}  ${state}`);
  const more = found.length > namedMax ? ["  ..."] : [];
  const message = `several runs have an id that begins with ${given}. Write more of it:\n${[...named, ...more].join("\n")}`;
  throw new CommandFailure(message, undefined, { code: "LONGSHORE_BAD_INPUT" });
}
