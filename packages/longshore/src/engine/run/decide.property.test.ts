import assert from "node:assert/strict";
import fc from "fast-check";
import { describe, it } from "vitest";
import { Ledger, outputsOf, planOf, value } from "../../../test/contract/ledger.ts";
import { isRunOpen } from "./run.ts";

describe("any graph", () => {
  const settledStates: (string | undefined)[] = ["done", "failed", "cancelled", "skipped"];
  interface Node {
    after: number[];
    always: boolean;
    skipsItself: boolean;
    outcome: "done" | "failed" | "cancelled";
  }
  const node = (at: number): fc.Arbitrary<Node> =>
    fc.record({
      after: at === 0 ? fc.constant([]) : fc.uniqueArray(fc.nat(at - 1), { maxLength: 4 }),
      always: fc.boolean(),
      skipsItself: fc.integer({ min: 0, max: 9 }).map((drawn) => drawn === 0),
      outcome: fc.constantFrom("done" as const, "done" as const, "done" as const, "failed" as const, "cancelled" as const),
    });
  const graph = fc.integer({ min: 1, max: 14 }).chain((size) => fc.tuple(...Array.from({ length: size }, (_, at) => node(at))));
  const planFor = (nodes: Node[]) =>
    planOf(
      nodes.map(({ after, always, skipsItself }) => ({
        after,
        waitsFor: always ? "settled" : "done",
        input: outputsOf(...after),
        ...(skipsItself ? { when: value(false) } : {}),
      })),
    );

  /** Ends all open steps, in the order that `picks` draws, until the run has ended. */
  function play(ledger: Ledger, nodes: Node[], picks: () => number, outcomeOf: (at: number) => Node["outcome"] | "stop"): void {
    while (isRunOpen(ledger.run.state)) {
      const open = ledger.open;
      assert(open.length > 0);
      for (const at of open) allowed(ledger, nodes, at);
      const at = open[picks() % open.length] as number;
      const outcome = outcomeOf(at);
      if (outcome === "done") ledger.done(at, `out-${at}`);
      else if (outcome === "failed") ledger.fail(at);
      else if (outcome === "cancelled") ledger.end(at, "cancelled");
      else ledger.tell({ kind: "cancel" });
      settledMatches(ledger);
    }
  }

  function allowed(ledger: Ledger, nodes: Node[], at: number): void {
    const { after, always } = nodes[at] as Node;
    for (const upstream of after) {
      const state = ledger.states.get(upstream);
      if (always) assert(settledStates.includes(state));
      else assert.equal(state, "done");
    }
    const results = after.map((upstream) => (ledger.states.get(upstream) === "done" ? `out-${upstream}` : null));
    assert.equal(ledger.inputs.get(at), JSON.stringify(results));
  }

  function settledMatches(ledger: Ledger): void {
    const settled = ledger.plan.nodes.filter((_, at) => settledStates.includes(ledger.states.get(at))).length;
    if (isRunOpen(ledger.run.state)) assert.equal(ledger.run.left, ledger.plan.nodes.length - settled);
  }

  const endedRight = (ledger: Ledger) => {
    const states = ledger.plan.nodes.map((_, at) => ledger.states.get(at));
    assert(states.every((state) => settledStates.includes(state)));
    const bad = states.filter((state) => state === "failed" || state === "cancelled").length;
    const { state, left, failed } = ledger.run;
    assert.deepEqual({ state, left, failed }, { state: bad > 0 ? "failed" : "succeeded", left: 0, failed: bad });
  };

  it("ends; a step starts only after its upstreams allow it, with their results; and starts once", () => {
    fc.assert(
      fc.property(graph, fc.infiniteStream(fc.nat(1_000)), (nodes, stream) => {
        const ledger = new Ledger(planFor(nodes)).start();
        play(
          ledger,
          nodes,
          () => stream.next().value as number,
          (at) => (nodes[at] as Node).outcome,
        );
        endedRight(ledger);
        assert.equal(new Set(ledger.started).size, ledger.started.length);
      }),
      { numRuns: 1_000 },
    );
  });

  it("succeeds when it is stopped or fails, and is tried again with nothing in its way", () => {
    fc.assert(
      fc.property(graph, fc.nat(20), fc.infiniteStream(fc.nat(1_000)), (nodes, stopAfter, stream) => {
        const picks = () => stream.next().value as number;
        const ledger = new Ledger(planFor(nodes)).start();
        let ended = 0;
        play(ledger, nodes, picks, (at) => (++ended === stopAfter ? "stop" : (nodes[at] as Node).outcome));
        if (ledger.run.state === "succeeded") return;
        ledger.started.length = 0;
        ledger.tell({ kind: "retry" });
        play(ledger, nodes, picks, () => "done");
        endedRight(ledger);
        assert.equal(ledger.run.state, "succeeded");
        assert.equal(new Set(ledger.started).size, ledger.started.length);
      }),
      { numRuns: 1_000 },
    );
  });
});
