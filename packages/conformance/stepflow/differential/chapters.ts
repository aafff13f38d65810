// Every request that both servers receive, in this order. Chapters share one server.
import type { Chapter } from "../../src/differential/script.ts";
import { expressions, steps } from "./chapters/expressions.ts";
import { diagnostics, flows, health } from "./chapters/flows.ts";
import { blobs, builtIns, overrides, refusedRuns, runs } from "./chapters/runs.ts";

export const chapters: readonly Chapter[] = [health, flows, diagnostics, expressions, steps, runs, refusedRuns, overrides, builtIns, blobs];
