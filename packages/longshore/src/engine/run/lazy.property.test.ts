// Any lazy plan runs exactly the nodes that a simple reference model wants. The plans consist of steps that need earlier ones, and of choices
// between lists of earlier ones. The model computes values on demand and remembers them.

import assert from "node:assert/strict";
import fc from "fast-check";
import { describe, it } from "vitest";
import { Ledger, planOf, type Reads, type Step, value } from "../../../test/contract/ledger.ts";
import { isRunOpen } from "./run.ts";

type Part = { kind: "step"; needs: number[]; eager: boolean; fails: boolean } | { kind: "choice"; asks: number[]; branches: number[][] };

interface Story {
  parts: Part[];
  wanted: number[];
}

const earlier = (at: number): fc.Arbitrary<number[]> =>
  at === 0 ? fc.constant<number[]>([]) : fc.uniqueArray(fc.nat(at - 1), { maxLength: 3 });
const part = (at: number): fc.Arbitrary<Part> =>
  fc.oneof(
    fc.record({
      kind: fc.constant("step" as const),
      needs: earlier(at),
      eager: fc.boolean(),
      fails: fc.integer({ max: 3, min: 0 }).map((drawn) => drawn === 0),
    }),
    fc.record({ kind: fc.constant("choice" as const), asks: earlier(at), branches: fc.array(earlier(at), { minLength: 1, maxLength: 3 }) }),
  );
const story: fc.Arbitrary<Story> = fc.integer({ min: 1, max: 10 }).chain((size) =>
  fc.record({
    parts: fc.tuple(...Array.from({ length: size }, (_, at) => part(at))),
    wanted: fc.uniqueArray(fc.nat(size - 1), { maxLength: 3 }),
  }),
);

/** The branch of a choice, by the number of results. */
const pick = (results: number, branches: number) => results % branches;

/** The computed parts, with the value of each step or choice: null for a step that failed. */
function read({ parts, wanted }: Story, fails: (part: number) => boolean): Map<number, string | null> {
  const known = new Map<number, string | null>();
  const workOut = (at: number): string | null => {
    const seen = known.get(at);
    if (seen !== undefined) return seen;
    const made = parts[at] as Part;
    let result: string | null = "m";
    if (made.kind === "choice") {
      const results = made.asks.map(workOut).filter((value) => value !== null).length;
      (made.branches[pick(results, made.branches.length)] as number[]).forEach(workOut);
    } else {
      made.needs.forEach(workOut);
      result = fails(at) ? null : `out-${at}`;
    }
    known.set(at, result);
    return result;
  };
  wanted.forEach(workOut);
  return known;
}

/** The plan, and which part each of its task nodes is. */
function write({ parts, wanted }: Story) {
  const nodes: Step[] = [];
  /** For each part, the node that others wait for, and the nodes that become wanted with it. */
  const ends: { settles: number; demands: number[] }[] = [];
  const partOf = new Map<number, number>();
  const add = (step: Step) => nodes.push({ waitsFor: "settled", ...step }) - 1;
  const on = (needs: readonly number[]) => ({
    after: needs.map((need) => (ends[need] as { settles: number }).settles),
    demands: needs.flatMap((need) => (ends[need] as { demands: number[] }).demands),
  });
  parts.forEach((made, at) => {
    if (made.kind === "step") {
      const edges = on(made.needs);
      // For deciding what is wanted, the first part of a step counts like its end.
      const onFirstPart = made.eager ? edges.after.filter((upstream) => partOf.has(upstream)) : [];
      const node = add({ ...edges, onFailure: "permit", onFirstPart: [...new Set(onFirstPart)] });
      partOf.set(node, at);
      ends.push({ settles: node, demands: [node] });
      return;
    }
    const branches = made.branches.map((branch) => add({ ...on(branch), gives: "b" }));
    const asked = on(made.asks);
    const by: Reads = {
      of: asked.after,
      make: (outputs) => ({ value: pick(outputs.filter((output) => output !== null).length, branches.length) }),
    };
    const chooser = add({ ...asked, chooses: { by, cases: branches.map((branch) => [branch]) } });
    ends.push({ settles: add({ after: branches, waitsFor: "any", gives: "m" }), demands: [chooser] });
  });
  const plan = planOf(nodes, { wanted: wanted.flatMap((at) => (ends[at] as { demands: number[] }).demands), output: value(1) });
  return { plan, partOf };
}

/** Ends all open steps, in the order that `picks` draws, until the run has ended or was stopped. */
function play(ledger: Ledger, partOf: Map<number, number>, picks: () => number, fails: (part: number) => boolean, stopAfter = Infinity) {
  for (let ended = 0; isRunOpen(ledger.run.state); ended++) {
    const { open } = ledger;
    assert(open.length > 0);
    const node = open[picks() % open.length] as number;
    const at = partOf.get(node) as number;
    if (picks() % 2 === 0) ledger.part(node);
    if (ended === stopAfter) ledger.tell({ kind: "cancel" });
    else if (fails(at)) ledger.fail(node);
    else ledger.done(node, `out-${at}`);
  }
}

const stepsOf = (story: Story, known: Map<number, string | null>) =>
  [...known.keys()].filter((at) => story.parts[at]?.kind === "step").sort();

describe("any lazy plan", () => {
  const drawn = (stream: Iterator<number>) => () => stream.next().value as number;

  /** Runs a story until it ends or stops. */
  function played(told: Story, stream: Iterator<number>, stopAfter?: number) {
    const { plan, partOf } = write(told);
    const fails = (at: number) => (told.parts[at] as Part & { kind: "step" }).fails;
    const ledger = new Ledger(plan).start();
    play(ledger, partOf, drawn(stream), fails, stopAfter);
    return { ledger, partOf, fails };
  }

  it("runs the wanted nodes and the nodes that they need, each once, for any failures and any order of ends", () => {
    fc.assert(
      fc.property(story, fc.infiniteStream(fc.nat(1_000)), (told, stream) => {
        const { ledger, partOf, fails } = played(told, stream);
        const expected = read(told, fails);
        assert.deepEqual(ledger.started.map((node) => partOf.get(node) as number).sort(), stepsOf(told, expected));
        const failed = stepsOf(told, expected).filter(fails).length;
        assert.equal(ledger.run.failed, failed);
        assert.equal(ledger.run.state, failed > 0 ? "failed" : "succeeded");
      }),
      { numRuns: 1_000 },
    );
  });

  it("succeeds after a stop or a failure and a retry, with the nodes that are wanted then, and runs no step more than once again", () => {
    fc.assert(
      fc.property(story, fc.nat(8), fc.infiniteStream(fc.nat(1_000)), (told, stopAfter, stream) => {
        const { ledger, partOf } = played(told, stream, stopAfter);
        if (ledger.run.state === "succeeded") return;
        const doneBefore = [...ledger.states].filter(([node, state]) => state === "done" && partOf.has(node)).map(([node]) => node);
        ledger.started.length = 0;
        ledger.tell({ kind: "retry" });
        play(ledger, partOf, drawn(stream), () => false);
        assert.equal(ledger.run.state, "succeeded");
        assert.equal(new Set(ledger.started).size, ledger.started.length);
        const ran = new Set([...doneBefore, ...ledger.started].map((node) => partOf.get(node) as number));
        for (const at of stepsOf(
          told,
          read(told, () => false),
        ))
          assert(ran.has(at), `step ${at} is wanted and was never run`);
      }),
      { numRuns: 1_000 },
    );
  });

  it("wants only the nodes that its choices lead to after a restart", () => {
    fc.assert(
      fc.property(story, fc.infiniteStream(fc.nat(1_000)), (told, stream) => {
        const { ledger, partOf } = played(told, stream);
        if (ledger.run.state === "succeeded") return;
        ledger.started.length = 0;
        ledger.tell({ kind: "restart" });
        play(ledger, partOf, drawn(stream), () => false);
        const again = ledger.started.map((node) => partOf.get(node) as number).sort();
        assert.deepEqual(
          again,
          stepsOf(
            told,
            read(told, () => false),
          ),
        );
      }),
      { numRuns: 500 },
    );
  });
});
