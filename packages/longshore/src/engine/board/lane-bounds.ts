// Limits for the lanes of one task. Lane names may come from data, and each lane stays in memory, in metrics and in lists of queues. So
// these limits apply to every protocol, in addition to its own checks.

import { isName } from "../../core/names.ts";
import { shown } from "../../core/text.ts";
import type { Lane } from "./task.ts";

/** Twice the longest name that a protocol allows (1,024 characters), so that there is room for a domain or a queue. */
const nameCharsMax = 2_048;
/** Twice the longest label that a definition may require. */
const labelCharsMax = 512;
/** A definition may require 64 labels, and protocols add labels of their own. */
const labelsMax = 100;
/** Maximum number of lanes of one task. When a task is posted, each is checked. */
export const lanesMax = 100;

/** Describes what is too large or invalid in these lanes of one task; undefined when they are valid. */
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

/**
 * NUL separates names and labels in the keys of lanes: with a NUL inside, the key would equal that of another lane. The store changes half of a
 * surrogate pair: after a restart, the lane would be another.
 */
function wrongText(what: string, text: string, charsMax: number): string | undefined {
  if (text.length > charsMax) return `The ${what} ${shown(text)} has ${text.length} characters, expected at most ${charsMax}.`;
  return isName(text) ? undefined : `The ${what} is ${shown(text)}, expected valid Unicode without the NUL character.`;
}
