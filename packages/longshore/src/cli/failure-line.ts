// A message about a run that failed or is blocked, with the command that shows the whole run.

import { counted } from "../core/text.ts";
import type { FailureNews } from "../server/index.ts";
import { titleOf } from "./run-view.ts";
import { fit, type Paint, printable } from "./terminal.ts";

/**
 * The maximum length of a reason: two or three lines of a terminal. A smaller limit would often cut the last word, and this is often the
 * most important one. The command shows the whole reason.
 */
const reasonCharsMax = 200;

/** `on` is what a command needs to reach this server: empty, or ` --on URL`. */
export function failureLine({ workflow, runId, state, error, more }: FailureNews, paint: Paint, on: string): string {
  const what = `${titleOf({ workflow })} ${paint("red", state === "timed-out" ? "timed out" : state)}`;
  const reason = error === null || error === "" ? "" : `: ${fit(error, reasonCharsMax)}`;
  const others = more === 0 ? "" : ` And ${counted(more, "other run")}, see longshore runs${on}.`;
  return printable(`${what}${reason} ${paint("dim", `(longshore runs ${runId}${on})`)}${others}`);
}
