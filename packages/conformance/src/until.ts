// Waits for something that a foreign program will do, by asking again until it is so.

/** Often enough to lose no time, seldom enough to leave the processor to the peers. */
const ASK_EVERY_MS = 50;

/** Above every wait that a peer imposes (a lease of 60 s and its return), below the test's own limit. */
const WAIT_MS_MAX = 180_000;

/** Returns the first value that is not undefined; fails with the last word of `explain` when none comes. */
export async function until<T>(
  what: string,
  ask: () => Promise<T | undefined> | T | undefined,
  explain: () => unknown = () => "",
): Promise<T> {
  const giveUpAt = Date.now() + WAIT_MS_MAX;
  for (;;) {
    const value = await ask();
    if (value !== undefined) return value;
    if (Date.now() > giveUpAt) throw new Error(`waited ${WAIT_MS_MAX} ms for ${what}; ${JSON.stringify(explain())}`);
    await new Promise((resolve) => setTimeout(resolve, ASK_EVERY_MS));
  }
}
