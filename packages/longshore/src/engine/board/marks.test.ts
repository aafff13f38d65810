import { expect, it } from "vitest";
import type { Tx } from "../tx.ts";
import { Marks } from "./marks.ts";

function transaction() {
  const undo: (() => void)[] = [];
  const after: (() => void)[] = [];
  const tx = { undo: (takeBack: () => void) => undo.push(takeBack), after: (then: () => void) => after.push(then) } as unknown as Tx;
  const call = (all: readonly (() => void)[]) => {
    for (const each of all) each();
  };
  return { tx, fail: () => call(undo.reverse()), commit: () => call(after) };
}

it("shows a mark to operations at once, and to other readers when it is committed", () => {
  const marks = new Marks<string>();
  const adding = transaction();
  marks.add(adding.tx, "r", "ended");
  expect([marks.seen("r", true), marks.seen("r", false)]).toEqual(["ended", undefined]);
  expect([marks.isEmpty(true), marks.isEmpty(false)]).toEqual([false, true]);
  adding.commit();
  expect(marks.seen("r", false)).toBe("ended");

  const removing = transaction();
  marks.remove(removing.tx, "r");
  expect([marks.seen("r", true), marks.seen("r", false)]).toEqual([undefined, "ended"]);
  removing.commit();
  expect([marks.isEmpty(true), marks.isEmpty(false)]).toEqual([true, true]);
});

it("takes back a mark whose commit fails, and no reader has seen it", () => {
  const marks = new Marks<string>();
  const { tx, fail } = transaction();
  marks.add(tx, "r", "ended");
  fail();
  expect([marks.seen("r", true), marks.seen("r", false)]).toEqual([undefined, undefined]);
});
