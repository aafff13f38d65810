import { describe, expect, it } from "vitest";
import { Ledger, planOf, type Step } from "../../../test/contract/ledger.ts";
import { sliceItems } from "../../core/slices/slice-work.ts";
import { startSteps, stepsMax } from "./draft.ts";
import { planRestart } from "./restart-plan.ts";
import { backlogOf } from "./run.ts";
import { Skips } from "./skips.ts";

const many = 3_000;
const starts = stepsMax / startSteps;
const wide = () => planOf(Array.from({ length: many }, (): Step => ({})));
/** One step, and all others after it. */
const fan = () => planOf(Array.from({ length: many + 1 }, (_, at): Step => (at === 0 ? {} : { after: [0] })));
/** An instant that starts all others, as a fork does. */
function fork() {
  const plan = planOf([{ gives: 1 }, ...Array.from({ length: many }, (): Step => ({ demanded: true }))]);
  const [first, ...others] = plan.nodes;
  return {
    ...plan,
    nodes: [{ ...first!, starts: others.map((_, at) => at + 1) }, ...others],
    starters: new Map(others.map((_, at) => [at + 1, [0]])),
  };
}

describe("a decision that would be large", () => {
  it.each([
    ["a run that begins with very many steps", wide, (_: Ledger) => {}],
    ["a step that very many wait for", fan, (ledger: Ledger) => ledger.done(0)],
    ["an instant that starts very many", fork, (_: Ledger) => {}],
  ])("is made in several, each of a bounded size: %s", (_, plan, act) => {
    const ledger = new Ledger(plan() as never).start();
    act(ledger);
    expect(ledger.open).toHaveLength(many);
    expect(ledger.started).toEqual(ledger.started.toSorted((a, b) => a - b));
    for (const { changed } of [...ledger.costs, ...ledger.rests]) expect(changed).toBeLessThanOrEqual(starts + 3);
    expect(ledger.rests.length).toBeGreaterThanOrEqual(Math.floor(many / starts) - 1);
    expect(ledger.run).toMatchObject({ active: many, backlog: null });
    for (const node of ledger.open) ledger.done(node);
    expect(ledger.run).toMatchObject({ state: "succeeded", left: 0 });
  });

  it("starts at most 75 nodes at once", () => {
    expect(starts).toBeLessThanOrEqual(75);
  });

  it("records a step that can lengthen the plan in a decision of its own, because many nodes may follow", () => {
    const plan = fork();
    const [first, ...others] = plan.nodes;
    const grown = { ...plan, nodes: [{ ...first!, grows: { of: [], make: () => ({ value: null }) } }, ...others] };
    const ledger = new Ledger(grown as never).start();
    // The record, the run and the message.
    expect(ledger.costs[0]?.changed).toBeLessThanOrEqual(3);
    expect(ledger.open).toHaveLength(many);
  });

  it("the steps that begin again in another life are computed in slices", () => {
    const options = { skips: new Skips({ skips: null }), begun: new Set<number>(), due: new Set<number>() };
    const work = planRestart(fan(), new Map(), options);
    let slices = 1;
    let step = work.next();
    for (; !step.done; step = work.next()) slices++;
    expect(step.value).toMatchObject({ start: [0], reopen: [] });
    expect(step.value.all.size).toBe(many + 1);
    // Three passes visit all nodes.
    expect(slices).toBeGreaterThanOrEqual(Math.floor((3 * many) / sliceItems));
  });

  it("counts what is left as active, so that the run does not end before it", () => {
    const ledger = new Ledger(wide());
    ledger.holdsRests = true;
    ledger.start();
    for (const node of ledger.open) ledger.done(node);
    expect(ledger.run).toMatchObject({ state: "running", active: 1 });
    expect(ledger.messages).toContainEqual({ kind: "go-on", runId: "r" });
    ledger.holdsRests = false;
    ledger.goOn();
    expect(ledger.open).toHaveLength(many - starts);
  });

  it.each([
    ["wide", wide],
    ["fan", fan],
    ["fork", fork],
  ])("loses nothing of what is left when the run is cancelled and tried again: %s", (_, plan) => {
    const ledger = new Ledger(plan() as never);
    ledger.holdsRests = true;
    ledger.start();
    if (ledger.open.length === 1) ledger.done(0);
    expect(backlogOf(ledger.run)).toHaveLength(1);
    ledger.tell({ kind: "cancel" });
    expect(ledger.run.state).toBe("cancelled");
    ledger.holdsRests = false;
    ledger.tell({ kind: "retry" });
    expect(ledger.open).toHaveLength(many);
    for (const node of ledger.open) ledger.done(node);
    expect(ledger.run).toMatchObject({ state: "succeeded", active: 0, left: 0, backlog: null });
  });

  it("follows a failure through very many steps", () => {
    const ledger = new Ledger(planOf(Array.from({ length: many }, (_, at): Step => (at === 0 ? {} : { after: [at - 1] })))).start();
    ledger.fail(0);
    expect(ledger.run).toMatchObject({ state: "failed", left: 0 });
    expect(ledger.rests.length).toBeGreaterThan(1);
    expect(ledger.stateOf(many - 1)).toEqual(["skipped"]);
  });
});
