// The operating system's request that this process ends. SIGINT is Ctrl-C, SIGTERM is what supervisors send. SIGHUP is absent on purpose:
// daemons reload on it, and a closed terminal ends its programs with SIGHUP's default action anyway.

export type TerminationSignal = "SIGINT" | "SIGTERM";

const terminationSignals: readonly TerminationSignal[] = ["SIGINT", "SIGTERM"];

/** A shell reports a program that a signal ended with 128 and this number as its exit code. */
export const signalNumbers: Readonly<Record<TerminationSignal, number>> = { SIGINT: 2, SIGTERM: 15 };

/** The subset of `process` that is needed, so that a test can replace it. */
export interface SignalSource {
  on(signal: TerminationSignal, listener: (signal: TerminationSignal) => void): unknown;
  off(signal: TerminationSignal, listener: (signal: TerminationSignal) => void): unknown;
}

/**
 * The same signal may arrive twice: from the terminal (Ctrl-C) or a supervisor, and from npm, which forwards it. A person who presses
 * Ctrl-C twice takes longer than this.
 */
const echoMs = 100;

/** Calls `first` on the first signal and `again` on each later one. The returned function removes the listeners and may be called twice. */
export function onTermination(
  source: SignalSource,
  first: (signal: TerminationSignal) => void,
  again: (signal: TerminationSignal) => void,
  now: () => number = Date.now,
): () => void {
  let seen: { readonly signal: TerminationSignal; readonly atMs: number } | undefined;
  const listener = (signal: TerminationSignal) => {
    const atMs = now();
    if (seen?.signal === signal && atMs - seen.atMs < echoMs) return;
    const tell = seen === undefined ? first : again;
    seen = { signal, atMs };
    tell(signal);
  };
  for (const name of terminationSignals) source.on(name, listener);
  return () => {
    for (const name of terminationSignals) source.off(name, listener);
  };
}
