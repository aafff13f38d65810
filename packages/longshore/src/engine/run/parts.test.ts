import { describe, expect, it } from "vitest";
import { Ledger, planOf } from "../../../test/contract/ledger.ts";

describe("a node that waits for a first part", () => {
  it("begins with it, while the source runs, and not again at its end", () => {
    const ledger = new Ledger(planOf([{}, { after: [0], onFirstPart: [0] }, { after: [0] }])).start();
    ledger.part(0);
    expect(ledger.open).toEqual([0, 1]);
    ledger.done(0);
    expect(ledger.started).toEqual([0, 1, 2]);
    ledger.done(1);
    ledger.done(2);
    expect(ledger.run.state).toBe("succeeded");
  });

  it("loads no row that a node which waits for the end would not load, and none when nothing waits", () => {
    const ledger = new Ledger(planOf([{}, { after: [0], onFirstPart: [0] }])).start();
    ledger.part(0);
    ledger.done(0);
    expect(ledger.costs.map(({ asked }) => asked)).toEqual([0, 0, 0]);
  });

  it("begins at the end of a source without parts", () => {
    const ledger = new Ledger(planOf([{}, { after: [0], onFirstPart: [0] }])).start();
    ledger.done(0);
    expect(ledger.started).toEqual([0, 1]);
  });

  it("is skipped when the source fails without a part, and continues when it fails after one", () => {
    const silent = new Ledger(planOf([{}, { after: [0], onFirstPart: [0] }])).start();
    silent.fail(0);
    expect(silent.stateOf(1)).toEqual(["skipped"]);
    const heard = new Ledger(planOf([{}, { after: [0], onFirstPart: [0] }])).start();
    heard.part(0);
    heard.fail(0);
    expect([heard.stateOf(1), heard.run.state]).toEqual([["open"], "running"]);
    heard.done(1);
    expect(heard.run.state).toBe("failed");
  });

  it("waits for all of several, each by its part or its end", () => {
    const ledger = new Ledger(planOf([{}, {}, {}, { after: [0, 1, 2], onFirstPart: [0, 1] }])).start();
    ledger.part(0);
    ledger.done(1);
    ledger.done(0);
    expect(ledger.started).toEqual([0, 1, 2]);
    ledger.done(2);
    expect(ledger.started).toEqual([0, 1, 2, 3]);
  });

  it("begins with a part that arrives after its run was paused and resumed", () => {
    const ledger = new Ledger(planOf([{}, { after: [0], onFirstPart: [0] }])).start();
    ledger.tell({ kind: "pause" });
    ledger.tell({ kind: "resume" });
    ledger.part(0);
    expect(ledger.open).toEqual([0, 1]);
  });

  it("waits for a new part when its source is tried again along with it", () => {
    const ledger = new Ledger(planOf([{}, { after: [0], onFirstPart: [0] }])).start();
    ledger.part(0);
    ledger.fail(0);
    ledger.fail(1);
    ledger.tell({ kind: "retry" });
    expect(ledger.open).toEqual([0]);
    ledger.part(0);
    expect(ledger.open).toEqual([0, 1]);
  });

  it("names only nodes that it waits for", () => {
    expect(() => planOf([{}, {}, { after: [0], onFirstPart: [1] }])).toThrow("Node s2 waits for a part of node 1, but not for the node.");
  });
});

describe("a threshold", () => {
  it("starts the node with as many as are enough, for any end of the others", () => {
    const ledger = new Ledger(planOf([{}, {}, {}, { after: [0, 1, 2], threshold: 2 }])).start();
    ledger.done(0);
    expect(ledger.started).not.toContain(3);
    ledger.done(2);
    expect(ledger.started).toContain(3);
    ledger.fail(1);
    ledger.done(3);
    expect([ledger.stateOf(3), ledger.run.state]).toEqual([["done"], "failed"]);
  });

  it("skips the node as soon as it cannot be reached", () => {
    const ledger = new Ledger(planOf([{}, {}, {}, { after: [0, 1, 2], threshold: 2 }])).start();
    ledger.fail(0);
    expect(ledger.stateOf(3)).toEqual([undefined]);
    ledger.fail(1);
    expect(ledger.stateOf(3)).toEqual(["skipped"]);
    ledger.done(2);
    expect(ledger.started).not.toContain(3);
  });

  it("of one on first parts starts with the first source that produces one", () => {
    const ledger = new Ledger(planOf([{}, {}, { after: [0, 1], onFirstPart: [0, 1], threshold: 1 }])).start();
    ledger.part(1);
    ledger.part(0);
    ledger.done(0);
    ledger.done(1);
    expect(ledger.started).toEqual([0, 1, 2]);
  });

  it("keeps a node that had enough when one that it did not need is tried again", () => {
    const ledger = new Ledger(planOf([{}, {}, { after: [0, 1], threshold: 1 }])).start();
    ledger.done(0);
    ledger.done(2);
    ledger.fail(1);
    ledger.tell({ kind: "retry" });
    expect([ledger.open, ledger.stateOf(2)]).toEqual([[1], ["done"]]);
    ledger.done(1);
    expect(ledger.run.state).toBe("succeeded");
  });

  it("is between one and the number of sources", () => {
    for (const threshold of [0, 3]) expect(() => planOf([{}, {}, { after: [0, 1], threshold }])).toThrow("expected 1 to 2");
  });
});
