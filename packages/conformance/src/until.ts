// Waits for something that a peer does: checks for it again and again until it is true.

/** Short enough to lose no time, long enough to leave the processor to the peers. */
const ASK_EVERY_MS = 50;

/** Longer than every wait that a peer causes (such as a lease of 60 s), and shorter than the timeout of a test. */
const WAIT_MS_MAX = 180_000;

/** Returns the first value that is not undefined. When there is none in time, rejects with an error that shows the result of `explain`. */
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
