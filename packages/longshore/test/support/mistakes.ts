// Code of a careless user: everything that differs in each replay.

import type { Globals } from "../../src/runner/function/mistakes.ts";

export type Made = ReturnType<typeof careless>;

export function careless(globals: Globals) {
  const now = () => globals.Date.now();
  const random = () => globals.Math.random();
  const nothing = () => {};
  const all = (): unknown[] => [
    now(),
    new globals.Date(),
    globals.Date(),
    globals.performance.now(),
    random(),
    globals.crypto.randomUUID(),
    globals.setTimeout(nothing, 1),
    globals.setInterval(nothing, 1),
    globals.setImmediate(nothing),
    globals.fetch("http://127.0.0.1:1"),
  ];
  return { now, random, all, Date: globals.Date };
}
