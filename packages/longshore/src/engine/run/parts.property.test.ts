// Any graph with edges on the first part and thresholds. After every event it is compared with a simple reference model of the nodes that
// should have begun.

import assert from "node:assert/strict";
import fc from "fast-check";
import { describe, it } from "vitest";
import { Ledger, planOf, value } from "../../../test/contract/ledger.ts";
import { isRunOpen } from "./run.ts";

type Outcome = "done" | "failed" | "cancelled";

interface Node {
  after: number[];
  eager: boolean[];
  /** Drawn from 0 to 1: how many of `after` are enough. */
  enough: number;
  always: boolean;
  skipsItself: boolean;
  outcome: Outcome;
}

const node = (at: number): fc.Arbitrary<Node> =>
  fc.record({
    after: at === 0 ? fc.constant([]) : fc.uniqueArray(fc.nat(at - 1), { maxLength: 4 }),
    eager: fc.array(fc.boolean(), { minLength: 4, maxLength: 4 }),
    enough: fc.oneof(fc.constant(1), fc.double({ min: 0, max: 1, noNaN: true })),
    always: fc.integer({ min: 0, max: 3 }).map((drawn) => drawn === 0),
    skipsItself: fc.integer({ min: 0, max: 9 }).map((drawn) => drawn === 0),
    outcome: fc.constantFrom<Outcome>("done", "done", "done", "failed", "cancelled"),
  });
const graph = fc.integer({ min: 1, max: 12 }).chain((size) => fc.tuple(...Array.from({ length: size }, (_, at) => node(at))));

const required = ({ after, enough }: Node) => Math.max(1, Math.ceil(after.length * enough));

function planFor(nodes: Node[]) {
  return planOf(
    nodes.map((made) => ({
      after: made.after,
      onFirstPart: made.after.filter((_, at) => made.eager[at]),
      waitsFor: made.always ? "settled" : "done",
      ...(made.after.length > 0 && required(made) < made.after.length ? { threshold: required(made) } : {}),
      ...(made.skipsItself ? { when: value(false) } : {}),
    })),
  );
}

type State = "open" | "skipped" | Outcome | undefined;

/** The expected state of every node, from the events of those that began. Upstreams come before the nodes that wait for them. */
function reading(nodes: Node[], ended: ReadonlyMap<number, Outcome>, parted: ReadonlySet<number>, kept: ReadonlySet<number>): State[] {
  const states: State[] = [];
  nodes.forEach((made, at) => {
    if (kept.has(at)) {
      states.push("done");
      return;
    }
    let [come, never] = [0, 0];
    made.after.forEach((upstream, edge) => {
      const state = states[upstream];
      const settled = state !== undefined && state !== "open";
      if ((made.eager[edge] && parted.has(upstream)) || state === "done" || (settled && made.always)) come++;
      else if (settled) never++;
    });
    if (made.after.length > 0 && made.after.length - never < required(made)) states.push("skipped");
    else if (made.after.length > 0 && come < required(made)) states.push(undefined);
    else states.push(made.skipsItself ? "skipped" : (ended.get(at) ?? "open"));
  });
  return states;
}

const drawn = (stream: Iterator<number>) => () => stream.next().value as number;

/** Lets all open steps emit parts and end, in the order that `picks` draws, until the run has ended. */
function play(ledger: Ledger, nodes: Node[], picks: () => number, outcomeOf: (at: number) => Outcome, stopAfter = Infinity): void {
  const ended = new Map<number, Outcome>();
  const parted = new Set<number>();
  const kept = new Set(nodes.map((_, at) => at).filter((at) => ledger.states.get(at) === "done"));
  for (let event = 0; isRunOpen(ledger.run.state); event++) {
    const { open } = ledger;
    assert(open.length > 0);
    const at = open[picks() % open.length] as number;
    if (event === stopAfter) {
      ledger.tell({ kind: "cancel" });
      return;
    }
    if (picks() % 3 === 0) {
      ledger.part(at);
      parted.add(at);
    } else {
      const outcome = outcomeOf(at);
      ended.set(at, outcome);
      if (outcome === "done") ledger.done(at);
      else if (outcome === "failed") ledger.fail(at);
      else ledger.end(at, "cancelled");
    }
    const told = nodes.map((_, node) => (ledger.states.get(node) === "forgotten" ? undefined : ledger.states.get(node)));
    assert.deepEqual(told, reading(nodes, ended, parted, kept));
  }
}

describe("any graph with parts and thresholds", () => {
  it("has begun exactly the expected nodes after each event, each once", () => {
    fc.assert(
      fc.property(graph, fc.infiniteStream(fc.nat(1_000)), (nodes, stream) => {
        const ledger = new Ledger(planFor(nodes)).start();
        play(ledger, nodes, drawn(stream), (at) => (nodes[at] as Node).outcome);
        assert.equal(new Set(ledger.started).size, ledger.started.length);
        const bad = nodes.filter((_, at) => ["failed", "cancelled"].includes(ledger.states.get(at) ?? "")).length;
        assert.deepEqual([ledger.run.state, ledger.run.failed], [bad > 0 ? "failed" : "succeeded", bad]);
      }),
      { numRuns: 1_500 },
    );
  });

  it("that is stopped or fails succeeds after a retry, according to the same model, and keeps finished work", () => {
    fc.assert(
      fc.property(graph, fc.nat(20), fc.infiniteStream(fc.nat(1_000)), (nodes, stopAfter, stream) => {
        const ledger = new Ledger(planFor(nodes)).start();
        play(ledger, nodes, drawn(stream), (at) => (nodes[at] as Node).outcome, stopAfter);
        if (ledger.run.state === "succeeded") return;
        ledger.started.length = 0;
        ledger.tell({ kind: "retry" });
        play(ledger, nodes, drawn(stream), () => "done");
        assert.equal(ledger.run.state, "succeeded");
        assert.equal(new Set(ledger.started).size, ledger.started.length);
      }),
      { numRuns: 1_500 },
    );
  });

  it("begins again with nothing of its earlier life", () => {
    fc.assert(
      fc.property(graph, fc.nat(20), fc.infiniteStream(fc.nat(1_000)), (nodes, stopAfter, stream) => {
        const ledger = new Ledger(planFor(nodes)).start();
        play(ledger, nodes, drawn(stream), (at) => (nodes[at] as Node).outcome, stopAfter);
        if (isRunOpen(ledger.run.state)) return;
        ledger.started.length = 0;
        ledger.tell({ kind: "restart" });
        play(ledger, nodes, drawn(stream), () => "done");
        assert.equal(ledger.run.state, "succeeded");
      }),
      { numRuns: 500 },
    );
  });
});
