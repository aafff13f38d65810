// The checker: reads the histories of all processes and the final state of the server, and reports each broken promise.
//
// It is a pure function of both, so that tests can pass broken histories. A rule reports only certain faults: when a response was lost, both
// possible outcomes are allowed.

import { nothingIsAcceptedPastItsTerm, repeatsAreAnsweredAlike, theNewestHoldIsObeyed } from "./checker-fence.ts";
import {
  dependenciesComeFirst,
  everyRunEnds,
  everyRunWasStartedByOneAnswer,
  linesAreKeptOnce,
  restartedRunsGoOn,
  successIsComplete,
} from "./checker-runs.ts";
import type { Entry } from "./history.ts";
import { accepted, type FinalState, type Lease, type Story, taskName, tellStory } from "./story.ts";
import { CLOCK_TOLERANCE_MS, type Violation, violation } from "./violation.ts";

export function check(history: readonly Entry[], final: FinalState): Violation[] {
  const story = tellStory(history, final);
  return RULES.flatMap((rule) => rule(story));
}

export function describeViolations(violations: readonly Violation[]): string {
  return violations
    .map(({ rule, subject, message, evidence }) => [`${rule}: ${subject}: ${message}`, ...evidence].join("\n    "))
    .join("\n");
}

const RULES: ((story: Story) => Violation[])[] = [
  acknowledgedRunsAreKept,
  acknowledgedCompletionsAreKept,
  acknowledgedFailuresAreKept,
  acknowledgedCancelsAreKept,
  linesAreKeptOnce,
  atMostOneCompletionIsAccepted,
  theNewestHoldIsObeyed,
  nothingIsAcceptedPastItsTerm,
  repeatsAreAnsweredAlike,
  holdsNeverOverlap,
  nothingStartsAfterACancel,
  dependenciesComeFirst,
  successIsComplete,
  everyRunWasStartedByOneAnswer,
  restartedRunsGoOn,
  everyRunEnds,
];

function acknowledgedRunsAreKept({ runs, finalRuns }: Story): Violation[] {
  return [...runs.values()]
    .filter((run) => run.started && !finalRuns.has(run.id))
    .map((run) => violation("acknowledged-run-kept", run.id, "its start was acknowledged and the server does not know it", [run.started]));
}

function acknowledgedCompletionsAreKept(story: Story): Violation[] {
  const found: Violation[] = [];
  const broken = (task: string, message: string, evidence: (Entry | undefined)[]): void => {
    found.push(violation("acknowledged-completion-kept", task, message, evidence));
  };
  for (const [task, leases] of story.tasks) {
    const lease = leases.find((one) => accepted(one, "complete"));
    const report = lease && accepted(lease, "complete");
    if (!lease || !report) continue;
    const sent = report.sent[0];
    const end = story.finalTasks.get(task);
    // A cancel that may have come first makes "cancelled" a true outcome of an accepted completion as well.
    const cancel = story.runs.get(lease.runId)?.cancelSent;
    const maybeCancelled = cancel !== undefined && cancel.tick < report.got.tick;
    if (!end) broken(task, "its completion was acknowledged and the server does not know the task", [sent, report.got]);
    else if (!end.completed && !maybeCancelled)
      broken(task, `its completion was acknowledged and it ended as ${end.state}`, [sent, report.got]);
    else if (end.completed && end.token !== undefined && end.token !== (sent?.token ?? null)) {
      broken(task, `its completion said ${sent?.token} and the server recorded ${end.token}`, [sent, report.got]);
    }
    for (const later of leases) {
      if (later.claimSent && later.claimSent.tick > report.got.tick) {
        broken(task, "it was handed out again after its completion was acknowledged", [report.got, later.claimSent, later.claimGot]);
      }
    }
  }
  return [...found, ...dependentsSeeTheAcceptedOutput(story)];
}

/** A dependent receives the token of the accepted completion as the output of a step. */
function dependentsSeeTheAcceptedOutput({ tasks }: Story): Violation[] {
  const found: Violation[] = [];
  for (const dependent of [...tasks.values()].flat()) {
    for (const [step, token] of Object.entries(dependent.claimGot.upstream)) {
      const task = taskName(dependent.runId, step);
      const report = tasks
        .get(task)
        ?.map((lease) => accepted(lease, "complete"))
        .find((one) => one !== undefined);
      if (!report || report.sent[0]?.token === token) continue;
      const message = `its completion said ${report.sent[0]?.token} and ${dependent.task} was given ${token}`;
      found.push(violation("acknowledged-completion-kept", task, message, [report.sent[0], report.got, dependent.claimGot]));
    }
  }
  return found;
}

function acknowledgedFailuresAreKept({ tasks, runs, finalTasks }: Story): Violation[] {
  const found: Violation[] = [];
  for (const [task, leases] of tasks) {
    const failures = finalTasks.get(task)?.failures;
    // After a cancel a failure is acknowledged without being counted: the task has ended.
    if (failures === undefined || (leases[0] && runs.get(leases[0].runId)?.cancelSent)) continue;
    const reports = leases.map((lease) => accepted(lease, "fail")).filter((report) => report !== undefined);
    if (reports.length <= failures) continue;
    const message = `${reports.length} failures were acknowledged and the server counted ${failures}`;
    found.push(
      violation(
        "acknowledged-failure-kept",
        task,
        message,
        reports.map((report) => report.got),
      ),
    );
  }
  return found;
}

function acknowledgedCancelsAreKept({ tasks, runs, finalRuns }: Story): Violation[] {
  const found: Violation[] = [];
  const completions = [...tasks.values()].flat().map((lease) => ({ runId: lease.runId, report: accepted(lease, "complete") }));
  for (const run of runs.values()) {
    const cancel = run.cancelAcknowledged;
    const state = finalRuns.get(run.id)?.state;
    if (!cancel || state === undefined || state === "cancelled") continue;
    const late = completions.find(({ runId, report }) => runId === run.id && report?.sent[0] && report.sent[0].tick > cancel.tick)?.report;
    if (cancel.state === "cancelled" || cancel.state === "cancelling") {
      found.push(violation("acknowledged-cancel-kept", run.id, `its cancel was acknowledged and it ended as ${state}`, [cancel]));
    } else if (state === "succeeded" && late) {
      const message = "its cancel was acknowledged, yet later completions made it succeed";
      found.push(violation("acknowledged-cancel-kept", run.id, message, [cancel, late.sent[0], late.got]));
    }
  }
  return found;
}

function atMostOneCompletionIsAccepted({ tasks }: Story): Violation[] {
  return [...tasks].flatMap(([task, leases]) => {
    const reports = leases.map((lease) => accepted(lease, "complete")).filter((report) => report !== undefined);
    if (reports.length < 2) return [];
    const message = `${reports.length} completions of it were accepted`;
    return [
      violation(
        "one-accepted-completion",
        task,
        message,
        reports.flatMap((report) => [report.sent[0], report.got]),
      ),
    ];
  });
}

function holdsNeverOverlap({ tasks, runs, repeatedLeases }: Story): Violation[] {
  const found = repeatedLeases.map(({ first, again }) =>
    violation("holds-never-overlap", taskName(again.runId, again.step), `lease ${again.leaseId} was handed out twice`, [first, again]),
  );
  for (const [task, leases] of tasks) {
    found.push(...leases.flatMap(takenByTwo));
    for (const [index, next] of leases.entries()) {
      const held = leases[index - 1];
      // The answer reached its worker after the grant, so the earlier of the two times is the more exact.
      const granted = Math.min(next.claimGot.grantedAt, next.claimGot.at);
      if (!held || wasOver(held, granted, runs.get(held.runId)?.cancelSent)) continue;
      const { until, by } = liveUntil(held);
      if (granted >= until - CLOCK_TOLERANCE_MS) continue;
      const message = `hold ${next.id} was granted ${until - granted} ms before hold ${held.id} was over`;
      found.push(violation("holds-never-overlap", task, message, [held.claimGot, by, next.claimGot]));
    }
  }
  return found;
}

/** An offer that was delivered twice belongs to the worker whose heartbeat came first. */
function takenByTwo({ id, task, renewals }: Lease): Violation[] {
  const [first] = renewals;
  const other = renewals.find(({ got }) => first !== undefined && workerOf(got) !== workerOf(first.got));
  if (!first || !other) return [];
  const message = `offer ${id} was taken by ${workerOf(first.got)} and by ${workerOf(other.got)}`;
  return [violation("holds-never-overlap", task, message, [first.got, other.got])];
}

/** A worker has the same name after each restart. */
const workerOf = (entry: Entry): string => entry.where.slice(0, entry.where.indexOf("."));

/** True when something other than time may have ended a hold before the next one was granted. */
function wasOver(held: Lease, granted: number, cancel: Entry | undefined): boolean {
  const before = (entry: Entry | undefined): boolean => entry !== undefined && entry.at <= granted + CLOCK_TOLERANCE_MS;
  return before(cancel) || held.reports.some(({ sent, got }) => before(sent[0]) && (got === undefined || got.status === 200));
}

/** The latest time that the server promised a hold, and the line with it: its claim, or a heartbeat answered 200. */
function liveUntil(lease: Lease): { until: number; by: Entry } {
  let until = lease.claimGot.offerMs === undefined ? lease.claimGot.expiresAt : 0;
  let by: Entry = lease.claimGot;
  for (const { sent, got } of lease.renewals) {
    // The server renewed it when the heartbeat arrived, which is not before it was sent.
    const renewed = Math.max(got.expiresAt ?? 0, sent.at + lease.claimGot.ttlMs);
    if (renewed <= until) continue;
    until = renewed;
    by = got;
  }
  return { until, by };
}

function nothingStartsAfterACancel({ tasks, runs }: Story): Violation[] {
  return [...tasks.values()].flat().flatMap((lease) => {
    const cancel = runs.get(lease.runId)?.cancelAcknowledged;
    if (!cancel) return [];
    const { claimSent, claimGot } = lease;
    const broken = (message: string, evidence: (Entry | undefined)[]): Violation[] => [
      violation("no-start-after-cancel", lease.task, message, [cancel, ...evidence]),
    ];
    // For a claim that was waiting when the cancel came, the server's grant time counts. An offer has no grant time.
    const granted = claimGot.offerMs === undefined && claimGot.grantedAt > cancel.at + CLOCK_TOLERANCE_MS;
    const asked = !claimGot.stored && claimSent !== undefined && claimSent.tick > cancel.tick;
    if (asked || granted) return broken("it was handed out after the cancel of its run was acknowledged", [claimSent, claimGot]);
    const taken = claimGot.offerMs === undefined ? undefined : lease.renewals[0];
    if (taken === undefined || taken.sent.tick < cancel.tick || taken.got.cancelled) return [];
    return broken("its offer was taken after the cancel of its run was acknowledged", [claimGot, taken.sent, taken.got]);
  });
}
