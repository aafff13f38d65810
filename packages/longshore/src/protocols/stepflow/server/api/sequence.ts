// The numbers of a run's events. There is no journal: events and their numbers are computed from the records of the run. So they are the
// same before and after a restart. A number is the millisecond of the event since the start of the root run, combined with its place within
// that millisecond. Numbers rise strictly, but not by one.

/**
 * The number of places for events in one millisecond: more than are ever committed in a millisecond. With this many places, numbers stay
 * below 2^53 for a run of two years.
 */
const placesMax = 2 ** 17;

/** The lowest number of an event at this time; 0 at the start. */
export function numberAt(startedAt: number, at: number): number {
  return Math.max(0, at - startedAt) * placesMax;
}

/** The last event of a run comes after all other events of its millisecond. */
export function numberOfEnd(startedAt: number, at: number): number {
  return numberAt(startedAt, at) + placesMax - 1;
}

/** The number of the event at `place` in its millisecond. Events beyond the available places share the last one. */
export function numberOf(startedAt: number, at: number, place: number): number {
  return numberAt(startedAt, at) + Math.min(place, placesMax - 2);
}

/** Returns whether a state with this number is at least as new as `asof`. All events of one millisecond are recorded together. */
export function isReached(number: number, asof: number): boolean {
  return Math.floor(number / placesMax) >= Math.floor(asof / placesMax);
}
