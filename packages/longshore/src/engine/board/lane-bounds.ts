// How large the lanes of one task may be. Names of lanes may come from data, and each lane stays in memory, in metrics and in lists of
// queues; so these bounds hold for every protocol, whatever it checks itself.

import { shown } from "../../core/text.ts";
import type { Lane } from "./task.ts";

/** Twice the longest name that a protocol allows, a component's path with 1,024 characters; so a domain or a queue may be in it, too. */
const nameCharsMax = 2_048;
/** Twice the longest label that a definition may require. */
const labelCharsMax = 512;
/** A definition may require 64, and protocols add their own. */
const labelsMax = 100;
/** Lanes that one task may be placed on. A post looks at each. */
export const lanesMax = 100;

/** What is too large about these lanes of one task, or cannot be part of a lane; undefined for nothing. */
export function beyondBounds(lanes: readonly Lane[]): string | undefined {
  if (lanes.length > lanesMax) return `The task may be placed on ${lanes.length} lanes, expected at most ${lanesMax}.`;
  for (const { name, labels } of lanes) {
    if (labels.length > labelsMax) return `The task ${shown(name)} requires ${labels.length} labels, expected at most ${labelsMax}.`;
    const wrong = wrongText("name of the task", name, nameCharsMax);
    if (wrong !== undefined) return wrong;
    for (const label of labels) {
      const wrongLabel = wrongText("label", label, labelCharsMax);
      if (wrongLabel !== undefined) return wrongLabel;
    }
  }
  return undefined;
}

/** A NUL separates names and labels in the keys of lanes: with one inside, the key would be that of another lane. */
function wrongText(what: string, text: string, charsMax: number): string | undefined {
  if (text.length > charsMax) return `The ${what} ${shown(text)} has ${text.length} characters, expected at most ${charsMax}.`;
  return text.includes("\u0000") ? `The ${what} ${shown(text)} has a NUL, expected none.` : undefined;
}
