// A rerun from a step whose upstreams did not succeed: they start again as well, and each of them would start the step a second time.

import { describe, expect, it } from "vitest";
import { Ledger, outputsOf, planOf, type Step, value } from "../../../test/contract/ledger.ts";

describe("a rerun from a step whose upstream starts again", () => {
  it("begins the step once, after its upstream and with the result of it", () => {
    const ledger = new Ledger(planOf([{}, { after: [0], waitsFor: "settled", input: outputsOf(0) }])).start();
    ledger.fail(0);
    ledger.done(1);
    ledger.started.length = 0;
    ledger.tell({ kind: "rerun", node: 1 });
    expect(ledger.open).toEqual([0]);
    ledger.done(0, "result");
    expect(ledger.inputs.get(1)).toBe('["result"]');
    ledger.done(1);
    expect(ledger.started).toEqual([0, 1]);
    expect(ledger.run).toMatchObject({ state: "succeeded", active: 0 });
  });

  it("ends a run whose upstream is skipped again", () => {
    const ledger = new Ledger(planOf([{ when: value(false) }, { after: [0] }])).start();
    expect(ledger.run.state).toBe("succeeded");
    ledger.tell({ kind: "rerun", node: 1 });
    expect(ledger.run).toMatchObject({ state: "succeeded", active: 0 });
  });

  it("begins a step of a lazy plan once", () => {
    const steps = [{}, { after: [0], demands: [0], waitsFor: "settled" as const, onFailure: "permit" as const }];
    const ledger = new Ledger(planOf(steps, { wanted: [1] })).start();
    ledger.fail(0);
    ledger.done(1);
    ledger.started.length = 0;
    ledger.tell({ kind: "rerun", node: 1 });
    ledger.done(0);
    ledger.done(1);
    expect(ledger.started).toEqual([0, 1]);
    expect(ledger.run.state).toBe("succeeded");
  });

  it("makes the record void of a step that has its result and begins at once", () => {
    const ledger = new Ledger(planOf([{}, {}, { after: [0, 1], threshold: 1 }])).start();
    for (const node of [0, 2, 1]) ledger.done(node);
    ledger.tell({ kind: "rerun", node: 1 });
    expect(ledger.forgotten.sort()).toEqual([1, 2]);
  });
});

describe("a retry of a lazy plan", () => {
  /** Node 6 chooses between 1 and 2 by the result of step 0. Node 3 belongs to the branch of 1, and always chooses step 4. */
  it("wants no node of a branch until the branch is chosen again", () => {
    const by = (of: number[]) => ({ of, make: (outputs: unknown[]) => ({ value: outputs[0] === "no" ? 1 : 0 }) });
    const steps: Step[] = [
      { onFailure: "permit" },
      { gives: 0, demands: [3], waitsFor: "settled" },
      { gives: 0, demands: [5], after: [5], waitsFor: "settled" },
      { chooses: { by: by([]), cases: [[4]] }, waitsFor: "settled" },
      { onFailure: "permit", waitsFor: "settled" },
      { onFailure: "permit", waitsFor: "settled" },
      { chooses: { by: by([0]), cases: [[1], [2]] }, after: [0], demands: [0], waitsFor: "settled" },
    ];
    const ledger = new Ledger(planOf(steps, { wanted: [6] })).start();
    ledger.done(0, "yes");
    expect(ledger.open).toEqual([4]);
    ledger.fail(4);
    ledger.tell({ kind: "rerun", node: 0 });
    expect(ledger.open).toEqual([0]);
    ledger.done(0, "no");
    expect(ledger.open).toEqual([5]);
    ledger.fail(5);
    ledger.tell({ kind: "rerun", node: 0 });
    ledger.done(0, "yes");
    expect(ledger.open).toEqual([4]);
  });
});

describe("a child that lives again", () => {
  it("is not started a second time by a step before it that starts again", () => {
    const ledger = new Ledger(planOf([{}, { after: [0], waitsFor: "settled", runs: "child" }])).start();
    ledger.fail(0);
    ledger.end(1, "failed");
    ledger.started.length = 0;
    ledger.tell({ kind: "reopen", node: 1 });
    ledger.done(0);
    expect(ledger.started).toEqual([0]);
    expect(ledger.open).toEqual([1]);
    ledger.done(1);
    expect(ledger.run).toMatchObject({ state: "succeeded", active: 0 });
  });
});
