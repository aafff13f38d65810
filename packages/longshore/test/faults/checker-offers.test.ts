// Offers: tasks that a worker has received but does not hold yet. The first heartbeat accepts an offer that is still valid.
import { expect, it } from "vitest";
import { check } from "./checker.ts";
import { succeededBy, TERM_MS, wasCancelled, writePages } from "./pages.ts";

const OFFER_MS = 200;

/** The first offer is never claimed; the task is offered again when its time is over, and done. */
function offeredTwice() {
  const pages = writePages();
  pages.start(0);
  pages.claim(10, "worker-2", { leaseId: "new", grant: 2, offerMs: OFFER_MS });
  pages.heartbeat(20, "worker-2", "new");
  return pages;
}

const rulesOf = (pages: ReturnType<typeof writePages>): string[] => check(pages.entries(), succeededBy("new")).map(({ rule }) => rule);

it("an offer that is read after the next one was accepted gives no right to the task", () => {
  const pages = offeredTwice();
  pages.claim(30, "worker-1", { leaseId: "old", grant: 1, offerMs: OFFER_MS });
  pages.heartbeat(40, "worker-1", "old", 409);
  pages.report(60, "worker-2", "new", "complete");
  expect(rulesOf(pages)).toEqual([]);
});

it("a heartbeat on the older of two offers must be refused, at any time of reading", () => {
  const pages = offeredTwice();
  pages.claim(30, "worker-1", { leaseId: "old", grant: 1, offerMs: OFFER_MS });
  pages.heartbeat(40, "worker-1", "old");
  pages.report(60, "worker-2", "new", "complete");
  expect(rulesOf(pages)).toContain("accepted-from-newest-hold");
});

it("an accepted offer is a hold, and no other hold may overlap it", () => {
  const pages = offeredTwice();
  pages.claim(30 + TERM_MS / 2, "worker-1", { leaseId: "next", grant: 3, offerMs: OFFER_MS });
  pages.report(50 + TERM_MS / 2, "worker-1", "next", "complete");
  const rules = check(pages.entries(), succeededBy("next")).map(({ rule }) => rule);
  expect(rules).toEqual(["holds-never-overlap"]);
});

it("an offer cannot be accepted after its time", () => {
  const pages = writePages();
  pages.start(0);
  pages.claim(10, "worker-1", { leaseId: "new", grant: 1, offerMs: OFFER_MS });
  pages.heartbeat(10 + 2 * OFFER_MS, "worker-1", "new");
  pages.report(30 + 2 * OFFER_MS, "worker-1", "new", "complete");
  expect(rulesOf(pages)).toEqual(["accepted-within-term"]);
});

it("an offer may be completed without ever being claimed", () => {
  const pages = writePages();
  pages.start(0);
  pages.claim(10, "worker-1", { leaseId: "new", grant: 1, offerMs: OFFER_MS });
  pages.report(100, "worker-1", "new", "complete");
  expect(rulesOf(pages)).toEqual([]);
});

it("an offer may be delivered twice by a stream of messages, if only one worker gets it", () => {
  const deliver = (status: number): string[] => {
    const pages = offeredTwice();
    pages.claim(30, "worker-1", { leaseId: "new", grant: 2, offerMs: OFFER_MS, stored: true });
    pages.heartbeat(40, "worker-1", "new", status);
    pages.report(60, "worker-2", "new", "complete");
    return rulesOf(pages);
  };
  expect(deliver(409)).toEqual([]);
  expect(deliver(200)).toEqual(["holds-never-overlap"]);
});

it("a stream that does not store messages may not deliver an offer twice", () => {
  const pages = offeredTwice();
  pages.claim(30, "worker-1", { leaseId: "new", grant: 2, offerMs: OFFER_MS });
  pages.report(60, "worker-2", "new", "complete");
  expect(rulesOf(pages)).toEqual(["holds-never-overlap"]);
});

it("an offer that waited in a stream of messages may be read after the cancel of its run, but may not be accepted", () => {
  const take = (status: number): string[] => {
    const pages = writePages();
    pages.start(0);
    pages.cancel(10);
    pages.claim(20, "worker-1", { leaseId: "new", grant: 1, offerMs: OFFER_MS, stored: true });
    pages.heartbeat(30, "worker-1", "new", status);
    return check(pages.entries(), wasCancelled()).map(({ rule }) => rule);
  };
  expect(take(409)).toEqual([]);
  expect(take(200)).toEqual(["no-start-after-cancel"]);
});
