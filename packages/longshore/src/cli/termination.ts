// The end of a command that runs until Ctrl-C: the first signal stops it gracefully, the second at once.

import { onTermination, signalNumbers, type TerminationSignal } from "../core/signal.ts";

/** Resolves at the first SIGINT or SIGTERM. A later signal ends the process at once. */
export function untilTerminated(): Promise<TerminationSignal> {
  return new Promise((resolve) => {
    onTermination(process, resolve, (signal) => process.exit(128 + signalNumbers[signal]));
  });
}
