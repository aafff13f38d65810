// Query parameters that several operations take.

import { z } from "zod";

/** Default and maximum of the items of one page. */
const limitDefault = 100;
const limitMax = 1_000;

export const wholeNumber = z
  .string()
  .regex(/^\d{1,15}$/)
  .transform(Number);

export const limit = wholeNumber
  .pipe(z.number().min(1).max(limitMax))
  .default(limitDefault)
  .describe(`a whole number from 1 to ${limitMax}; ${limitDefault} when absent`);

/** A position in a numbered list: of steps, or of log chunks. */
export const position = wholeNumber.optional().describe("a whole number: the `next` of the page before");

/** Maximum wait of a request: shorter than the timeouts of proxies. */
const waitMsMax = 30_000;

export const waitMs = wholeNumber
  .pipe(z.number().max(waitMsMax))
  .default(0)
  .describe(`milliseconds to wait while there is nothing, at most ${waitMsMax}; 0 when absent`);

/** The id at the end of a page. */
export const cursor = z.string().min(1).max(600).optional().describe("the `next` of the page before");

export const flag = z
  .enum(["true", "false"])
  .transform((text) => text === "true")
  .default(false)
  .describe("true or false");

export const time = wholeNumber.describe("a time in epoch milliseconds");

/** Values with commas between them. */
export function listOf<Item extends z.ZodType<unknown, string>>(item: Item, most: number) {
  return z
    .string()
    .transform((text) => [...new Set(text.split(","))])
    .pipe(z.array(item).max(most));
}
