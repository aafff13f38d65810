// Requests of a node that wait at the owner, when the node closes.

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

it("requests of the closing node stop waiting, and later ones do not begin to wait", () => {
  const { waits, call } = setup();
  const [one, other] = [call(), call()];
  const [own, others] = [one.wait.signal, other.wait.signal];
  waits.dismiss(one.link);
  expect([own.aborted, others.aborted]).toEqual([true, false]);
  expect(call(one.link).wait.signal.aborted).toBe(true);
});

it("a request whose client disconnects stops waiting, also when the client disconnects before the route waits", () => {
  const { call } = setup();
  const [during, before] = [call(), call()];
  const { signal } = during.wait;
  during.caller.abort();
  before.caller.abort();
  expect([signal.aborted, before.wait.signal.aborted]).toEqual([true, true]);
});

it("a request that was answered is removed", () => {
  const { waits, call } = setup();
  const { wait, link } = call();
  const { signal } = wait;
  wait.end();
  waits.dismiss(link);
  expect(signal.aborted).toBe(false);
});
