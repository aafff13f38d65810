// The run for which the current code runs: the client tells the server, so that what a handler sends counts for its run. The contexts of
// handlers are not known here, because the client also runs in browsers: `context.ts`, which only programs with handlers load, brings them.

type FindRun = () => string | undefined;

let find: FindRun = () => undefined;

/** The id of the run whose handler called this function, directly or indirectly, as its orchestrator writes it. */
export function callingRun(): string | undefined {
  return find();
}

/** For `context.ts`. */
export function findCallingRun(by: FindRun): void {
  find = by;
}
