// Short histories that the tests of the checker share.

import { check } from "./checker.ts";
import { RUN, STEP, TERM_MS, writePages } from "./pages.ts";
import type { FinalState } from "./story.ts";
import type { RuleName } from "./violation.ts";

export const TASK = `${RUN}/${STEP}`;

/** The lease of a worker expires, a second worker finishes the task, and the report of the first is refused. */
export function lostLease() {
  const pages = writePages();
  pages.start(0);
  pages.claim(10, "worker-1", { leaseId: "old" });
  pages.claim(10 + TERM_MS, "worker-2", { leaseId: "new", attempt: 1 });
  pages.report(1100, "worker-1", "old", "complete", 409);
  pages.report(1200, "worker-2", "new", "complete");
  return pages;
}

export function finished() {
  const pages = writePages();
  pages.start(0);
  pages.claim(10, "worker-1", { leaseId: "a" });
  pages.report(20, "worker-1", "a", "complete");
  return pages;
}

export const rulesOf = (pages: ReturnType<typeof writePages>, final: FinalState): RuleName[] =>
  check(pages.entries(), final).map(({ rule }) => rule);
