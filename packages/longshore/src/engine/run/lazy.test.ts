import { describe, expect, it } from "vitest";
import { Ledger, outputsOf, planOf, type Reads, type Step, value } from "../../../test/contract/ledger.ts";

/** Chooses its first case when the step gave "yes". */
const saysYes = (step: number): Reads => ({ of: [step], make: ([output]) => ({ value: output === "yes" ? 0 : 1 }) });

/** Step 0 chooses. Then step 2 or 3 runs, each behind a node of its own. Step 6 reads what was chosen. */
const branching = (wanted = [6]) =>
  planOf(
    [
      {},
      { after: [0], demands: [0], waitsFor: "settled", chooses: { by: saysYes(0), cases: [[4], [5]] } },
      {},
      {},
      { after: [2], demands: [2], waitsFor: "settled", gives: "then" },
      { after: [3], demands: [3], waitsFor: "settled", gives: "else" },
      { after: [7], demands: [1] },
      { after: [4, 5], waitsFor: "any", gives: "either" },
    ],
    { wanted },
  );

describe("a lazy plan", () => {
  it("begins with what is wanted and what that demands, and runs nothing else", () => {
    const steps: Step[] = [{}, { after: [0], demands: [0] }, {}, { after: [2], demands: [2] }];
    const ledger = new Ledger(planOf(steps, { wanted: [1] })).start();
    expect(ledger.open).toEqual([0]);
    ledger.done(0);
    ledger.done(1);
    expect(ledger.run).toMatchObject({ state: "succeeded", left: 0 });
    expect(ledger.started).toEqual([0, 1]);
  });

  it("ends at once when nothing is wanted", () => {
    const ledger = new Ledger(planOf([{}, {}], { wanted: [] })).start();
    expect([ledger.run.state, ledger.started]).toEqual(["succeeded", []]);
  });

  it.each([
    ["yes", 2, 3],
    ["no", 3, 2],
  ])("runs the branch that is chosen for %s, and not the other", (answer, taken, other) => {
    const ledger = new Ledger(branching()).start();
    expect(ledger.open).toEqual([0]);
    ledger.done(0, answer);
    expect(ledger.open).toEqual([taken]);
    ledger.done(taken);
    expect(ledger.open).toEqual([6]);
    ledger.done(6);
    expect(ledger.run.state).toBe("succeeded");
    expect(ledger.started).not.toContain(other);
  });

  it("does not run a chosen step again that has run for another node before", () => {
    const ledger = new Ledger(branching([6, 2])).start();
    expect(ledger.open).toEqual([0, 2]);
    ledger.done(2);
    ledger.done(0, "yes");
    expect(ledger.open).toEqual([6]);
    expect(ledger.started).toEqual([0, 2, 6]);
  });

  it("runs a step once that two nodes choose", () => {
    const chooser = { waitsFor: "settled" as const, chooses: { by: value(0), cases: [[2]] } };
    const ledger = new Ledger(planOf([chooser, chooser, {}], { wanted: [0, 1] })).start();
    expect(ledger.started).toEqual([2]);
    ledger.done(2);
    expect(ledger.run.state).toBe("succeeded");
  });

  it("wants what a chosen step demands, at any distance", () => {
    const steps: Step[] = [
      { chooses: { by: value(0), cases: [[4]] } },
      {},
      { after: [1], demands: [1] },
      {},
      { after: [2, 3], demands: [2, 3], input: outputsOf(2, 3) },
    ];
    const ledger = new Ledger(planOf(steps, { wanted: [0] })).start();
    expect([...ledger.open].sort()).toEqual([1, 3]);
    ledger.done(3);
    ledger.done(1);
    ledger.done(2);
    expect(ledger.inputs.get(4)).toBe("[2,3]");
  });

  it("skips a chosen step whose upstream had failed before, unless any ending will do", () => {
    for (const waitsFor of ["done", "settled"] as const) {
      const steps: Step[] = [
        {},
        {},
        { after: [0], demands: [0], chooses: { by: value(0), cases: [[3]] } },
        { after: [1], demands: [1], waitsFor },
      ];
      const ledger = new Ledger(planOf(steps, { wanted: [1, 2] })).start();
      ledger.fail(1);
      expect(ledger.stateOf(3)).toEqual([undefined]);
      ledger.done(0);
      expect(ledger.stateOf(3)).toEqual([waitsFor === "done" ? "skipped" : "open"]);
    }
  });

  it("chooses along a chain of any length at once", () => {
    const length = 10_000;
    const steps = Array.from({ length }, (_, at): Step => ({ chooses: { by: value(0), cases: [at + 1 < length ? [at + 1] : []] } }));
    const ledger = new Ledger(planOf(steps, { wanted: [0] })).start();
    expect(ledger.run.state).toBe("succeeded");
    expect(ledger.states.size).toBe(length);
    expect(ledger.costs[0]?.calls).toBeLessThan(20);
  });

  it("chooses along a chain of any length at once, although each node waited for a finished step", () => {
    const length = 5_000;
    const steps = Array.from({ length }, (_, at): Step[] => [
      { after: [2 * at + 1], chooses: { by: value(0), cases: [at + 1 < length ? [2 * at + 2] : []] } },
      {},
    ]).flat();
    const gate: Step = { chooses: { by: value(0), cases: [[0]] }, after: [2 * length + 1] };
    const ledger = new Ledger(
      planOf([...steps, gate, {}], {
        wanted: steps
          .map((_, at) => at)
          .filter((at) => at % 2 === 1)
          .concat([2 * length, 2 * length + 1]),
      }),
    );
    ledger.start();
    for (let at = 0; at < length; at++) ledger.done(2 * at + 1);
    ledger.costs = [];
    ledger.done(2 * length + 1);
    expect(ledger.run.state).toBe("succeeded");
    expect(ledger.costs[0]?.calls).toBeLessThan(40);
    expect(ledger.costs[0]?.asked).toBeLessThan(3 * length);
  });
});

describe("trying a lazy run again", () => {
  it("keeps a choice that is still valid, and waits for the step that it waited for", () => {
    const ledger = new Ledger(branching()).start();
    ledger.done(0, "yes");
    ledger.tell({ kind: "cancel" });
    ledger.tell({ kind: "retry" });
    expect(ledger.open).toEqual([2]);
    ledger.done(2);
    ledger.done(6);
    expect(ledger.run.state).toBe("succeeded");
    expect(ledger.started).toEqual([0, 2, 2, 6]);
  });

  it("chooses again when what it was chosen by is run again", () => {
    const ledger = new Ledger(branching()).start();
    ledger.fail(0);
    ledger.done(3);
    ledger.done(6);
    expect(ledger.run.state).toBe("failed");
    ledger.tell({ kind: "retry" });
    expect(ledger.open).toEqual([0]);
    ledger.done(0, "yes");
    expect(ledger.open).toEqual([2]);
    ledger.done(2);
    expect(ledger.open).toEqual([6]);
    ledger.done(6);
    expect(ledger.run.state).toBe("succeeded");
  });

  it("wants only what is wanted from the beginning when the run begins again", () => {
    const ledger = new Ledger(branching()).start();
    ledger.done(0, "yes");
    ledger.tell({ kind: "cancel" });
    ledger.tell({ kind: "restart" });
    expect(ledger.open).toEqual([0]);
    ledger.done(0, "no");
    expect(ledger.open).toEqual([3]);
  });

  it("runs a step that is named although no node wanted it", () => {
    const ledger = new Ledger(planOf([{}, { after: [0], demands: [0] }, {}], { wanted: [1] })).start();
    ledger.done(0);
    ledger.done(1);
    ledger.tell({ kind: "rerun", node: 2 });
    expect(ledger.open).toContain(2);
  });
});

describe("a run that is judged by its output", () => {
  it("succeeds when it has one, also when steps failed before", () => {
    const ledger = new Ledger(planOf([{ onFailure: "permit" }], { judgedByOutput: true })).start();
    ledger.fail(0);
    expect(ledger.run).toMatchObject({ state: "succeeded", output: '"out"', error: null, failed: 1 });
  });

  it("fails when it has none, with what there is to show in its place", () => {
    const output: Reads = { of: [], make: () => ({ failed: "no name", output: { code: 8 } }) };
    const ledger = new Ledger(planOf([{}], { judgedByOutput: true, output }), { parentTaskId: "p.1" }).start();
    ledger.done(0);
    expect(ledger.run).toMatchObject({ state: "failed", output: '{"code":8}', error: "the output could not be worked out: no name" });
    expect(ledger.messages).toMatchObject([{ kind: "settle-task", state: "failed", output: '{"code":8}' }]);
  });
});

describe("cost in a lazy plan", () => {
  /** Every step is chosen by the one before it. */
  const chosenChain = (length: number): Step[] =>
    Array.from({ length }, (_, at): Step[] => [
      { after: at === 0 ? [] : [2 * at - 1], chooses: { by: value(0), cases: [[2 * at + 1]] } },
      { demands: [2 * at + 2].filter((next) => next < 2 * length) },
    ]).flat();

  it("of a step that is chosen does not grow with its place in the run", () => {
    const length = 10_002;
    const ledger = new Ledger(planOf(chosenChain(length), { wanted: [0] })).start();
    for (let at = 0; at < length - 1; at++) ledger.done(2 * at + 1);
    expect(ledger.costs[10_000]).toEqual(ledger.costs[10]);
    expect(ledger.costs[10]).toEqual({ asked: 3, changed: 6, calls: 3 });
  });

  it("of a step does not grow with the number of those that are not wanted", () => {
    const chain = (length: number): Step[] =>
      Array.from({ length }, (_, at) => (at === 0 ? {} : { after: [at - 1], demands: [at - 1], input: outputsOf(at - 1) }));
    const costOf = (length: number, at: number) => {
      const ledger = new Ledger(planOf(chain(length), { wanted: [20] })).start();
      for (let step = 0; step < at; step++) ledger.done(step);
      return ledger.costs[at];
    };
    expect(costOf(10_000, 10)).toEqual(costOf(21, 10));
    expect(costOf(10_000, 10)).toEqual({ asked: 1, changed: 2, calls: 2 });
  });

  it("of choosing what demands very many is a few calls, and about twice the rows that it changes", () => {
    const length = 5_000;
    const chain = Array.from({ length }, (_, at): Step => (at === 0 ? {} : { after: [at - 1], demands: [at - 1] }));
    const ledger = new Ledger(planOf([...chain, { chooses: { by: value(0), cases: [[length - 1]] } }], { wanted: [length] }));
    ledger.start();
    expect(ledger.open).toEqual([0]);
    const [cost] = ledger.costs;
    expect(cost?.calls).toBeLessThan(15);
    expect(cost?.asked).toBeLessThan(2 * length);
  });
});
