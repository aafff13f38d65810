import type { Json } from "../../../../core/json/json.ts";
import { ExactNumber } from "../../../../core/json/json-exact.ts";

/** Called with the number of values that are about to be visited; throws when the total is too large. */
export type Spend = (visits: number) => void;

/** How many characters are read in the time of one visit, at up to 4 ns each. */
const visitChars = 64;

export function visitsOfChars(chars: number): number {
  return Math.ceil(chars / visitChars);
}

/** The cost of reading a value without its members: a text by its characters, a long number by its digits. */
export function visitsOf(value: Json | undefined): number {
  if (typeof value === "string") return 1 + visitsOfChars(value.length);
  return value instanceof ExactNumber ? 1 + visitsOfChars(value.toString().length) : 1;
}
