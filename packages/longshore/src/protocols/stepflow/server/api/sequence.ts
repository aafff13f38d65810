// The numbers of a run's events. There is no journal: events are worked out from what is recorded about the run, and so are their numbers,
// the same before and after a restart. A number is the millisecond of the event, counted from the start of the root run, and its place
// among those of the same millisecond. Numbers rise strictly, but not one by one.

/** Events that one millisecond has room for: more than are ever committed in one. 2^53 then lasts for a run of two years. */
const placesMax = 2 ** 17;

/** The least number that an event of this time can have; 0 for the start itself. */
export function numberAt(startedAt: number, at: number): number {
  return Math.max(0, at - startedAt) * placesMax;
}

/** The last event of a run comes after everything else of its millisecond. */
export function numberOfEnd(startedAt: number, at: number): number {
  return numberAt(startedAt, at) + placesMax - 1;
}

/** The place of an event in its millisecond; those beyond the room share what follows it, which the order of numbers allows for. */
export function numberOf(startedAt: number, at: number, place: number): number {
  return numberAt(startedAt, at) + Math.min(place, placesMax - 2);
}

/** Whether what has this number is as new as `asof`. Within one millisecond everything is recorded at once. */
export function isReached(number: number, asof: number): boolean {
  return Math.floor(number / placesMax) >= Math.floor(asof / placesMax);
}
