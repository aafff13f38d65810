// Ways to break a correct history, as real defects of a server would, each with the rule that must report it.
import type { Entry } from "./history.ts";
import { accepted, compareAge, type FinalState, type Lease, type Story, taskName, tellStory } from "./story.ts";
import type { RuleName } from "./violation.ts";

interface Corruption {
  rule: RuleName;
  /** Changes its arguments and returns true. Returns false when the history has no place for this defect. `pick` chooses among the places. */
  apply(history: Entry[], final: FinalState, pick: number): boolean;
}

export const CORRUPTIONS: Record<string, Corruption> = {
  "an acknowledged run is forgotten": {
    rule: "acknowledged-run-kept",
    apply(history, final, pick) {
      const started = choose(
        history.filter((entry) => entry.kind === "run-start-acknowledged"),
        pick,
      );
      if (started) final.runs = final.runs.filter((run) => run.id !== started.runId);
      return started !== undefined;
    },
  },
  "a run never ends": {
    rule: "every-run-ends",
    apply: (_history, final, pick) => change(choose(final.runs, pick), { state: "running", ended: false }),
  },
  "a task is left behind": {
    rule: "every-run-ends",
    apply: (_history, final, pick) => change(choose(final.tasks, pick), { state: "held", ended: false }),
  },
  "an acknowledged completion is rolled back": {
    rule: "acknowledged-completion-kept",
    apply(history, final, pick) {
      const lease = choose(completedLeases(tellStory(history, final)), pick);
      return change(lease && taskOf(final, lease), { state: "failed", completed: false, token: null });
    },
  },
  "another output is recorded": {
    rule: "acknowledged-completion-kept",
    apply(history, final, pick) {
      const lease = choose(completedLeases(tellStory(history, final)), pick);
      return change(lease && taskOf(final, lease), { token: "not what was sent" });
    },
  },
  "a completed task is handed out again": {
    rule: "acknowledged-completion-kept",
    apply(history, final, pick) {
      const lease = choose(completedLeases(tellStory(history, final)), pick);
      if (lease) claimAgain(history, lease.claimGot, { leaseId: "invented", attempt: lease.claimGot.attempt + 1 });
      return lease !== undefined;
    },
  },
  "an acknowledged failure is not counted": {
    rule: "acknowledged-failure-kept",
    apply(history, final, pick) {
      const story = tellStory(history, final);
      const failed = leasesOf(story).filter((lease) => accepted(lease, "fail") && !story.runs.get(lease.runId)?.cancelSent);
      const lease = choose(failed, pick);
      return change(lease && taskOf(final, lease), { failures: 0 });
    },
  },
  "a cancelled run goes on and succeeds": {
    rule: "acknowledged-cancel-kept",
    apply(history, final, pick) {
      const cancel = choose(
        history.filter((entry) => entry.kind === "cancel-acknowledged"),
        pick,
      );
      if (cancel) cancel.state = "cancelling";
      return change(
        final.runs.find((run) => run.id === cancel?.runId),
        { state: "succeeded" },
      );
    },
  },
  "a stale completion is accepted": {
    rule: "accepted-from-newest-hold",
    apply(history, final, pick) {
      const stale = leasesOf(tellStory(history, final)).filter((lease, _index, all) => {
        const refused = lease.reports.some((report) => report.verb === "complete" && report.got?.status === 409);
        return refused && all.some((other) => other.task === lease.task && compareAge(other, lease) > 0);
      });
      return change(choose(stale, pick)?.reports.find((report) => report.verb === "complete")?.got, { status: 200 });
    },
  },
  "a second completion is accepted": {
    rule: "one-accepted-completion",
    apply(history, final, pick) {
      const story = tellStory(history, final);
      const refused = leasesOf(story).filter((lease) => {
        const rival = story.tasks.get(lease.task)?.some((other) => other !== lease && accepted(other, "complete"));
        return rival && lease.reports.some((report) => report.verb === "complete" && report.got?.status === 409);
      });
      return change(choose(refused, pick)?.reports.find((report) => report.verb === "complete")?.got, { status: 200 });
    },
  },
  "a late completion is accepted": {
    rule: "accepted-within-term",
    apply(history, final, pick) {
      const story = tellStory(history, final);
      const lease = choose(
        completedLeases(story).filter(({ beats, renewals }) => beats === renewals.length),
        pick,
      );
      const report = lease && accepted(lease, "complete");
      const lateMs = 100_000;
      for (const entry of report ? [report.sent[0], report.got] : [])
        change(entry, { at: (entry?.at ?? 0) + lateMs, tick: (entry?.tick ?? 0) + lateMs * 1000 });
      history.sort((a, b) => a.tick - b.tick);
      return lease !== undefined;
    },
  },
  "a repeated report is answered otherwise": {
    rule: "repeats-are-answered-alike",
    apply(history, _final, pick) {
      const got = choose(
        history.filter((entry) => entry.kind === "report-got"),
        pick,
      );
      if (got) history.push({ ...got, status: got.status === 200 ? 409 : 200, tick: (history.at(-1)?.tick ?? 0) + 1 });
      return got !== undefined;
    },
  },
  "a step is handed out before the one it depends on": {
    rule: "dependencies-first",
    apply(history, final, pick) {
      const second = leasesOf(tellStory(history, final)).filter(({ claimGot }) => claimGot.step === "second");
      const claim = choose(second, pick)?.claimGot;
      change(claim, { tick: 0 });
      history.sort((a, b) => a.tick - b.tick);
      return claim !== undefined;
    },
  },
  "a step is handed out without the output of the one it depends on": {
    rule: "dependencies-first",
    apply(history, final, pick) {
      const second = leasesOf(tellStory(history, final)).filter(({ claimGot }) => claimGot.step === "second");
      return change(choose(second, pick)?.claimGot, { upstream: {} });
    },
  },
  "a run succeeds without one of its steps": {
    rule: "success-is-complete",
    apply(_history, final, pick) {
      const succeeded = new Set(final.runs.filter((run) => run.state === "succeeded").map((run) => run.id));
      const among = final.tasks.filter((task) => succeeded.has(task.runId));
      return change(choose(among, pick), { state: "skipped", completed: false, token: null });
    },
  },
  "a start makes two runs": {
    rule: "one-run-a-start",
    apply(_history, final) {
      final.listed = [...final.runs.map((run) => run.id), "twin"];
      return true;
    },
  },
  "a held task is handed out": {
    rule: "holds-never-overlap",
    apply(history, final, pick) {
      const story = tellStory(history, final);
      const pairs = [...story.tasks.values()].flatMap((leases) =>
        leases.flatMap((next, index) => {
          const held = leases[index - 1];
          if (!held || story.runs.get(held.runId)?.cancelSent) return [];
          return held.reports.every(({ got }) => got?.status === 409) ? [{ held, next }] : [];
        }),
      );
      const pair = choose(pairs, pick);
      return change(pair?.next.claimGot, { grantedAt: pair ? pair.held.claimGot.grantedAt + 1 : 0 });
    },
  },
  "a lease is handed out twice": {
    rule: "holds-never-overlap",
    apply(history, final, pick) {
      const lease = choose(leasesOf(tellStory(history, final)), pick);
      if (lease) claimAgain(history, lease.claimGot, {});
      return lease !== undefined;
    },
  },
  "a task is handed out after the cancel of its run": {
    rule: "no-start-after-cancel",
    apply(history, final, pick) {
      const story = tellStory(history, final);
      const cancelled = leasesOf(story).filter((lease) => story.runs.get(lease.runId)?.cancelAcknowledged);
      const lease = choose(cancelled, pick);
      if (lease) claimAgain(history, lease.claimGot, { leaseId: "invented", attempt: lease.claimGot.attempt + 1 });
      return lease !== undefined;
    },
  },
};

function choose<T>(among: readonly T[], pick: number): T | undefined {
  return among[pick % among.length];
}

function change<T extends object>(what: T | undefined, by: Partial<T>): boolean {
  if (what) Object.assign(what, by);
  return what !== undefined;
}

const leasesOf = (story: Story): Lease[] => [...story.tasks.values()].flat();

/** Leases whose completion was accepted in a run that was not cancelled. */
const completedLeases = (story: Story): Lease[] =>
  leasesOf(story).filter((lease) => accepted(lease, "complete") && !story.runs.get(lease.runId)?.cancelSent);

const taskOf = (final: FinalState, lease: Lease): FinalState["tasks"][number] | undefined =>
  final.tasks.find((task) => taskName(task.runId, task.step) === lease.task);

/** Adds a claim at the very end of the history. */
function claimAgain(history: Entry[], like: Entry<"claim-got">, changed: Partial<Entry<"claim-got">>): void {
  const at = (history.at(-1)?.at ?? 0) + 10_000;
  const claim = 1_000_000;
  history.push({ kind: "claim-sent", claim, at, tick: at * 1000, where: "intruder.0.jsonl:1" });
  const times = { at: at + 2, tick: (at + 2) * 1000, grantedAt: at + 1, expiresAt: at + 1 + like.ttlMs };
  history.push({ ...like, ...times, ...changed, claim, where: "intruder.0.jsonl:2" });
}
