// The recordings of the real orchestrator: one file for each chapter.
import { fileURLToPath } from "node:url";

export const PEER = "stepflow-orchestrator 0.13.0, in memory";

export function fixtureFile(chapter: string): string {
  return fileURLToPath(new URL(`../../../longshore/test/fixtures/stepflow/api-${chapter}.json`, import.meta.url));
}
