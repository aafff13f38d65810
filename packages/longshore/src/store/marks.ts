// The marks of a migration: `moved` on the source, `incomplete` on a target that is not complete yet. No server starts on marked data.

import { LongshoreError } from "../core/errors.ts";

export interface Mark {
  /** The id of the migration; both sides have the same. */
  readonly id: string;
  /** The other side, without a password. */
  readonly place: string;
  /** When, as in 2026-01-31T12:00:00.000Z. */
  readonly at: string;
}

export interface Marks {
  readonly moved: Mark | null;
  readonly incomplete: Mark | null;
}

export const movedName = "moved" satisfies keyof Marks;
export const incompleteName = "incomplete" satisfies keyof Marks;
/** Names of properties that describe the place and not the data. `lock` is the lock of a folder. */
export const placeProperties: readonly string[] = [movedName, incompleteName, "lock"];

/** Throws for data that a server must not serve. `where` is the beginning of the message, and `undo` its end. */
export function refuseMarked(where: string, { moved, incomplete }: Marks, undo: string): void {
  if (incomplete !== null)
    throw new LongshoreError(
      "LONGSHORE_BAD_CONFIG",
      `${where} has an incomplete copy of the data in ${incomplete.place}: the migration that began at ${incomplete.at} did not end. ` +
        "Run the same `longshore migrate` again (it starts from the beginning), or remove the copy.",
    );
  if (moved === null) return;
  throw new LongshoreError(
    "LONGSHORE_BAD_CONFIG",
    `The data in ${where} were moved to ${moved.place} at ${moved.at}: start the server there. To serve them here again, make sure that no server ` +
      `has changed the copy since then, and ${undo}.`,
  );
}

/** Returns null when there is no mark. A text that cannot be parsed is a mark without details. */
export function readMark(text: string | null): Mark | null {
  if (text === null) return null;
  try {
    const { id, place, at } = JSON.parse(text) as Partial<Mark>;
    return { id: String(id), place: String(place), at: String(at) };
  } catch {
    // A person may have made the file, or it may be incomplete. It is still a mark, but its migration is not known.
    return { id: "", place: "another place", at: "an unknown time" };
  }
}
