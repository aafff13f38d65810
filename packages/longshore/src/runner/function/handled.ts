// Promises of a durable function that nothing awaits yet.

/**
 * Marks a promise as handled. A function may start two steps and await the first one only later; when that one fails before, Node finds a rejection
 * without a handler and ends the process, with all functions of this worker.
 */
export function handled(promise: Promise<unknown>): void {
  promise.catch(() => {});
}
