// One line about a run that failed or is blocked, with the command that shows all of it.

import { counted } from "../core/text.ts";
import type { FailureNews } from "../server/index.ts";
import { titleOf } from "./run-view.ts";
import { fit, type Paint, printable } from "./terminal.ts";

/**
 * Two or three lines of a terminal. The most important word is often the last one, so a shorter limit would cut it; the command shows
 * longer reasons.
 */
const reasonCharsMax = 200;

/** `on` is what a command needs to reach this server: empty, or ` --on URL`. */
export function failureLine({ workflow, runId, state, error, more }: FailureNews, paint: Paint, on: string): string {
  const what = `${titleOf({ workflow })} ${paint("red", state === "timed-out" ? "timed out" : state)}`;
  const reason = error === null || error === "" ? "" : `: ${fit(error, reasonCharsMax)}`;
  const others = more === 0 ? "" : ` And ${counted(more, "other run")}, see longshore runs${on}.`;
  return printable(`${what}${reason} ${paint("dim", `(longshore runs ${runId}${on})`)}${others}`);
}
