// When a message comes again whose orchestrator could not be reached, and when it is given up. Any program that may publish to the stream writes any
// address into a task, and an orchestrator may never return: such a message must not come without an end, for each time it takes a slot
// for some seconds.

/** After the first delivery; twice as long after each further one. */
const firstDelayMs = 5_000;
const delayMsMax = 300_000;
/**
 * More than an hour in all. An orchestrator that comes back later than that has offered its tasks again by itself, as it does with all that no worker
 * has claimed.
 */
export const deliveriesMax = 20;

/** How long the message is left alone; undefined when it has come often enough. */
export function delayAfter(deliveries: number): number | undefined {
  return deliveries >= deliveriesMax ? undefined : Math.min(delayMsMax, firstDelayMs * 2 ** (deliveries - 1));
}

/**
 * How often JetStream has delivered a message, by the subject that its answer goes to: `$JS.ACK.<stream>.<consumer>.<deliveries>...`, in which newer
 * servers may have a domain and an account before the stream. 1 for a subject of another form.
 */
export function deliveriesIn(subject: string | undefined): number {
  const tokens = subject?.split(".") ?? [];
  const deliveries = Number(tokens[tokens.length > 9 ? 6 : 4]);
  return Number.isSafeInteger(deliveries) && deliveries > 0 ? deliveries : 1;
}
