// The answers to an order: what it did or, with `dry`, what it would do.

import { z } from "zod";
import { runStates } from "./shapes.ts";

export const foreseenShape = z
  .object({
    dry: z.literal(true),
    applies: z.boolean().describe("False when the order changes nothing in the current state of the run."),
    state: z.enum(runStates).describe("Of the run, right after the order."),
    starts: z.array(z.string()).describe("Steps that begin at once."),
    again: z.array(z.string()).describe("Steps that have begun before and begin again, at once or later. Their results are dropped."),
    kept: z.array(z.string()).nullable().describe("Steps that keep their results; null for an order that does not start the run again."),
    cancelled: z.array(z.string()).describe("Open steps that are cancelled."),
    children: z.array(z.string()).describe("Child runs of steps that begin again: up to 100."),
  })
  .meta({ id: "Foreseen" });
