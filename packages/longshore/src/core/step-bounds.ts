// The bounds of what a step may ask for: one of a graph, or a command of a durable function.

/** Retries, and lost leases. A number above these is a mistake. */
export const retriesMax = 1_000;
/** Timeouts and waits: a leap year. */
export const waitMsMax = 366 * 86_400_000;
export const labelsMax = 64;
export const labelCharsMax = 256;
/** Limit keys of one step, and the length of one. */
export const limitsMax = 16;
export const limitKeyCharsMax = 256;
/** Of a limit: tasks that are held at once, and tasks in a window. */
export const heldMax = 1_000_000;
export const priorityMax = 1_000_000;
/** The latest time that a date can show. */
export const timeMax = 8_640_000_000_000_000;
/** The longest pause: counted from any time of a server it ends at a date. */
export const sleepMsMax = timeMax / 2;
