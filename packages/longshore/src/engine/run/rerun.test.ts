// A rerun from a step whose upstreams did not succeed: they start again as well, and each of them would start the step a second time.

import { describe, expect, it } from "vitest";
import { Ledger, outputsOf, planOf, value } from "../../../test/contract/ledger.ts";

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
});
