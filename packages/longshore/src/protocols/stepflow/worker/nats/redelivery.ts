// Decides when a message is delivered again because its orchestrator could not be reached, and when it is dropped. Any program that may
// publish to the stream can write any address into a task, and an orchestrator may never return. Each delivery takes a slot for some
// seconds, so their number is limited.

/** Delay after the first delivery. It doubles after each further one. */
const firstDelayMs = 5_000;
const delayMsMax = 300_000;
/**
 * Maximum number of deliveries: with the delays, more than an hour. An orchestrator that returns later offers its tasks again itself, as it
 * does with all unclaimed tasks.
 */
export const deliveriesMax = 20;

/** The delay before the next delivery; undefined when the message has been delivered often enough. */
export function delayAfter(deliveries: number): number | undefined {
  return deliveries >= deliveriesMax ? undefined : Math.min(delayMsMax, firstDelayMs * 2 ** (deliveries - 1));
}

/**
 * How often JetStream has delivered a message. The number is in the reply subject: `$JS.ACK.<stream>.<consumer>.<deliveries>...`, in which
 * newer servers may put a domain and an account before the stream. Returns 1 for a subject of another form.
 */
export function deliveriesIn(subject: string | undefined): number {
  const tokens = subject?.split(".") ?? [];
  const deliveries = Number(tokens[tokens.length > 9 ? 6 : 4]);
  return Number.isSafeInteger(deliveries) && deliveries > 0 ? deliveries : 1;
}
