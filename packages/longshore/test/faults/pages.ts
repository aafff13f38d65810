// Writes histories by hand for the tests of the checker: a line a call, times in milliseconds, one clock.
import type { Claim, Entry, Happening } from "./history.ts";
import type { FinalState } from "./story.ts";

export const RUN = "run-1";
export const STEP = "build";
export const TERM_MS = 1000;

export interface Pages {
  /** Adds one line to the file of `who`. */
  at(ms: number, who: string, happening: Happening): void;
  start(ms: number, runId?: string): void;
  cancel(ms: number, runId?: string): void;
  /** A claim granted at `ms` and answered `answerMs` later. */
  claim(ms: number, who: string, claim: Partial<Claim> & { leaseId: string }, answerMs?: number): void;
  heartbeat(ms: number, who: string, leaseId: string, status?: number): void;
  report(ms: number, who: string, leaseId: string, verb: "complete" | "fail", status?: number): void;
  entries(): Entry[];
}

/** The token that the completion of a lease carries. */
export const tokenOf = (leaseId: string): string => `done by ${leaseId}`;

export function writePages(): Pages {
  const entries: Entry[] = [];
  const lines = new Map<string, number>();
  let numbers = 0;
  const pages: Pages = {
    at(ms, who, happening) {
      const line = (lines.get(who) ?? 0) + 1;
      lines.set(who, line);
      entries.push({ at: ms, tick: ms * 1000, ...happening, where: `${who}.0.jsonl:${line}` } as Entry);
    },
    start(ms, runId = RUN) {
      const request = numbers++;
      pages.at(ms, "client", { kind: "run-start-sent", request, workflow: "w" });
      pages.at(ms + 1, "client", { kind: "run-start-acknowledged", request, workflow: "w", runId });
    },
    cancel(ms, runId = RUN) {
      pages.at(ms, "client", { kind: "cancel-sent", runId });
      pages.at(ms + 1, "client", { kind: "cancel-acknowledged", runId, status: 202 });
    },
    claim(ms, who, claim, answerMs = 1) {
      const number = numbers++;
      const granted = { attempt: 0, ttlMs: TERM_MS, grantedAt: ms, expiresAt: ms + (claim.ttlMs ?? TERM_MS), upstream: {} };
      pages.at(ms - 1, who, { kind: "claim-sent", claim: number });
      pages.at(ms + answerMs, who, { kind: "claim-got", claim: number, runId: RUN, step: STEP, ...granted, ...claim });
    },
    heartbeat(ms, who, leaseId, status = 200) {
      const beat = numbers++;
      pages.at(ms - 1, who, { kind: "heartbeat-sent", leaseId, beat });
      pages.at(ms + 1, who, { kind: "heartbeat-got", leaseId, beat, status });
    },
    report(ms, who, leaseId, verb, status = 200) {
      pages.at(ms - 1, who, { kind: "report-sent", leaseId, verb, token: verb === "complete" ? tokenOf(leaseId) : undefined });
      pages.at(ms + 1, who, { kind: "report-got", leaseId, verb, status });
    },
    entries: () => [...entries].sort((a, b) => a.tick - b.tick),
  };
  return pages;
}

/** A run of one task that succeeded by the completion of `leaseId`. */
export function succeededBy(leaseId: string, changed: Partial<FinalState["tasks"][number]> = {}): FinalState {
  const task = { id: "task-1", runId: RUN, step: STEP, state: "done", ended: true, completed: true, token: tokenOf(leaseId) };
  return { runs: [{ id: RUN, state: "succeeded", ended: true }], tasks: [{ ...task, ...changed }] };
}

/** A run of one task that was cancelled. */
export function wasCancelled(): FinalState {
  const task = { id: "task-1", runId: RUN, step: STEP, state: "cancelled", ended: true, completed: false, token: null };
  return { runs: [{ id: RUN, state: "cancelled", ended: true }], tasks: [task] };
}
