// The streams of a run: which steps produce parts, and how far their readers are.

import { z } from "zod";
import { pageOf } from "./shapes.ts";

const whole = z.number().int();

const readerShape = z.object({
  step: z.string(),
  read: whole
    .nullable()
    .describe("How many parts it has finished with. Null when it has not finished with any, or does not report what it reads."),
  isWhole: z.boolean().describe("False when it finishes parts in such a random order that only the first stretches of them were counted."),
  behind: whole.nullable().describe("How many parts it has not finished with; null when `read` is null."),
  oldest: z
    .object({ sequence: whole, at: whole.describe("When it was stored, in epoch milliseconds.") })
    .nullable()
    .describe("The first part that it has not finished with."),
});

export const streamShape = z
  .object({
    step: z.string().describe("The step that produces the parts."),
    given: whole.describe("How many parts it has produced."),
    newestAt: whole.describe("When the newest was stored, in epoch milliseconds."),
    readers: z.array(readerShape).describe("The steps that start with its first part, or have finished with some of its parts."),
    hasMoreReaders: z.boolean().describe("True when too many steps follow: the others were not looked at."),
  })
  .meta({ id: "Stream" });

export const streamsShape = pageOf(streamShape);
