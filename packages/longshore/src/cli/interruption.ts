// Ctrl-C while a command follows a run: the command ends, the run does not, and a message explains this.

import { onTermination, type SignalSource, signalNumbers } from "../core/signal.ts";
import { CommandFailure } from "./failure.ts";

/**
 * Returns the result of `follow`. The first SIGINT or SIGTERM aborts it: the returned promise rejects with `explanation` and the exit code that
 * shells use for this signal. A second signal ends the process at once.
 */
export async function untilInterrupted<Result>(
  follow: (signal: AbortSignal) => Promise<Result>,
  explanation: string,
  source: SignalSource = process,
): Promise<Result> {
  const aborter = new AbortController();
  let removeListeners = () => {};
  const interrupted = new Promise<never>((_, reject) => {
    removeListeners = onTermination(
      source,
      (signal) => {
        reject(new CommandFailure(explanation, 128 + signalNumbers[signal]));
        aborter.abort();
      },
      (signal) => process.exit(128 + signalNumbers[signal]),
    );
  });
  try {
    const followed = follow(aborter.signal);
    // After the abort, a failure of `follow` is not reported.
    followed.catch(() => {});
    return await Promise.race([followed, interrupted]);
  } finally {
    removeListeners();
  }
}

/** The explanation for a person who stops following a run. */
export function continuationNote(runId: string): string {
  return `run ${runId} continues without this command. See it with \`longshore runs ${runId}\`, end it with \`longshore cancel ${runId}\`.`;
}
