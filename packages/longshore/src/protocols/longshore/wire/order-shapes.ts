// What an order would do, and what it did.

import { z } from "zod";
import { runStates } from "./shapes.ts";

export const foreseenShape = z
  .object({
    dry: z.literal(true),
    applies: z.boolean().describe("False: the run is in a state in which the order changes nothing."),
    state: z.enum(runStates).describe("Of the run, right after the order."),
    starts: z.array(z.string()).describe("Steps that begin at once."),
    again: z.array(z.string()).describe("Steps that have begun before and begin again, at once or later: their results are given up."),
    kept: z.array(z.string()).nullable().describe("Steps that keep their results; null for an order that begins nothing again."),
    cancelled: z.array(z.string()).describe("Open steps that are cancelled."),
    children: z.array(z.string()).describe("Runs that were started by steps which begin again: up to 100."),
  })
  .meta({ id: "Foreseen" });
