// The run for which the current code runs. The client tells the server, so that what a handler sends counts for its run. The client also
// runs in browsers, where there are no contexts of handlers. So `context.ts` registers them here.

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
