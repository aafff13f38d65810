// How a command that runs until Ctrl-C ends: the first signal lets it finish what it must, the second does not wait.

import { onTermination, type TerminationSignal } from "../core/signal.ts";

const signalNumbers: Readonly<Record<TerminationSignal, number>> = { SIGINT: 2, SIGTERM: 15 };

/** Resolves at the first SIGINT or SIGTERM. From then on another one ends the process at once. */
export function untilTerminated(): Promise<TerminationSignal> {
  return new Promise((resolve) => {
    onTermination(process, resolve, (signal) => process.exit(128 + signalNumbers[signal]));
  });
}
