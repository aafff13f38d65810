// Rules about holds: only the newest hold is valid, only within its term, and a repeated report gets the same response.
import type { Entry } from "./history.ts";
import { accepted, compareAge, type Lease, type Story } from "./story.ts";
import { CLOCK_TOLERANCE_MS, type Violation, violation } from "./violation.ts";

/**
 * An accepted completion and a newer hold of the same task exclude each other in any order. Otherwise a stale completion was accepted, or a
 * completed task was handed out again. Failures and heartbeats must be refused when a worker has a newer hold.
 */
export function theNewestHoldIsObeyed({ tasks }: Story): Violation[] {
  return [...tasks].flatMap(([task, leases]) =>
    leases.flatMap((lease) => {
      const newer = leases.find((other) => compareAge(other, lease) > 0);
      if (!newer) return [];
      const broken = (what: string, evidence: Parameters<typeof violation>[3]): Violation[] => {
        const message = `the ${what} of hold ${lease.id} was accepted, and hold ${newer.id} is newer`;
        return [violation("accepted-from-newest-hold", task, message, [lease.claimGot, newer.claimGot, ...evidence])];
      };
      const completion = accepted(lease, "complete");
      const failure = accepted(lease, "fail");
      const late = (tick: number | undefined): boolean => tick !== undefined && tick > newer.claimGot.tick;
      const renewal = lease.renewals.find(({ sent }) => late(sent.tick));
      return [
        ...(completion ? broken("completion", [completion.sent[0], completion.got]) : []),
        ...(failure && late(failure.sent[0]?.tick) ? broken("failure", [failure.sent[0], failure.got]) : []),
        ...(renewal ? broken("heartbeat", [renewal.sent, renewal.got]) : []),
      ];
    }),
  );
}

/** A request that is first sent after the end of a hold must be refused. The server may not have processed the end yet. */
export function nothingIsAcceptedPastItsTerm({ tasks, outages }: Story): Violation[] {
  return [...tasks.values()].flat().flatMap((lease) => {
    const accepts = [
      ...lease.renewals.map((renewal) => ({ what: "heartbeat", ...renewal })),
      ...lease.reports.map(({ verb, sent, got }) => ({ what: verb, sent: sent[0], got: got?.status === 200 ? got : undefined })),
    ];
    return accepts.flatMap(({ what, sent, got }) => {
      if (!sent || !got || sent.at <= overBy(lease, sent, got, outages) + CLOCK_TOLERANCE_MS) return [];
      const message = `a ${what} was accepted although its hold was over when it was sent`;
      return [violation("accepted-within-term", lease.task, message, [lease.claimGot, sent, got])];
    });
  });
}

/** The latest time at which the hold can have been valid when the request in `sent` was performed. In doubt, the server is right. */
function overBy({ claimGot, renewals, beats }: Lease, sent: Entry, got: Entry, outages: Story["outages"]): number {
  const { ttlMs, offerMs } = claimGot;
  const expiresAt = offerMs === undefined ? claimGot.expiresAt : claimGot.at + offerMs;
  const told = renewals.filter((renewal) => renewal.sent.at < sent.at).map((renewal) => renewal.got.expiresAt ?? renewal.got.at + ttlMs);
  const restarted = outages.filter(({ from, to }) => from <= got.at && to >= claimGot.grantedAt).map(({ to }) => to + ttlMs);
  // Each heartbeat without a 200 may have been performed at the last moment.
  const unsure = (beats - renewals.length) * ttlMs;
  return Math.max(expiresAt, ...told, ...restarted) + unsure;
}

export function repeatsAreAnsweredAlike({ tasks }: Story): Violation[] {
  return [...tasks.values()].flat().flatMap((lease) =>
    lease.reports.flatMap(({ verb, answers }) => {
      const [first, ...others] = answers;
      const other = others.find((answer) => answer.status !== first?.status);
      if (!other) return [];
      const message = `the same ${verb} was answered ${first?.status} and ${other.status}`;
      return [violation("repeats-are-answered-alike", lease.task, message, [first, other])];
    }),
  );
}
