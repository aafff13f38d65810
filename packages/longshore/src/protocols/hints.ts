// What `longshore snippets` and `longshore dev` print about workers of a protocol. A test runs the programs as they are printed.

export interface Snippet {
  readonly language: string;
  /** The instruction before a program: the file to save it as, or the place to paste it. */
  readonly how: string;
  readonly code: string;
  /** A job for the worker, and the commands that run it. */
  readonly tryIt: string;
}

export interface ProtocolHints {
  readonly protocol: string;
  readonly snippets: readonly Snippet[];
  /** Whether only workers of this protocol take tasks from this lane. */
  ownsLane?(name: string): boolean;
  /** How to start a worker that could take from this lane; null when none of this protocol can. */
  workerFor(lane: { readonly name: string; readonly labels: readonly string[] }): string | null;
}

export interface HintOptions {
  /** The server's address. */
  readonly url: string;
  /** True when the server requires a token. The programs read it from the environment: a secret is never printed. */
  readonly asksToken: boolean;
  /** The flags that the server was started with, by their names in camel case. */
  readonly flags: { readonly [name: string]: unknown };
}

/** The start of the sentence that says how to run a program. */
export function tokenFirst(asksToken: boolean): string {
  return asksToken ? "with its token in LONGSHORE_TOKEN, " : "";
}
