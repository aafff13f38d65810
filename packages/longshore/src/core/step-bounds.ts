// The bounds of the options of a step: a step of a graph, or a command of a durable function.

/** Maximum number of retries, and of lost leases. A larger number is a mistake. */
export const retriesMax = 1_000;
/** Maximum length of timeouts and waits: a leap year. */
export const waitMsMax = 366 * 86_400_000;
export const labelsMax = 64;
export const labelCharsMax = 256;
/** Maximum number of limit keys of one step, and maximum length of a key. */
export const limitsMax = 16;
export const limitKeyCharsMax = 256;
/** Maximum values of a limit: tasks that are held at the same time, and tasks in a window. */
export const heldMax = 1_000_000;
export const priorityMax = 1_000_000;
/** The latest time that a date can show. */
export const timeMax = 8_640_000_000_000_000;
/** The longest pause. Even from the latest time of a server, it ends before the latest time of a date. */
export const sleepMsMax = timeMax / 2;
