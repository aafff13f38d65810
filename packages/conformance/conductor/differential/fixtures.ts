// The recordings of the real server: one file for each chapter, which the protocol's own tests read.
import { fileURLToPath } from "node:url";
import type { Recorded } from "../../src/differential/compare.ts";
import type { Played } from "../../src/differential/script.ts";
import { createRecorder } from "./mask.ts";

export const PEER = "conductor-server 3.32.3, SQLite";

export function fixtureFile(chapter: string): string {
  return fileURLToPath(new URL(`../../../longshore/test/fixtures/conductor/${chapter}.json`, import.meta.url));
}

export function recorded(played: readonly Played[]): Recorded[] {
  const note = createRecorder();
  return played.map(({ step, request, answer }) => note(step.name, request, answer));
}
