// Waits for something that another process does: checks again and again up to a given time.
import { setTimeout as pause } from "node:timers/promises";

const LOOK_MS = 20;

/** Resolves with the first result that is not undefined, null or false. Otherwise rejects after the time, with what was awaited. */
export async function until<T>(what: string, msMax: number, look: () => Promise<T> | T): Promise<Exclude<NonNullable<T>, false>> {
  const endsAt = Date.now() + msMax;
  for (;;) {
    const seen = await look();
    if (seen) return seen as Exclude<NonNullable<T>, false>;
    if (Date.now() > endsAt) throw new Error(`Waited ${msMax} ms for ${what}`);
    await pause(LOOK_MS);
  }
}
