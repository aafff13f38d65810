// Tests the rules of the checker about who holds a task: the newest hold within its term, and no two holds at once.

import { describe, expect, it } from "vitest";
import { check } from "./checker.ts";
import { finished, lostLease, rulesOf, TASK } from "./checker-histories.ts";
import { succeededBy, TERM_MS, tokenOf, writePages } from "./pages.ts";
import { CLOCK_TOLERANCE_MS, type RuleName } from "./violation.ts";

describe("an accepted completion has the newest hold", () => {
  it("a stale completion that is accepted is reported with the relevant lines", () => {
    const pages = writePages();
    pages.claim(10, "worker-1", { leaseId: "old" });
    pages.claim(10 + TERM_MS, "worker-2", { leaseId: "new", attempt: 1 });
    pages.report(1050, "worker-1", "old", "complete");
    const [found, ...others] = check(pages.entries(), succeededBy("old"));
    expect(others).toEqual([]);
    expect(found).toMatchObject({ rule: "accepted-from-newest-hold", subject: TASK });
    expect(found?.evidence.map((line) => line.split(" ")[0])).toEqual([
      "worker-1.0.jsonl:2",
      "worker-2.0.jsonl:2",
      "worker-1.0.jsonl:3",
      "worker-1.0.jsonl:4",
    ]);
  });
});

describe("a hold is valid only while it is the newest and within its term", () => {
  const accepts = (act: (pages: ReturnType<typeof writePages>) => void): RuleName[] => {
    const pages = writePages();
    pages.claim(10, "worker-1", { leaseId: "a" });
    act(pages);
    return rulesOf(pages, succeededBy("a"));
  };

  it("a failure that is accepted after another worker has the task is reported", () => {
    const pages = lostLease();
    pages.report(1050, "worker-1", "old", "fail");
    expect(rulesOf(pages, succeededBy("new"))).toEqual(["accepted-from-newest-hold"]);
  });

  it("a completion that is first sent after the term is reported; one that is repeated after the term is not", () => {
    expect(accepts((pages) => pages.report(2000, "worker-1", "a", "complete"))).toEqual(["accepted-within-term"]);
    const again = accepts((pages) => {
      pages.at(500, "worker-1", { kind: "report-sent", leaseId: "a", verb: "complete", token: tokenOf("a") });
      pages.at(900, "worker-1", { kind: "report-unanswered", leaseId: "a", verb: "complete", why: "connection reset" });
      pages.report(2000, "worker-1", "a", "complete");
    });
    expect(again).toEqual([]);
  });

  it("a heartbeat that is accepted after the term is reported", () => {
    expect(accepts((pages) => pages.heartbeat(2000, "worker-1", "a"))).toEqual(["accepted-within-term"]);
  });

  it("a restart of the server gives one more term, and so may a heartbeat without an answer", () => {
    const restarted = (pages: ReturnType<typeof writePages>): void => {
      pages.at(900, "chaos", { kind: "process-killed", name: "server" });
      pages.at(1500, "chaos", { kind: "process-started", name: "server" });
    };
    const beat = (pages: ReturnType<typeof writePages>): void =>
      pages.at(500, "worker-1", { kind: "heartbeat-sent", leaseId: "a", beat: 1 });
    for (const excuse of [restarted, beat]) {
      const completedAt = (ms: number): RuleName[] =>
        accepts((pages) => {
          excuse(pages);
          pages.report(ms, "worker-1", "a", "complete");
        });
      expect(completedAt(2000)).toEqual([]);
      expect(completedAt(3000)).toEqual(["accepted-within-term"]);
    }
  });

  it("a report that gets two different responses is reported", () => {
    const pages = finished();
    pages.report(30, "worker-1", "a", "complete", 409);
    expect(rulesOf(pages, succeededBy("a"))).toEqual(["repeats-are-answered-alike"]);
  });
});

describe("no two live holds overlap", () => {
  it("a claim granted before the end of the earlier term is reported", () => {
    const pages = writePages();
    pages.claim(10, "worker-1", { leaseId: "a" });
    pages.claim(500, "worker-2", { leaseId: "b", attempt: 1 });
    expect(rulesOf(pages, succeededBy("b"))).toEqual(["holds-never-overlap"]);
  });

  it("a claim granted within the tolerance passes, and one just outside it does not", () => {
    const claimAt = (ms: number): RuleName[] => {
      const pages = writePages();
      pages.claim(10, "worker-1", { leaseId: "a" });
      pages.claim(ms, "worker-2", { leaseId: "b", attempt: 1 });
      return rulesOf(pages, succeededBy("b"));
    };
    expect(claimAt(10 + TERM_MS - CLOCK_TOLERANCE_MS)).toEqual([]);
    expect(claimAt(10 + TERM_MS - CLOCK_TOLERANCE_MS - 1)).toEqual(["holds-never-overlap"]);
  });

  it("a claim granted in a term that a heartbeat renewed is reported", () => {
    const pages = writePages();
    pages.claim(10, "worker-1", { leaseId: "a" });
    pages.heartbeat(900, "worker-1", "a");
    pages.claim(1100, "worker-2", { leaseId: "b", attempt: 1 });
    expect(rulesOf(pages, succeededBy("b"))).toEqual(["holds-never-overlap"]);
  });

  it("a heartbeat that renews an old hold in addition to a newer one is reported", () => {
    const pages = lostLease();
    pages.heartbeat(1050, "worker-1", "old");
    expect(rulesOf(pages, succeededBy("new"))).toEqual(["accepted-from-newest-hold", "holds-never-overlap"]);
  });

  it("a refused report does not excuse an early claim", () => {
    const pages = writePages();
    pages.claim(10, "worker-1", { leaseId: "a" });
    pages.report(100, "worker-1", "a", "fail", 409);
    pages.claim(500, "worker-2", { leaseId: "b", attempt: 1 });
    expect(rulesOf(pages, succeededBy("b"))).toEqual(["holds-never-overlap"]);
  });

  it("the death of the holder does not excuse an early claim", () => {
    const pages = writePages();
    pages.claim(10, "worker-1", { leaseId: "a" });
    pages.at(20, "chaos", { kind: "process-killed", name: "worker-1" });
    pages.claim(500, "worker-2", { leaseId: "b", attempt: 1 });
    expect(rulesOf(pages, succeededBy("b"))).toEqual(["holds-never-overlap"]);
  });

  it("a lease that is handed out twice is reported", () => {
    const pages = writePages();
    pages.claim(10, "worker-1", { leaseId: "a" });
    pages.claim(5000, "worker-2", { leaseId: "a", attempt: 1 });
    expect(rulesOf(pages, succeededBy("a"))).toEqual(["holds-never-overlap"]);
  });
});
