// The stack of an error that a handler throws, as text for the log of its task. The report has only the error's message, without its place
// in the code.

import { isTerminal, LongshoreError } from "../core/errors.ts";
import { cutMiddle } from "../core/text.ts";

/** Maximum length. Node keeps ten frames by default, which have about a thousand characters. A message may have any length. */
const stackCharsMax = 8_000;

/** Undefined for errors that are decisions and not mistakes: a TerminalError, or an error of Longshore itself. */
export function stackOf(error: unknown): string | undefined {
  if (!(error instanceof Error) || error instanceof LongshoreError || isTerminal(error)) return undefined;
  const { name, message, stack } = error;
  if (typeof stack !== "string") return undefined;
  // The stack begins with the name and message from when the error was made. They may have been replaced, for example to hide a secret.
  const head = message === "" ? name : `${name}: ${message}`;
  const frames = stack.search(/\n +at /);
  if (frames < 0) return undefined;
  return cutMiddle(stack.startsWith(head) ? stack : head + stack.slice(frames), stackCharsMax);
}
