// Promises of a durable function that nothing awaits yet.

/**
 * Marks a promise as handled. A function may start two steps and await the first one only later. If the first one fails before that, Node
 * sees a rejection without a handler and ends the process.
 */
export function handled(promise: Promise<unknown>): void {
  promise.catch(() => {});
}
