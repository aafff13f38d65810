// Tests the checker with correct histories and with histories that are broken in one way each.
import { describe, expect, it } from "vitest";
import { check, describeViolations } from "./checker.ts";
import { finished, lostLease, rulesOf, TASK } from "./checker-histories.ts";
import { RUN, STEP, succeededBy, TERM_MS, tokenOf, wasCancelled, writePages } from "./pages.ts";
import type { FinalState } from "./story.ts";
import type { RuleName } from "./violation.ts";

describe("a correct history", () => {
  it("passes when one worker claims and completes", () => {
    expect(check(finished().entries(), succeededBy("a"))).toEqual([]);
  });

  it("passes when a lease expires and its late completion is refused", () => {
    expect(check(lostLease().entries(), succeededBy("new"))).toEqual([]);
  });

  it("passes when a failure hands the task to the next attempt before the term is over", () => {
    const pages = writePages();
    pages.start(0);
    pages.claim(10, "worker-1", { leaseId: "a" });
    pages.report(20, "worker-1", "a", "fail");
    pages.claim(30, "worker-2", { leaseId: "b", attempt: 1 });
    pages.report(40, "worker-2", "b", "complete");
    expect(check(pages.entries(), succeededBy("b", { failures: 1 }))).toEqual([]);
  });

  it("passes when a report without an answer ended the hold", () => {
    const pages = writePages();
    pages.start(0);
    pages.claim(10, "worker-1", { leaseId: "a" });
    pages.at(20, "worker-1", { kind: "report-sent", leaseId: "a", verb: "fail" });
    pages.at(21, "worker-1", { kind: "report-unanswered", leaseId: "a", verb: "fail", why: "connection reset" });
    pages.claim(30, "worker-2", { leaseId: "b", attempt: 1 });
    pages.report(40, "worker-2", "b", "complete");
    expect(check(pages.entries(), succeededBy("b"))).toEqual([]);
  });

  it("passes when a completion is acknowledged although its run had been cancelled", () => {
    const pages = writePages();
    pages.start(0);
    pages.claim(10, "worker-1", { leaseId: "a" });
    pages.cancel(20);
    pages.report(30, "worker-1", "a", "complete");
    expect(check(pages.entries(), wasCancelled())).toEqual([]);
  });

  it("passes when a claim that was sent before a cancel gets its response after the cancel", () => {
    const pages = writePages();
    pages.start(0);
    pages.at(5, "worker-1", { kind: "claim-sent", claim: 900 });
    pages.cancel(10);
    const claim = { leaseId: "a", runId: RUN, step: STEP, attempt: 0, ttlMs: TERM_MS, grantedAt: 9, expiresAt: 9 + TERM_MS, upstream: {} };
    pages.at(20, "worker-1", { kind: "claim-got", claim: 900, ...claim });
    expect(check(pages.entries(), wasCancelled())).toEqual([]);
  });

  it("passes when a start without a response has created no run", () => {
    const pages = writePages();
    pages.at(0, "client", { kind: "run-start-sent", request: 1, workflow: "w" });
    pages.at(1, "client", { kind: "run-start-unanswered", request: 1, why: "connection refused" });
    expect(check(pages.entries(), { runs: [], tasks: [] })).toEqual([]);
  });
});

describe("nothing acknowledged is lost", () => {
  it("an acknowledged run that the server does not know is reported", () => {
    const pages = writePages();
    pages.start(0);
    expect(rulesOf(pages, { runs: [], tasks: [] })).toEqual(["acknowledged-run-kept"]);
  });

  it("an acknowledged completion of a task that ended as failed is reported", () => {
    expect(rulesOf(finished(), succeededBy("a", { completed: false, state: "failed", token: null }))).toEqual([
      "acknowledged-completion-kept",
    ]);
  });

  it("an acknowledged completion of a task that the server does not know is reported", () => {
    expect(rulesOf(finished(), { ...succeededBy("a"), tasks: [] })).toEqual(["acknowledged-completion-kept"]);
  });

  it("an acknowledged completion whose output was replaced is reported", () => {
    expect(rulesOf(finished(), succeededBy("another"))).toEqual(["acknowledged-completion-kept"]);
  });

  it("a completed task that is handed out again is reported", () => {
    const pages = finished();
    pages.claim(5000, "worker-2", { leaseId: "b", attempt: 1 });
    expect(rulesOf(pages, succeededBy("a"))).toContain("acknowledged-completion-kept");
  });

  it("a dependent that receives another output than the accepted one is reported", () => {
    const pages = finished();
    pages.claim(30, "worker-1", { leaseId: "b", step: "deploy", upstream: { [STEP]: "made up" } });
    expect(rulesOf(pages, succeededBy("a"))).toEqual(["acknowledged-completion-kept"]);
  });

  it("a dependent that receives the accepted output passes", () => {
    const pages = finished();
    pages.claim(30, "worker-1", { leaseId: "b", step: "deploy", upstream: { [STEP]: tokenOf("a") } });
    expect(rulesOf(pages, succeededBy("a"))).toEqual([]);
  });

  it("an acknowledged failure that was not counted is reported", () => {
    const pages = writePages();
    pages.claim(10, "worker-1", { leaseId: "a" });
    pages.report(20, "worker-1", "a", "fail");
    pages.claim(30, "worker-1", { leaseId: "b", attempt: 1 });
    pages.report(40, "worker-1", "b", "complete");
    expect(rulesOf(pages, succeededBy("b", { failures: 0 }))).toEqual(["acknowledged-failure-kept"]);
  });

  it("an acknowledged log line that is missing or stored twice is reported", () => {
    const withLine = (lines: string[], status: number | undefined): RuleName[] => {
      const pages = finished();
      const line = { leaseId: "a", runId: RUN, line: "hello" };
      pages.at(12, "worker-1", { kind: "log-sent", ...line });
      pages.at(14, "worker-1", { kind: "log-sent", ...line });
      if (status) pages.at(15, "worker-1", { kind: "log-got", ...line, status });
      return rulesOf(pages, { ...succeededBy("a"), lines });
    };
    expect(withLine(["hello"], 200)).toEqual([]);
    expect(withLine([], 200)).toEqual(["acknowledged-line-kept-once"]);
    expect(withLine(["hello", "hello"], 200)).toEqual(["acknowledged-line-kept-once"]);
    expect(withLine(["hello", "hello"], undefined)).toEqual(["acknowledged-line-kept-once"]);
    for (const lines of [[], ["hello"]]) expect([withLine(lines, 409), withLine(lines, undefined)]).toEqual([[], []]);
  });

  it("an acknowledged cancel that the server forgot is reported", () => {
    const pages = writePages();
    pages.start(0);
    pages.claim(10, "worker-1", { leaseId: "a" });
    pages.cancel(20);
    pages.report(30, "worker-1", "a", "complete");
    expect(rulesOf(pages, succeededBy("a"))).toEqual(["acknowledged-cancel-kept"]);
  });

  it("a cancel acknowledged as cancelling must end as cancelled", () => {
    const pages = writePages();
    pages.start(0);
    pages.at(1, "client", { kind: "cancel-sent", runId: RUN });
    pages.at(2, "client", { kind: "cancel-acknowledged", runId: RUN, status: 202, state: "cancelling" });
    expect(rulesOf(pages, succeededBy("a"))).toEqual(["acknowledged-cancel-kept"]);
  });
});

describe("at most one completion of a task is accepted", () => {
  it("two accepted completions of one task are reported", () => {
    const pages = writePages();
    pages.claim(10, "worker-1", { leaseId: "a" });
    pages.claim(10, "worker-2", { leaseId: "b" });
    pages.report(20, "worker-1", "a", "complete");
    pages.report(20, "worker-2", "b", "complete");
    expect(rulesOf(pages, succeededBy("a"))).toContain("one-accepted-completion");
  });

  it("one completion that is sent twice and acknowledged twice counts once", () => {
    const pages = finished();
    pages.report(30, "worker-1", "a", "complete");
    expect(rulesOf(pages, succeededBy("a"))).toEqual([]);
  });
});

describe("steps run in order, and a success is complete", () => {
  const created = (steps: Record<string, string[]>) => {
    const pages = writePages();
    pages.at(0, "client", { kind: "workflow-created", workflow: "w", steps });
    pages.start(1);
    return pages;
  };

  it("a step that is handed out before the completion of its dependency was sent is reported", () => {
    const pages = created({ [STEP]: [], deploy: [STEP] });
    pages.claim(10, "worker-1", { leaseId: "a" });
    pages.claim(20, "worker-2", { leaseId: "b", step: "deploy", upstream: { [STEP]: tokenOf("a") } });
    pages.report(30, "worker-1", "a", "complete");
    const final = succeededBy("a");
    final.tasks.push({ id: "task-2", runId: RUN, step: "deploy", state: "done", ended: true, completed: true });
    expect(rulesOf(pages, final)).toEqual(["dependencies-first"]);
  });

  it("a step that receives outputs of other steps than its dependencies is reported", () => {
    const pages = created({ [STEP]: [] });
    pages.claim(10, "worker-1", { leaseId: "a", upstream: { other: "x" } });
    pages.report(30, "worker-1", "a", "complete");
    expect(rulesOf(pages, succeededBy("a"))).toEqual(["dependencies-first"]);
  });

  it("a run that succeeded without one of its steps is reported", () => {
    const pages = created({ [STEP]: [], deploy: [STEP] });
    pages.claim(10, "worker-1", { leaseId: "a" });
    pages.report(30, "worker-1", "a", "complete");
    expect(rulesOf(pages, succeededBy("a"))).toEqual(["success-is-complete"]);
  });

  it("a run that no response to a start contained is reported", () => {
    expect(rulesOf(finished(), { ...succeededBy("a"), listed: [RUN, "twin"] })).toEqual(["one-run-a-start"]);
  });
});

describe("nothing starts after an acknowledged cancel", () => {
  it("a claim that was sent after the acknowledgement is reported", () => {
    const pages = writePages();
    pages.start(0);
    pages.cancel(10);
    pages.claim(20, "worker-1", { leaseId: "a" });
    expect(rulesOf(pages, wasCancelled())).toEqual(["no-start-after-cancel"]);
  });

  it("a waiting claim that the server granted after the acknowledgement is reported", () => {
    const pages = writePages();
    pages.start(0);
    pages.at(5, "worker-1", { kind: "claim-sent", claim: 900 });
    pages.cancel(10);
    const claim = { leaseId: "a", runId: RUN, step: STEP, attempt: 0, ttlMs: TERM_MS, grantedAt: 500, expiresAt: 1500, upstream: {} };
    pages.at(501, "worker-1", { kind: "claim-got", claim: 900, ...claim });
    expect(rulesOf(pages, wasCancelled())).toEqual(["no-start-after-cancel"]);
  });
});

describe("a run that was restarted continues", () => {
  function restarted() {
    const pages = writePages();
    pages.start(0, "parent");
    pages.at(10, "client", { kind: "restart-sent", runId: RUN, family: ["parent"] });
    pages.at(11, "client", { kind: "restart-acknowledged", runId: RUN });
    return pages;
  }
  const final = (): FinalState => ({
    ...wasCancelled(),
    runs: [...wasCancelled().runs, { id: "parent", state: "cancelled", ended: true }],
  });

  it("a restarted run that is cancelled is reported", () => {
    expect(rulesOf(restarted(), final())).toEqual(["restarted-run-goes-on"]);
  });

  it("a restarted run that is cancelled after a cancel of itself or of a parent run is not reported", () => {
    for (const runId of [RUN, "parent"]) {
      const pages = restarted();
      pages.cancel(20, runId);
      expect(rulesOf(pages, final())).toEqual([]);
    }
  });

  it("a run whose restart got no response is not reported", () => {
    const pages = writePages();
    pages.start(0, "parent");
    pages.at(10, "client", { kind: "restart-sent", runId: RUN, family: ["parent"] });
    expect(rulesOf(pages, final())).toEqual([]);
  });
});

describe("every run ends", () => {
  it("a run that is still running is reported", () => {
    const final = { ...succeededBy("a"), runs: [{ id: RUN, state: "running", ended: false }] };
    expect(rulesOf(finished(), final)).toEqual(["every-run-ends"]);
  });

  it("a task that is still queued in a run that ended is reported", () => {
    const final = succeededBy("a");
    final.tasks.push({ id: "task-2", runId: RUN, step: "deploy", state: "queued", ended: false, completed: false });
    expect(rulesOf(finished(), final)).toEqual(["every-run-ends"]);
  });
});

it("a violation is shown as a sentence and its lines", () => {
  const text = describeViolations(check(finished().entries(), succeededBy("another")));
  expect(text).toContain(`acknowledged-completion-kept: ${TASK}: its completion said done by a and the server recorded done by another`);
  expect(text).toContain('worker-1.0.jsonl:4 {"at":21,');
});
