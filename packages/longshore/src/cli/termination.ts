// The end of a command that runs until Ctrl-C: the first signal stops it gracefully, the second at once.

import { onTermination, type TerminationSignal } from "../core/signal.ts";

const signalNumbers: Readonly<Record<TerminationSignal, number>> = { SIGINT: 2, SIGTERM: 15 };

/** Resolves at the first SIGINT or SIGTERM. A later signal ends the process at once. */
export function untilTerminated(): Promise<TerminationSignal> {
  return new Promise((resolve) => {
    onTermination(process, resolve, (signal) => process.exit(128 + signalNumbers[signal]));
  });
}
