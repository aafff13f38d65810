// The differences between our responses and the real server's that exist on purpose. Also functions with which protocols describe where
// they occur.
import type { Difference, Recorded } from "./compare.ts";

export interface Accepted {
  /** Also an entry of the protocol's README. */
  reason: string;
  when(place: Place): boolean;
}

export interface Place extends Difference {
  chapter: string;
  step: string;
  /** The last name in the path `at`. */
  field: string;
  /** The two HTTP statuses. */
  theirs: number;
  our: number;
}

export type Rule = (place: Place) => boolean;

/** The entry that allows this difference, if one does. */
export function acceptedBy(
  differences: readonly Accepted[],
  chapter: string,
  { reference, ours }: { reference: Recorded; ours: Recorded },
  difference: Difference,
): Accepted | undefined {
  const place: Place = {
    ...difference,
    chapter,
    step: reference.step,
    field: difference.at.split(".").at(-1) ?? "",
    theirs: reference.answer.status,
    our: ours.answer.status,
  };
  return differences.find(({ when }) => when(place));
}

export const isError = (status: number): boolean => status >= 400;

/** Everything in the response to one of these steps of a chapter. */
export const steps =
  (chapter: string, ...names: string[]): Rule =>
  (place) =>
    place.chapter === chapter && names.includes(place.step);

export const anyOf =
  (...rules: Rule[]): Rule =>
  (place) =>
    rules.some((rule) => rule(place));

export const fields =
  (...names: string[]): Rule =>
  (place) =>
    names.includes(place.field);
