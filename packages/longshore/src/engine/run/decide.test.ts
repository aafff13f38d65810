import { describe, expect, it } from "vitest";
import { Ledger, outputsOf, planOf, type Reads, type Step, value } from "../../../test/contract/ledger.ts";
import type { Json } from "../../core/json/json.ts";

const ladder = (length: number): Step[] => Array.from({ length }, (_, at) => ({ after: at === 0 ? [] : at === 1 ? [0] : [0, at - 1] }));

describe("starting a run", () => {
  it("posts the steps that wait for nothing, and no other", () => {
    const ledger = new Ledger(planOf([{}, { after: [0] }, {}])).start();
    expect(ledger.open).toEqual([0, 2]);
    expect(ledger.run.left).toBe(3);
  });

  it("ends a run without steps at once, with its output", () => {
    const ledger = new Ledger(planOf([], { output: { of: [], make: (_: Json[], input: Json) => ({ value: input }) } })).start();
    expect(ledger.run).toMatchObject({ state: "succeeded", output: '{"go":true}', endedAt: 0 });
  });

  it("gives a step the input that its template makes", () => {
    const ledger = new Ledger(planOf([{ input: { of: [], make: (_: Json[], input: Json) => ({ value: input }) } }])).start();
    expect(ledger.inputs.get(0)).toBe('{"go":true}');
  });
});

describe("a step whose lane is too large", () => {
  it.each([
    ["a name of a million characters", { name: "n".repeat(1_000_000), labels: [] }, "has 1000000 characters"],
    ["101 labels", { name: "n", labels: Array.from({ length: 101 }, (_, at) => `l${at}`) }, "requires 101 labels"],
    ["a label of a million characters", { name: "n", labels: ["l".repeat(1_000_000)] }, "has 1000000 characters"],
  ])("fails with a short reason and is not posted: %s", (_what, lane, reason) => {
    const ledger = new Ledger(planOf([{ lanes: [lane] }])).start();
    expect(ledger.open).toEqual([]);
    expect(ledger.run).toMatchObject({ state: "failed", error: expect.stringContaining(reason) });
    expect(ledger.run.error?.length).toBeLessThan(1_000);
  });
});

describe("following results", () => {
  it("starts each step of a chain with the result of the one before, and ends with the output", () => {
    const ledger = new Ledger(
      planOf([{}, { after: [0], input: outputsOf(0) }, { after: [1], input: outputsOf(1, 0) }], { output: outputsOf(2) }),
    ).start();
    ledger.done(0, "a");
    expect(ledger.inputs.get(1)).toBe('["a"]');
    ledger.done(1, "b");
    expect(ledger.inputs.get(2)).toBe('["b","a"]');
    expect(ledger.run.state).toBe("running");
    ledger.now = 9;
    ledger.done(2, "c");
    expect(ledger.run).toMatchObject({ state: "succeeded", output: '["c"]', left: 0, endedAt: 9 });
  });

  it("starts the join of a diamond once, after the last of its upstreams, in either order", () => {
    for (const [first, second] of [
      [1, 2],
      [2, 1],
    ] as const) {
      const ledger = new Ledger(planOf([{}, { after: [0] }, { after: [0] }, { after: [1, 2], input: outputsOf(1, 2) }])).start();
      ledger.done(0);
      expect(ledger.open).toEqual([1, 2]);
      ledger.done(first);
      expect(ledger.started).toEqual([0, 1, 2]);
      ledger.done(second);
      expect(ledger.started).toEqual([0, 1, 2, 3]);
      expect(ledger.inputs.get(3)).toBe("[1,2]");
      ledger.done(3);
      expect(ledger.run.state).toBe("succeeded");
    }
  });

  it("starts a wide join once, after all of its upstreams", () => {
    const width = 300;
    const ledger = new Ledger(
      planOf([...Array.from({ length: width }, () => ({})), { after: Array.from({ length: width }, (_, at) => at) }]),
    ).start();
    for (let at = 0; at < width; at++) {
      expect(ledger.started).not.toContain(width);
      ledger.done(at);
    }
    expect(ledger.started.filter((node) => node === width)).toHaveLength(1);
  });

  it("fails a step whose template makes its dialect throw, and accepts the report before it", () => {
    const make = () => {
      throw new TypeError("no such text");
    };
    const ledger = new Ledger(planOf([{}, { after: [0], input: { of: [], make } }])).start();
    ledger.done(0, "a");
    expect(ledger.run).toMatchObject({ state: "failed", error: expect.stringContaining("no such text") });
  });

  it("fails a run whose output makes its dialect throw", () => {
    const make = () => {
      throw new RangeError("too deep");
    };
    const ledger = new Ledger(planOf([{}], { output: { of: [], make } })).start();
    ledger.done(0, "a");
    expect(ledger.run).toMatchObject({ state: "failed", error: expect.stringContaining("too deep") });
  });

  it("fails a step whose template makes a value that nests too deep, and no other", () => {
    const nested = (levels: number): Json => Array.from({ length: levels }).reduce<Json>((inner) => [inner], 1);
    const inputs = (levels: number) => new Ledger(planOf([{ input: value(nested(levels)) }])).start();
    expect(inputs(500).run.state).toBe("running");
    expect(inputs(501).run).toMatchObject({ state: "failed", error: expect.stringContaining("nest deeper than 500 levels") });
    expect(inputs(20_000).run.state).toBe("failed");
  });

  it("fails a run whose output cannot be computed, with the reason", () => {
    const ledger = new Ledger(planOf([{}], { output: { of: [], make: () => ({ failed: "nothing there" }) } })).start();
    ledger.done(0);
    expect(ledger.run).toMatchObject({ state: "failed", error: "the output could not be worked out: nothing there" });
  });
});

describe("a step that does not succeed", () => {
  it("is tried again by its policy, without any change to the run", () => {
    const retry = { failures: 1, lost: 1, backoff: { kind: "fixed" as const, delayMs: 10 } };
    const ledger = new Ledger(planOf([{ retry }, { after: [0] }])).start();
    const before = ledger.run;
    expect(ledger.fail(0)).toMatchObject({ again: true, dueAt: 10, failures: 1 });
    expect(ledger.fail(0, { kind: "lost" }, { failures: 1, lost: 0 })).toMatchObject({ again: true, failures: 1, lost: 1 });
    expect(ledger.run).toBe(before);
    expect(ledger.fail(0, undefined, { failures: 1, lost: 1 })).toMatchObject({ again: false, error: "boom" });
    expect(ledger.run).toMatchObject({ state: "failed", error: "step s0 failed: boom" });
  });

  it("has all that depend on it skipped, level by level, and fails its run", () => {
    const ledger = new Ledger(planOf([{}, { after: [0] }, { after: [1] }, {}])).start();
    ledger.fail(0);
    expect(ledger.stateOf(1, 2)).toEqual(["skipped", "skipped"]);
    expect(ledger.run.state).toBe("running");
    ledger.done(3);
    expect(ledger.run).toMatchObject({ state: "failed", failed: 1, left: 0 });
  });

  it("skips a join at its first failed upstream, once, while the others continue", () => {
    const ledger = new Ledger(planOf([{}, {}, {}, { after: [0, 1, 2] }])).start();
    ledger.fail(0);
    expect(ledger.stateOf(3)).toEqual(["skipped"]);
    ledger.fail(1);
    ledger.done(2);
    expect(ledger.run).toMatchObject({ state: "failed", left: 0, error: "step s0 failed: boom" });
    expect(ledger.started).toEqual([0, 1, 2]);
  });

  it("does not prevent the start of a step that always starts, and its result reads as null", () => {
    const ledger = new Ledger(planOf([{}, { after: [0], waitsFor: "settled", input: outputsOf(0) }])).start();
    ledger.fail(0);
    expect(ledger.inputs.get(1)).toBe("[null]");
    ledger.done(1);
    expect(ledger.run.state).toBe("failed");
  });

  it("does not start a step that always starts before its other upstreams have ended", () => {
    const ledger = new Ledger(planOf([{}, {}, { after: [0] }, { after: [1, 2], waitsFor: "settled" }])).start();
    ledger.fail(0);
    expect(ledger.stateOf(2, 3)).toEqual(["skipped", undefined]);
    ledger.done(1);
    expect(ledger.stateOf(3)).toEqual(["open"]);
  });

  it("fails its run when it was cancelled alone", () => {
    const ledger = new Ledger(planOf([{}, { after: [0] }])).start();
    ledger.end(0, "cancelled");
    expect(ledger.run).toMatchObject({ state: "failed", error: "step s0 cancelled" });
    expect(ledger.stateOf(1)).toEqual(["skipped"]);
  });

  it("names the first failure as the run's error", () => {
    const ledger = new Ledger(planOf([{}, {}])).start();
    ledger.fail(1, { kind: "failed", error: "first", retryable: false });
    ledger.fail(0, { kind: "failed", error: "second", retryable: false });
    expect(ledger.run.error).toBe("step s1 failed: first");
  });

  it("fails at its start when its input cannot be computed, and is followed like any failure", () => {
    const ledger = new Ledger(
      planOf([{}, { after: [0], input: { of: [], make: () => ({ failed: "no such field" }) } }, { after: [1] }]),
    ).start();
    ledger.done(0);
    expect(ledger.stateOf(1, 2)).toEqual(["failed", "skipped"]);
    expect(ledger.run).toMatchObject({ state: "failed", error: "step s1 failed: no such field" });
  });
});

describe("a condition", () => {
  const whenFalse = { when: value(false) };

  it("that is false skips the step and what depends on it, without failing the run", () => {
    const ledger = new Ledger(planOf([whenFalse, { after: [0] }, {}])).start();
    expect(ledger.stateOf(0, 1, 2)).toEqual(["skipped", "skipped", "open"]);
    ledger.done(2);
    expect(ledger.run.state).toBe("succeeded");
  });

  it("may read results, which are loaded first", () => {
    for (const go of [true, false]) {
      const when: Reads = { of: [0], make: ([output]) => ({ value: output === "yes" }) };
      const ledger = new Ledger(planOf([{}, { after: [0], when }])).start();
      ledger.done(0, go ? "yes" : "no");
      expect(ledger.stateOf(1)).toEqual([go ? "open" : "skipped"]);
    }
  });

  it("that cannot be computed fails the step", () => {
    const ledger = new Ledger(planOf([{ when: { of: [], make: () => ({ failed: "no such field" }) } }])).start();
    expect(ledger.run).toMatchObject({ state: "failed", error: "step s0 failed: no such field" });
  });

  it("skips a chain of any length at once", () => {
    const length = 20_000;
    const chain = Array.from({ length }, (_, at): Step => ({ ...whenFalse, after: at === 0 ? [] : [at - 1], waitsFor: "settled" }));
    const ledger = new Ledger(planOf(chain)).start();
    expect(ledger.run).toMatchObject({ state: "succeeded", left: 0 });
  });
});

describe("cancelling and timing out", () => {
  it("cancels what is open and ends the run at once", () => {
    const ledger = new Ledger(planOf([{}, { after: [0] }])).start();
    ledger.now = 5;
    ledger.tell({ kind: "cancel" });
    expect(ledger.cancelledOpen).toBe(1);
    expect(ledger.run).toMatchObject({ state: "cancelled", endedAt: 5, error: null });
    expect(ledger.stateOf(0, 1)).toEqual(["cancelled", undefined]);
  });

  it("reports that the run took too long", () => {
    const ledger = new Ledger(planOf([{}])).start();
    ledger.tell({ kind: "timeout" });
    expect(ledger.run).toMatchObject({ state: "timed-out", error: "the run took too long" });
  });
});

describe("trying a run again", () => {
  it("keeps what succeeded, runs what failed, then what was skipped because of it", () => {
    const ledger = new Ledger(planOf([{}, { after: [0] }, { after: [1] }, { after: [0] }], { timeoutMs: 100 })).start();
    ledger.done(0);
    ledger.done(3);
    ledger.fail(1);
    expect(ledger.run.state).toBe("failed");
    ledger.now = 50;
    ledger.tell({ kind: "retry" });
    expect(ledger.run).toMatchObject({ state: "running", left: 2, failed: 0, error: null, endedAt: null, endBy: 150, retries: 1 });
    expect(ledger.stateOf(0, 1, 2, 3)).toEqual(["done", "open", "forgotten", "done"]);
    ledger.done(1);
    ledger.done(2);
    expect(ledger.run.state).toBe("succeeded");
    expect(ledger.started).toEqual([0, 1, 3, 1, 2]);
  });

  it("counts a retry from now, and a restart from the beginning that it was given", () => {
    const ledger = new Ledger(planOf([{}], { timeoutMs: 100 })).start();
    ledger.fail(0);
    ledger.now = 50;
    ledger.tell({ kind: "retry" });
    expect(ledger.run.countedFrom).toBe(50);
    ledger.fail(0);
    ledger.now = 51;
    ledger.tell({ kind: "restart" });
    expect(ledger.run).toMatchObject({ countedFrom: ledger.run.createdAt, endBy: 151, retries: 2 });
  });

  it("counts a join again for those upstreams only that run again", () => {
    const ledger = new Ledger(planOf([{}, {}, { after: [0, 1] }])).start();
    ledger.done(0);
    ledger.fail(1);
    ledger.tell({ kind: "retry" });
    ledger.done(1);
    expect(ledger.open).toEqual([2]);
    ledger.done(2);
    expect(ledger.run.state).toBe("succeeded");
  });

  it("starts a join at once when only the join had failed", () => {
    const ledger = new Ledger(planOf([{}, {}, { after: [0, 1] }])).start();
    ledger.done(0);
    ledger.done(1);
    ledger.fail(2);
    ledger.tell({ kind: "retry" });
    expect(ledger.open).toEqual([2]);
    ledger.done(2);
    expect(ledger.run.state).toBe("succeeded");
  });

  it("runs a step that always starts a second time, after the upstream that had failed", () => {
    const ledger = new Ledger(planOf([{}, { after: [0], waitsFor: "settled", input: outputsOf(0) }])).start();
    ledger.fail(0);
    ledger.done(1);
    ledger.tell({ kind: "retry" });
    expect(ledger.run.left).toBe(2);
    ledger.done(0, "now");
    expect(ledger.inputs.get(1)).toBe('["now"]');
    expect(ledger.run.state).toBe("running");
    ledger.done(1);
    expect(ledger.run.state).toBe("succeeded");
  });

  it("counts steps that are skipped at once before those that wait for them", () => {
    const ledger = new Ledger(
      planOf([{ when: value(false) }, {}, { after: [0, 1], waitsFor: "settled" }, { after: [0], waitsFor: "settled" }]),
    ).start();
    ledger.fail(1);
    ledger.fail(2);
    ledger.fail(3);
    expect(ledger.run.state).toBe("failed");
    ledger.tell({ kind: "retry" });
    expect([...ledger.open].sort()).toEqual([1, 3]);
    ledger.done(1);
    ledger.done(3);
    ledger.done(2);
    expect(ledger.run.state).toBe("succeeded");
  });

  it("reads no result of an earlier life", () => {
    const flag = { go: true };
    const when: Reads = { of: [], make: () => ({ value: flag.go }) };
    const ledger = new Ledger(
      planOf([{}, { after: [0], waitsFor: "settled", when }, { after: [1], waitsFor: "settled", input: outputsOf(1) }]),
    ).start();
    ledger.fail(0);
    ledger.done(1, "old");
    ledger.done(2);
    flag.go = false;
    ledger.tell({ kind: "retry" });
    ledger.done(0);
    expect(ledger.stateOf(1)).toEqual(["skipped"]);
    expect(ledger.inputs.get(2)).toBe("[null]");
  });

  it("continues where a cancelled run was stopped", () => {
    const ledger = new Ledger(planOf([{}, { after: [0] }, { after: [1] }])).start();
    ledger.done(0);
    ledger.tell({ kind: "cancel" });
    ledger.tell({ kind: "retry" });
    expect(ledger.open).toEqual([1]);
    ledger.done(1);
    ledger.done(2);
    expect(ledger.run).toMatchObject({ state: "succeeded", left: 0 });
  });
});

describe("child runs", () => {
  it("are requested by message, in the decision that starts their step", () => {
    const ledger = new Ledger(planOf([{ runs: "child", input: value({ a: 1 }) }])).start();
    const child = { workflow: "child", dialect: "test", input: '{"a":1}' };
    const asked = { kind: "start-run", ...child, parentTaskId: "r.0", attempt: 0, from: "r" };
    expect(ledger.messages).toEqual([asked]);
    expect(ledger.open).toEqual([0]);
  });

  it.each([
    ["succeeded", "done", (ledger: Ledger): void => ledger.done(0)],
    ["failed", "failed", (ledger: Ledger): void => void ledger.fail(0)],
    ["cancelled", "cancelled", (ledger: Ledger): void => void ledger.tell({ kind: "cancel" })],
    ["timed-out", "failed", (ledger: Ledger): void => void ledger.tell({ kind: "timeout" })],
  ] as const)("notify their parent when they have %s: its step is %s", (state, told, end) => {
    const ledger = new Ledger(planOf([{}]), { parentTaskId: "p.3", parentAttempt: 2 }).start();
    end(ledger);
    expect(ledger.run.state).toBe(state);
    expect(ledger.messages).toMatchObject([{ kind: "settle-task", taskId: "p.3", attempt: 2, state: told }]);
  });

  it("that did not succeed fail their step", () => {
    const ledger = new Ledger(planOf([{ runs: "child" }, { after: [0] }])).start();
    ledger.end(0, "failed", "its own error");
    expect(ledger.run).toMatchObject({ state: "failed", error: "step s0 failed: its own error" });
  });
});

describe("cost", () => {
  it("of a step does not grow with its place in the run", () => {
    const length = 10_001;
    const ledger = new Ledger(
      planOf(Array.from({ length }, (_, at) => ({ after: at === 0 ? [] : [at - 1], input: outputsOf(...(at === 0 ? [] : [at - 1])) }))),
    ).start();
    for (let at = 0; at < length - 1; at++) ledger.done(at);
    expect(ledger.costs[10_000]).toEqual(ledger.costs[10]);
    expect(ledger.costs[10]).toEqual({ asked: 1, changed: 2, calls: 2 });
  });

  it("of a step does not grow with what the output of its run needs", () => {
    const length = 1_000;
    const all = Array.from({ length }, (_, at) => at);
    const steps = all.map((at) => ({ after: at === 0 ? [] : [at - 1], input: outputsOf(...(at === 0 ? [] : [at - 1])) }));
    const ledger = new Ledger(planOf(steps, { output: outputsOf(...all) })).start();
    for (let at = 0; at < length - 1; at++) ledger.done(at);
    expect(ledger.costs[length - 1]).toEqual({ asked: 1, changed: 2, calls: 2 });
  });

  it("of a result does not grow with the number of those who wait with it at a join", () => {
    const width = 10_001;
    const ledger = new Ledger(
      planOf([...Array.from({ length: width }, () => ({})), { after: Array.from({ length: width }, (_, at) => at) }]),
    ).start();
    for (let at = 0; at < width - 1; at++) ledger.done(at);
    expect(ledger.costs[10_000]).toEqual(ledger.costs[10]);
    expect(ledger.costs[10]).toEqual({ asked: 1, changed: 2, calls: 2 });
  });

  it("of a long cascade of skips through joins is a few calls, and about twice the rows that it changes", () => {
    const length = 5_000;
    const ledger = new Ledger(planOf(ladder(length))).start();
    ledger.done(0);
    ledger.costs = [];
    ledger.fail(1);
    expect(ledger.run).toMatchObject({ state: "failed", left: 0 });
    const [cost] = ledger.costs;
    expect(cost?.calls).toBeLessThan(15);
    expect(cost?.asked).toBeLessThan(2 * length);
  });

  it("of a skipped join that is reached again loads few rows", () => {
    const ledger = new Ledger(planOf([{}, {}, ...Array.from({ length: 1_000 }, (_, at) => ({ after: [0, at + 1] }))])).start();
    ledger.fail(1);
    ledger.costs = [];
    ledger.fail(0);
    expect(ledger.run.left).toBe(0);
    expect(ledger.costs[0]?.asked).toBeLessThan(1_001);
  });
});
