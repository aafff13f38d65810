// Requests of a node that wait at the owner, and a node that closes.

import { expect, it } from "vitest";
import { Waits } from "./waits.ts";

function setup() {
  const waits = new Waits();
  const call = (link = { isOver: false }) => {
    const caller = new AbortController();
    return { link, caller, wait: waits.of({ link, signal: caller.signal }) };
  };
  return { waits, call };
}

it("those of the node that closes wait no longer, and later ones do not begin to", () => {
  const { waits, call } = setup();
  const [one, other] = [call(), call()];
  const [own, others] = [one.wait.signal, other.wait.signal];
  waits.dismiss(one.link);
  expect([own.aborted, others.aborted]).toEqual([true, false]);
  expect(call(one.link).wait.signal.aborted).toBe(true);
});

it("one whose client leaves waits no longer, also if it leaves before the route waits", () => {
  const { call } = setup();
  const [during, before] = [call(), call()];
  const { signal } = during.wait;
  during.caller.abort();
  before.caller.abort();
  expect([signal.aborted, before.wait.signal.aborted]).toEqual([true, true]);
});

it("one that was answered is forgotten", () => {
  const { waits, call } = setup();
  const { wait, link } = call();
  const { signal } = wait;
  wait.end();
  waits.dismiss(link);
  expect(signal.aborted).toBe(false);
});
